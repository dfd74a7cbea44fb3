"""The operators that PyTorch's quantised exports are made of: ``quantized_decomposed``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import const
from tvm.relax.struct_info import open_shape

from ..arguments import Arguments, Converter, converter, dtype_name

__all__: list[str] = []


def _quantized(*names: str) -> Callable[[Converter], Converter]:
    return converter(*names, namespace="quantized_decomposed")


def _parameters(a: Arguments, scale: str, zero_point: str) -> tuple[RelayExpr, RelayExpr]:
    """Scale and zero point as graph values; PyTorch keeps them in wider types than it uses."""
    zero = a[zero_point]
    return a.cast(a[scale], "float32"), a.cast(0 if zero is None else zero, "int32")


def _quantize(a: Arguments, scale: str, zero_point: str, axis: int) -> RelayExpr:
    dtype = dtype_name(a["dtype"])
    low, high = op.integer_limits(dtype)
    least, greatest = a["quant_min"], a["quant_max"]
    a.refuse_unless(
        isinstance(least, int) and isinstance(greatest, int), "with limits that are tensors"
    )
    data = a.operand("input", "float32")
    whole = op.quantize(data, *_parameters(a, scale, zero_point), axis=axis, out_dtype=dtype)
    if (least, greatest) == (low, high):
        return whole
    return op.clip(a.emit(whole), least, greatest)


def _dequantize(a: Arguments, scale: str, zero_point: str, axis: int) -> RelayExpr:
    return op.dequantize(
        a["input"], *_parameters(a, scale, zero_point), axis=axis, out_dtype=a.result_dtype
    )


@_quantized(
    "quantize_per_tensor.default", "quantize_per_tensor.tensor", "quantize_per_tensor.tensor2"
)
def _quantize_per_tensor(a: Arguments) -> RelayExpr:
    return _quantize(a, "scale", "zero_point", -1)


@_quantized(
    "dequantize_per_tensor.default", "dequantize_per_tensor.tensor", "dequantize_per_tensor.tensor2"
)
def _dequantize_per_tensor(a: Arguments) -> RelayExpr:
    return _dequantize(a, "scale", "zero_point", -1)


@_quantized("quantize_per_channel.default")
def _quantize_per_channel(a: Arguments) -> RelayExpr:
    return _quantize(a, "scales", "zero_points", a.axis("axis", "input"))


@_quantized("dequantize_per_channel.default")
def _dequantize_per_channel(a: Arguments) -> RelayExpr:
    return _dequantize(a, "scales", "zero_points", a.axis("axis", "input"))


@_quantized("quantize_per_token.default")
def _quantize_per_token(a: Arguments) -> RelayExpr:
    return _quantize(a, "scales", "zero_points", -1)


@_quantized("dequantize_per_token.default")
def _dequantize_per_token(a: Arguments) -> RelayExpr:
    return _dequantize(a, "scales", "zero_points", -1)


def _wide(a: Arguments, scale: RelayExpr, zero: RelayExpr) -> list[RelayExpr]:
    """Parameters in the types and shapes that PyTorch gives them."""
    kinds = [dtype_name(value.dtype) for value in a.node.meta["val"]]
    typed = [a.cast(a.emit(value), kind) for value, kind in zip((scale, zero), kinds)]
    return [
        value if open_shape(value.struct_info) == shape else op.reshape(value, shape)
        for value, shape in zip(typed, a.result_shapes)
    ]


def _extrema(a: Arguments, axis: int | None) -> tuple[RelayExpr, RelayExpr]:
    """The least and the greatest element, with zero among them."""
    data, zero = a.operand("input", "float32"), const(0.0, "float32")
    keep = axis is not None
    least, greatest = (a.emit(reduce(data, axis, keepdims=keep)) for reduce in (op.min, op.max))
    return a.emit(op.minimum(least, zero)), a.emit(op.maximum(greatest, zero))


@_quantized("choose_qparams.tensor")
def _choose(a: Arguments) -> list[RelayExpr]:
    least, greatest = _extrema(a, None)
    low, high = int(a["quant_min"]), int(a["quant_max"])
    width = a.emit(op.subtract(greatest, least))
    scale = a.emit(op.divide(width, const(float(high - low), "float32")))
    scale = a.emit(op.maximum(scale, const(a["eps"], "float32")))
    steps = a.emit(op.round(a.emit(op.divide(least, scale))))
    zero = a.emit(op.subtract(const(float(low), "float32"), steps))
    return _wide(a, scale, op.clip(zero, low, high))


@_quantized("choose_qparams_symmetric.tensor")
def _choose_symmetric(a: Arguments) -> list[RelayExpr]:
    least, greatest = _extrema(a, None)
    reach = a.emit(op.maximum(a.emit(op.negative(least)), greatest))
    steps = (int(a["quant_max"]) - int(a["quant_min"])) / 2
    scale = a.emit(op.divide(reach, const(steps, "float32")))
    scale = op.maximum(scale, const(a["eps"], "float32"))
    middle = 128.0 if dtype_name(a["dtype"]) == "uint8" else 0.0
    return _wide(a, scale, const(np.full(a.result_shapes[1], middle), "float32"))


@_quantized("choose_qparams_per_token.default")
def _choose_per_token(a: Arguments) -> list[RelayExpr]:
    data = a.emit(op.abs(a.operand("input", "float32")))
    reach = a.emit(op.maximum(a.emit(op.max(data, -1, keepdims=True)), const(1e-5, "float32")))
    scale = op.divide(reach, const(127.0, "float32"))
    return _wide(a, scale, const(np.zeros(a.result_shapes[1]), "float32"))


@_quantized(
    "choose_qparams_per_token_asymmetric.default",
    "_choose_qparams_per_token_asymmetric_impl.default",
)
def _choose_per_token_asymmetric(a: Arguments) -> list[RelayExpr]:
    least, greatest = _extrema(a, -1)
    low, high = const(-128.0, "float32"), const(127.0, "float32")
    width = a.emit(op.subtract(greatest, least))
    scale = a.emit(op.divide(width, const(255.0, "float32")))
    # The smallest step that float32 tells from 1.
    scale = a.emit(op.maximum(scale, const(2.0**-23, "float32")))
    below, above = a.emit(op.divide(least, scale)), a.emit(op.divide(greatest, scale))
    error = a.emit(op.add(a.emit(op.add(below, low)), a.emit(op.add(above, high))))
    zero = op.where(
        a.emit(op.greater(error, const(0.0, "float32"))),
        a.emit(op.subtract(low, below)),
        a.emit(op.subtract(high, above)),
    )
    limited = a.emit(op.clip(a.emit(zero), -128.0, 127.0))
    return _wide(a, scale, op.round(limited))
