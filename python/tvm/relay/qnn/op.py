"""Operators on quantised tensors, each written in relay's ordinary operators.

Formulas are those of Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", CVPR 2018, section 2; scales are multiplied in float32.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import error
from tvm.ir import RelayExpr, TensorType, Type
from tvm.relax.op.quantization import integer_limits

from .. import op
from ..expr import Call, Constant, const
from ..op.nn.windows import pads_of, sizes_of
from ..op.registry import REQUIRED, OpPattern, define, make, row_of, settings_of
from ..op.shapes import broadcast, tensor

__all__ = ["add", "conv2d", "dense", "dequantize", "mul", "quantize", "requantize", "subtract"]

_Write = Callable[[Sequence[RelayExpr], Sequence[TensorType], Mapping[str, Any]], RelayExpr]
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32")


def _along(parameter: RelayExpr, type_: TensorType, axis: int, data: TensorType) -> RelayExpr:
    """A scale or zero point in a shape that broadcasts against the data."""
    rank = len(data.shape)
    if not len(type_.shape) or rank == 1:
        return parameter
    one = int(type_.shape[0]) == 1
    shape = [] if one else [-1 if k == axis % rank else 1 for k in range(rank)]
    if isinstance(parameter, Constant):
        return const(parameter.data.numpy().reshape(shape))
    return op.reshape(parameter, shape)


def _number(parameter: RelayExpr, dtype: str) -> RelayExpr:
    """A scale or zero point in a type; constants stay constants, which later passes look for."""
    if isinstance(parameter, Constant):
        return const(parameter.data.numpy().astype(dtype))
    return op.cast(parameter, dtype)


def _is_zero(parameter: RelayExpr) -> bool:
    return isinstance(parameter, Constant) and not parameter.data.numpy().any()


def _real(data: RelayExpr, scale: RelayExpr, zero: RelayExpr) -> RelayExpr:
    return op.multiply(op.cast(_centred(data, zero), "float32"), _number(scale, "float32"))


def _stored(steps: RelayExpr, zero: RelayExpr, dtype: str) -> RelayExpr:
    """Numbers of steps as integers of a type: rounded, moved by the zero point, limited."""
    if dtype not in _INTEGERS:
        raise error.ValueError(
            f"relay.qnn: no quantised tensors of {dtype}; use {', '.join(_INTEGERS)}"
        )
    whole = op.round(steps)
    moved = whole if _is_zero(zero) else op.add(whole, _number(zero, "float32"))
    low, high = integer_limits(dtype)
    # The largest float32 that an int32 can hold.
    return op.cast(op.clip(moved, low, builtins.min(high, 2**31 - 128)), dtype)


def _quantize(args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]) -> RelayExpr:
    data, scale, zero = args[0], *(_along(args[k], types[k], s["axis"], types[0]) for k in (1, 2))
    steps = op.divide(op.cast(data, "float32"), _number(scale, "float32"))
    return _stored(steps, zero, s["out_dtype"])


def _dequantize(
    args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]
) -> RelayExpr:
    scale, zero = (_along(args[k], types[k], s["axis"], types[0]) for k in (1, 2))
    real = _real(args[0], scale, zero)
    return real if s["out_dtype"] == "float32" else op.cast(real, s["out_dtype"])


def _requantize(
    args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]
) -> RelayExpr:
    scale, zero = (_along(args[k], types[k], s["axis"], types[0]) for k in (1, 2))
    out_scale, out_zero = (_along(args[k], types[k], s["axis"], types[0]) for k in (3, 4))
    whole = op.cast(_centred(args[0], zero), "float32")
    factor = op.divide(_number(scale, "float32"), _number(out_scale, "float32"))
    return _stored(op.multiply(whole, factor), out_zero, s["out_dtype"])


def _centred(data: RelayExpr, zero: RelayExpr) -> RelayExpr:
    whole = op.cast(data, "int32")
    return whole if _is_zero(zero) else op.subtract(whole, _number(zero, "int32"))


def _conv2d(args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]) -> RelayExpr:
    # The border is zero after the zero point is taken off, as a border of real zeros is.
    kernel_zero = args[3]
    if len(types[3].shape) and int(types[3].shape[0]) > 1:
        out = s["kernel_layout"].index("O")
        kernel_zero = _along(kernel_zero, types[3], out, types[1])
    data, kernel = _centred(args[0], args[2]), _centred(args[1], kernel_zero)
    return op.cast(op.nn.conv2d(data, kernel, **{**s, "out_dtype": ""}), s["out_dtype"])


def _dense(args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]) -> RelayExpr:
    kernel_zero = args[3]
    if len(types[3].shape) and int(types[3].shape[0]) > 1:
        kernel_zero = _along(kernel_zero, types[3], 0, types[1])
    data, kernel = _centred(args[0], args[2]), _centred(args[1], kernel_zero)
    return op.cast(op.nn.dense(data, kernel, units=s["units"]), s["out_dtype"])


def _combined(combine: Callable[[Any, Any], RelayExpr]) -> _Write:
    def write(args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]) -> RelayExpr:
        real = [
            _real(
                args[k],
                _along(args[at], types[at], s[axis], types[k]),
                _along(args[at + 1], types[at + 1], s[axis], types[k]),
            )
            for k, at, axis in ((0, 2, "lhs_axis"), (1, 4, "rhs_axis"))
        ]
        steps = op.divide(combine(*real), _number(args[6], "float32"))
        return _stored(steps, args[7], str(types[0].dtype))

    return write


def _like_data(name: str) -> Any:
    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        return TensorType(tensor(f"relay.{name}", types[0]).shape, s["out_dtype"])

    return rule


def _like_both(name: str) -> Any:
    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        a, b = (tensor(f"relay.{name}", t) for t in types[:2])
        if a.dtype != b.dtype:
            raise error.TypeError(f"relay.{name}: data types {a.dtype} and {b.dtype} do not match")
        return TensorType(broadcast(f"relay.{name}", a.shape, b.shape), str(a.dtype))

    return rule


def _like_plain(name: str) -> Any:
    """The type of the operator on numbers that are not quantised."""

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        inner = row_of(name).rule
        assert inner is not None
        wide = [TensorType(tensor(f"relay.qnn.{name}", t).shape, "int32") for t in types[:2]]
        return inner(wide, {**row_of(name).settings, **s}, args[:2])

    return rule


def _define(name: str, write: _Write, rule: Any, inputs: int, **settings: Any) -> None:
    def written(call: Call) -> RelayExpr:
        return write(list(call.args), [arg.checked_type for arg in call.args], settings_of(call))

    define(
        f"qnn.{name}", pattern=OpPattern.OPAQUE, settings=settings, rule=rule, written=written,
        num_inputs=inputs,
    )  # fmt: skip


_define("quantize", _quantize, _like_data("qnn.quantize"), 3, axis=-1, out_dtype="int8")
_define("dequantize", _dequantize, _like_data("qnn.dequantize"), 3, axis=-1, out_dtype="float32")
_define("requantize", _requantize, _like_data("qnn.requantize"), 5, axis=-1, out_dtype="int8")
_define("dense", _dense, _like_plain("nn.dense"), 6, units=None, out_dtype="int32")
_define(
    "conv2d", _conv2d, _like_plain("nn.conv2d"), 6,
    **{**row_of("nn.conv2d").settings, "kernel_size": REQUIRED, "out_dtype": "int32"},
)  # fmt: skip
for _name, _combine in (("add", op.add), ("subtract", op.subtract), ("mul", op.multiply)):
    _define(_name, _combined(_combine), _like_both(f"qnn.{_name}"), 8, lhs_axis=-1, rhs_axis=-1)


def quantize(
    data: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: str = "int8",
) -> Call:
    """data / scale, rounded to even, plus the zero point, limited to what the type holds.

    Parameters
    ----------
    output_scale, output_zero_point : float32 and int32, of the tensor or of each index of `axis`.
    """
    operands = [data, output_scale, output_zero_point]
    return make("qnn.quantize", operands, axis=axis, out_dtype=out_dtype)


def dequantize(
    data: RelayExpr,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: str = "float32",
) -> Call:
    """(data - zero point) * scale; operands as in :func:`quantize`."""
    operands = [data, input_scale, input_zero_point]
    return make("qnn.dequantize", operands, axis=axis, out_dtype=out_dtype)


def requantize(
    data: RelayExpr,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: str = "int8",
) -> Call:
    """Integers of one scale and zero point as those of another, rounded to even."""
    operands = [data, input_scale, input_zero_point, output_scale, output_zero_point]
    return make("qnn.requantize", operands, axis=axis, out_dtype=out_dtype)


def dense(
    data: RelayExpr,
    weight: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    units: int | None,
    out_dtype: str = "int32",
) -> Call:
    """Sums of products without zero points; its scale is the product of the two scales."""
    operands = [data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale]
    return make("qnn.dense", operands, units=units, out_dtype=out_dtype)


def conv2d(
    data: RelayExpr,
    kernel: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    kernel_size: Sequence[int],
    channels: int | None,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "int32",
) -> Call:
    """Convolution without zero points, see :func:`dense`; the border stands for real zeros."""
    operands = [data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale]
    return make(
        "qnn.conv2d",
        operands,
        kernel_size=sizes_of(kernel_size, 2),
        channels=channels,
        strides=sizes_of(strides, 2),
        padding=pads_of("relay.qnn.conv2d", padding, 2),
        dilation=sizes_of(dilation, 2),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )


def _binary(name: str, doc: str) -> Any:
    def call(
        lhs: RelayExpr,
        rhs: RelayExpr,
        lhs_scale: RelayExpr,
        lhs_zero_point: RelayExpr,
        rhs_scale: RelayExpr,
        rhs_zero_point: RelayExpr,
        output_scale: RelayExpr,
        output_zero_point: RelayExpr,
        lhs_axis: int = -1,
        rhs_axis: int = -1,
    ) -> Call:
        operands = [lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point,
                    output_scale, output_zero_point]  # fmt: skip
        return make(f"qnn.{name}", operands, lhs_axis=lhs_axis, rhs_axis=rhs_axis)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


add = _binary("add", "Sum of two quantised tensors as one of the type of the first.")
subtract = _binary("subtract", "Difference of two quantised tensors; see :func:`add`.")
mul = _binary("mul", "Product of two quantised tensors; see :func:`add`.")
