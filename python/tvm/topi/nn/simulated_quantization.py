"""Quantisation computed with real numbers, whose integer type is an operand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import get_const_tuple, normalize_axis

__all__ = [
    "SQNN_CODE_TO_DTYPE",
    "SQNN_DTYPE_TO_CODE",
    "SQNN_INT8",
    "SQNN_INT32",
    "SQNN_UINT8",
    "simulated_dequantize",
    "simulated_quantize",
]

SQNN_DTYPE_TO_CODE = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}
"""Numbers of the types that quantisation is simulated for; "disable" passes values through."""
SQNN_CODE_TO_DTYPE = {code: dtype for dtype, code in SQNN_DTYPE_TO_CODE.items()}
SQNN_INT8, SQNN_UINT8, SQNN_INT32 = (
    SQNN_DTYPE_TO_CODE[dtype] for dtype in ("int8", "uint8", "int32")
)


def _code_of(where: str, dtype: Any) -> Any:
    """The number of a type as an expression."""
    if isinstance(dtype, str):
        if dtype not in SQNN_DTYPE_TO_CODE:
            raise ValueError(
                f"topi.nn.{where}: the types are {', '.join(SQNN_DTYPE_TO_CODE)}, got '{dtype}'"
            )
        return tir.const(SQNN_DTYPE_TO_CODE[dtype], "int32")
    if isinstance(dtype, te.Tensor):
        return dtype[(0,) * len(dtype.shape)]
    return tir.convert(dtype)


def _parameters(data: te.Tensor, axis: int, *parameters: te.Tensor) -> Iterator[Callable[..., Any]]:
    """Scale and zero point at an element of the data, each one number or one for each index."""
    at = normalize_axis(axis, len(data.shape)) if len(data.shape) else 0
    for parameter in parameters:
        shape = get_const_tuple(parameter.shape)
        by_index = len(shape) == 1 and shape[0] != 1
        yield partial(_element, parameter, at if by_index else None, data.dtype)


def _element(parameter: te.Tensor, axis: int | None, dtype: str, *i: Any) -> Any:
    place = (0,) * len(parameter.shape) if axis is None else (i[axis],)
    return parameter[place].astype(dtype)


def simulated_quantize(
    data: te.Tensor,
    out_dtype: te.Tensor | tir.PrimExpr | str,
    output_scale: te.Tensor,
    output_zero_point: te.Tensor,
    axis: int = -1,
) -> te.Tensor:
    """What quantising gives, in the type of the data: data / scale, rounded to even, plus the zero
    point, limited to what the integer type holds.

    Parameters
    ----------
    data : real numbers, any shape.
    out_dtype : the integer type by name, or its number in `SQNN_DTYPE_TO_CODE`, which may be known
        only when it runs: one int32. With "disable" the data passes as it is.
    output_scale, output_zero_point : one number, or (extent of `axis`,).

    Raises
    ------
    ValueError : there is no such type, or no such axis.
    """
    scale, zero = _parameters(data, axis, output_scale, output_zero_point)
    code = _code_of("simulated_quantize", out_dtype)

    def element(*i: Any) -> Any:
        stored = tir.nearbyint(data(*i) / scale(*i)) + zero(*i)
        result = data(*i)
        for dtype, number in SQNN_DTYPE_TO_CODE.items():
            if dtype != "disable":
                low, high = (
                    tir.const(float(limit(dtype).value), data.dtype)
                    for limit in (tir.min_value, tir.max_value)
                )
                limited = tir.max(tir.min(stored, high), low)
                result = tir.Select(code.equal(number), limited, result)
        return result

    return te.compute(data.shape, element, name="simulated_quantize", tag=tag.BROADCAST)


def simulated_dequantize(
    data: te.Tensor,
    in_dtype: te.Tensor | tir.PrimExpr | str,
    input_scale: te.Tensor,
    input_zero_point: te.Tensor,
    axis: int = -1,
) -> te.Tensor:
    """(data - zero point) * scale, for what :func:`simulated_quantize` gave; arguments as there."""
    scale, zero = _parameters(data, axis, input_scale, input_zero_point)
    code = _code_of("simulated_dequantize", in_dtype)
    passed = SQNN_DTYPE_TO_CODE["disable"]
    return te.compute(
        data.shape,
        lambda *i: tir.Select(code.equal(passed), data(*i), (data(*i) - zero(*i)) * scale(*i)),
        name="simulated_dequantize",
        tag=tag.BROADCAST,
    )
