"""Scales and zero points as operands of ordinary operators."""

from __future__ import annotations

from tvm import error
from tvm.ir import RelayExpr, TensorType

from .. import op
from ..expr import Constant, const, exact_const

__all__ = ["along", "centred", "is_zero", "number", "require_integers"]

_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32")


def along(parameter: RelayExpr, type_: TensorType, axis: int, data: TensorType) -> RelayExpr:
    """A scale or zero point in a shape that broadcasts against the data."""
    rank = len(data.shape)
    if not len(type_.shape) or rank == 1:
        return parameter
    one = int(type_.shape[0]) == 1
    shape = [] if one else [-1 if k == axis % rank else 1 for k in range(rank)]
    if isinstance(parameter, Constant):
        return exact_const(parameter.data.numpy().reshape(shape))
    return op.reshape(parameter, shape)


def number(parameter: RelayExpr, dtype: str) -> RelayExpr:
    """A scale or zero point in a type; constants stay constants, which later passes look for."""
    if isinstance(parameter, Constant):
        return const(parameter.data.numpy(), dtype)
    return op.cast(parameter, dtype)


def is_zero(parameter: RelayExpr) -> bool:
    return isinstance(parameter, Constant) and not parameter.data.numpy().any()


def centred(data: RelayExpr, zero: RelayExpr) -> RelayExpr:
    """The integers less their zero point, as int32."""
    whole = op.cast(data, "int32")
    return whole if is_zero(zero) else op.subtract(whole, number(zero, "int32"))


def require_integers(dtype: str) -> None:
    """ValueError for a type that holds no quantised tensors."""
    if dtype not in _INTEGERS:
        raise error.ValueError(
            f"relay.qnn: no quantised tensors of {dtype}; use {', '.join(_INTEGERS)}"
        )
