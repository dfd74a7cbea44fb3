"""Quantised tensors: an integer q stands for (q - zero point) * scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, te, tir, topi
from tvm.ir import RelayExpr
from tvm.runtime import DataType
from tvm.topi.broadcast import read_broadcast

from ..expr import Call
from .base import make_call
from .registry import OpPattern, register

__all__ = ["dequantize", "integer_limits", "quantize"]

Parameter = te.Tensor | float | int


def integer_limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    kind = DataType(dtype)
    if str(dtype).startswith("uint"):
        return 0, 2**kind.bits - 1
    return -(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1


def _element(
    parameter: Parameter, x: te.Tensor, axis: int, indices: Sequence[Any], dtype: str
) -> tir.PrimExpr:
    """The scale or zero point of an element of `x`."""
    if not isinstance(parameter, te.Tensor):
        return tir.const(parameter, dtype)
    shape = topi.utils.get_const_tuple(x.shape)
    if len(parameter.shape) == 1 and len(shape) > 1:
        single = topi.utils.equal_const_int(parameter.shape[0], 1)
        value = parameter(0 if single else indices[axis])
    else:
        value = read_broadcast(parameter, indices, shape)
    return value if parameter.dtype == dtype else value.astype(dtype)


def _quantize(
    x: te.Tensor,
    scale: Parameter,
    zero_point: Parameter,
    axis: int = -1,
    out_dtype: str = "int8",
) -> te.Tensor:
    if out_dtype not in ("int8", "uint8", "int16", "uint16"):
        raise error.ValueError(
            f"relax.quantize: no quantised tensors of {out_dtype}; use int8, uint8, int16 or uint16"
        )
    least, most = (tir.const(limit, "float32") for limit in integer_limits(out_dtype))

    def quantized(*i: Any) -> tir.PrimExpr:
        value = x(*i) if x.dtype == "float32" else x(*i).astype("float32")
        whole = tir.nearbyint(value / _element(scale, x, axis, i, "float32"))
        shifted = whole + _element(zero_point, x, axis, i, "float32")
        return tir.max(tir.min(shifted, most), least).astype(out_dtype)

    return te.compute(x.shape, quantized, name="T_quantize", tag=topi.tag.BROADCAST)


def _dequantize(
    x: te.Tensor,
    scale: Parameter,
    zero_point: Parameter,
    axis: int = -1,
    out_dtype: str = "float32",
) -> te.Tensor:
    if not str(x.dtype).startswith(("int", "uint")):
        raise error.ValueError(f"relax.dequantize: quantised tensors are integers, not {x.dtype}")

    def dequantized(*i: Any) -> tir.PrimExpr:
        centred = x(*i).astype("int32") - _element(zero_point, x, axis, i, "int32")
        value = centred.astype("float32") * _element(scale, x, axis, i, "float32")
        return value if out_dtype == "float32" else value.astype(out_dtype)

    return te.compute(x.shape, dequantized, name="T_dequantize", tag=topi.tag.BROADCAST)


register("quantize", _quantize, OpPattern.BROADCAST)
register("dequantize", _dequantize, OpPattern.BROADCAST)


def quantize(
    data: RelayExpr,
    scale: RelayExpr,
    zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: str = "int8",
) -> Call:
    """data / scale, rounded to even, plus the zero point, limited to what the type holds.

    Parameters
    ----------
    data : floating-point tensor.
    scale, zero_point : of the whole tensor (no dimension, or one element), of each index of `axis`
        (one dimension), or of any shape of the rank of `data` that broadcasts against it. Scales
        are floating-point, zero points integers.
    out_dtype : "int8", "uint8", "int16" or "uint16".

    Raises
    ------
    ValueError : another `out_dtype`.
    """
    return make_call("quantize", data, scale, zero_point, axis=axis, out_dtype=out_dtype)


def dequantize(
    data: RelayExpr,
    scale: RelayExpr,
    zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: str = "float32",
) -> Call:
    """(data - zero_point) * scale, computed in float32.

    Parameters
    ----------
    data : integer tensor.
    scale, zero_point, axis : as in :func:`quantize`.
    out_dtype : floating-point type of the result.

    Raises
    ------
    ValueError : `data` has no integers.
    """
    return make_call("dequantize", data, scale, zero_point, axis=axis, out_dtype=out_dtype)
