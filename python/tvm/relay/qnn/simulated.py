"""Quantisation computed with real numbers, whose integer type is an operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error, topi
from tvm.ir import RelayExpr, Type
from tvm.topi.nn.simulated_quantization import SQNN_DTYPE_TO_CODE

from ..expr import Call, const
from ..op.registry import OpPattern, define, make
from ..op.shapes import tensor

__all__ = ["SQNN_DTYPE_TO_CODE", "simulated_dequantize", "simulated_quantize"]


def _same_as_data(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data, code = (tensor("relay.qnn.simulated", t) for t in types[:2])
    if str(code.dtype) != "int32" or len(code.shape) > 1:
        raise error.TypeError(
            f"relay.qnn.simulated: the type is one int32, a number of {SQNN_DTYPE_TO_CODE}, got "
            f"{code}"
        )
    return data


for _name, _compute in (
    ("qnn.simulated_quantize", topi.nn.simulated_quantize),
    ("qnn.simulated_dequantize", topi.nn.simulated_dequantize),
):
    define(
        _name,
        _compute,
        OpPattern.BROADCAST,
        settings={"axis": -1},
        rule=_same_as_data,
        num_inputs=4,
    )


def _code(where: str, dtype: RelayExpr | str) -> RelayExpr:
    if isinstance(dtype, RelayExpr):
        return dtype
    if dtype not in SQNN_DTYPE_TO_CODE:
        raise error.ValueError(
            f"relay.qnn.{where}: the types are {', '.join(SQNN_DTYPE_TO_CODE)}, got '{dtype}'"
        )
    return const(SQNN_DTYPE_TO_CODE[dtype], "int32")


def simulated_quantize(
    data: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: RelayExpr | str = "int8",
) -> Call:
    """What :func:`quantize` gives, in the type of the data.

    Parameters
    ----------
    output_scale, output_zero_point : one number, or one for each index of `axis`.
    out_dtype : "int8", "uint8", "int32", or "disable" for the data as it is; or an int32 expression
        with the number of one in `SQNN_DTYPE_TO_CODE`, so that it is chosen when the program runs.

    Raises
    ------
    ValueError : there is no such type.
    """
    code = _code("simulated_quantize", out_dtype)
    return make("qnn.simulated_quantize", [data, code, output_scale, output_zero_point], axis=axis)


def simulated_dequantize(
    data: RelayExpr,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    axis: int = -1,
    in_dtype: RelayExpr | str = "int8",
) -> Call:
    """(data - zero point) * scale, for what :func:`simulated_quantize` gave; arguments as there."""
    code = _code("simulated_dequantize", in_dtype)
    return make("qnn.simulated_dequantize", [data, code, input_scale, input_zero_point], axis=axis)
