"""Quantised tensors: an integer q stands for (q - zero point) * scale."""

from __future__ import annotations

from tvm import error, te, topi
from tvm.ir import RelayExpr
from tvm.runtime import DataType

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


def _along(parameter: Parameter, x: te.Tensor, axis: int, dtype: str) -> Parameter:
    """A scale or zero point of `dtype` in a shape that broadcasts against `x`."""
    if not isinstance(parameter, te.Tensor):
        return parameter
    shape, rank = topi.utils.get_const_tuple(parameter.shape), len(x.shape)
    if parameter.dtype != dtype:
        parameter = topi.cast(parameter, dtype)
    if len(shape) != 1 or rank == 1:
        return parameter
    if shape == (1,):
        return topi.reshape(parameter, ())
    return topi.reshape(parameter, (*shape, *[1] * (rank - 1 - axis % rank)))


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
    wide = x if x.dtype == "float32" else topi.cast(x, "float32")
    whole = topi.round(topi.divide(wide, _along(scale, x, axis, "float32")))
    shifted = topi.add(whole, _along(zero_point, x, axis, "float32"))
    return topi.cast(topi.clip(shifted, *integer_limits(out_dtype)), out_dtype)


def _dequantize(
    x: te.Tensor,
    scale: Parameter,
    zero_point: Parameter,
    axis: int = -1,
    out_dtype: str = "float32",
) -> te.Tensor:
    if not str(x.dtype).startswith(("int", "uint")):
        raise error.ValueError(f"relax.dequantize: quantised tensors are integers, not {x.dtype}")
    centred = topi.subtract(topi.cast(x, "int32"), _along(zero_point, x, axis, "int32"))
    value = topi.multiply(topi.cast(centred, "float32"), _along(scale, x, axis, "float32"))
    return value if out_dtype == "float32" else topi.cast(value, out_dtype)


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
