"""Operators of two tensors, element by element, broadcasting as NumPy does."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from ..expr import Call
from ..struct_info import PrimStructInfo, TensorStructInfo
from . import rules
from .base import make_call
from .registry import register_rule
from .rules import (
    Extents,
    common_dtype,
    common_vdevice,
    known_shape,
    number,
    opaque_tensor,
    with_shape,
)

__all__ = [
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_shape",
    "divide",
    "equal",
    "floor_divide",
    "floor_mod",
    "greater",
    "greater_equal",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "not_equal",
    "power",
    "right_shift",
    "subtract",
]

Operand = RelayExpr | float | int


def broadcast_shape(call: Call, a: Extents, b: Extents) -> Extents | None:
    """The shape that two shapes broadcast to; None if that depends on unknown extents.

    Raises
    ------
    ValueError : the shapes are known not to broadcast.
    """
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    lead = len(longer) - len(shorter)
    shape = list(longer[:lead])
    for x, y in zip(longer[lead:], shorter):
        if number(x) == 1:
            shape.append(y)
        elif number(y) == 1 or rules.equal(x, y):
            shape.append(x)
        elif number(x) is not None and number(y) is not None:
            raise error.ValueError(
                f"{call.op.name}: shapes {list(a)} and {list(b)} do not broadcast: {x} against {y}"
            )
        else:
            return None
    return shape


def _rule(dtype: str | None = None, kinds: str = "") -> Any:
    """The rule of a binary operator.

    Parameters
    ----------
    dtype : element type of the result, if it is not that of the operands.
    kinds : starts of the names of the element types that it takes, separated by blanks.
    """
    accepted = tuple(kinds.split())

    def infer(call: Call) -> TensorStructInfo | PrimStructInfo:
        infos = [arg.struct_info for arg in call.args]
        for info in infos:
            if not isinstance(info, (TensorStructInfo, PrimStructInfo)):
                raise error.TypeError(f"{call.op.name}: operands must be tensors, got {info}")
            if accepted and not str(info.dtype).startswith((*accepted, "void")):
                raise error.TypeError(f"{call.op.name}: does not take tensors of {info.dtype}")
        kind = dtype or common_dtype(call, infos)
        if all(isinstance(info, PrimStructInfo) for info in infos):
            return PrimStructInfo(kind)
        vdevice = common_vdevice(call, infos)
        ranks = [info.ndim if isinstance(info, TensorStructInfo) else 0 for info in infos]
        rank = -1 if -1 in ranks else max(ranks)
        x, y = infos
        a, b = (known_shape(i) if isinstance(i, TensorStructInfo) else [] for i in infos)
        if a is not None and b is not None:
            shape = broadcast_shape(call, a, b)
            return (
                opaque_tensor(kind, rank, vdevice)
                if shape is None
                else with_shape(shape, kind, vdevice)
            )
        both = isinstance(x, TensorStructInfo) and isinstance(y, TensorStructInfo)
        if both and x.shape is not None and x.shape.same_as(y.shape):
            return with_shape(x.shape, kind, vdevice)
        return opaque_tensor(kind, rank, vdevice)

    return infer


_BITS = "int uint bool"


def add(x1: Operand, x2: Operand) -> Call:
    """x1 + x2, broadcasting as NumPy does; so for the operators below."""
    return make_call("add", x1, x2)


def subtract(x1: Operand, x2: Operand) -> Call:
    """x1 - x2."""
    return make_call("subtract", x1, x2)


def multiply(x1: Operand, x2: Operand) -> Call:
    """x1 * x2."""
    return make_call("multiply", x1, x2)


def divide(x1: Operand, x2: Operand) -> Call:
    """x1 / x2."""
    return make_call("divide", x1, x2)


def floor_divide(x1: Operand, x2: Operand) -> Call:
    """x1 / x2 rounded down."""
    return make_call("floor_divide", x1, x2)


def mod(x1: Operand, x2: Operand) -> Call:
    """What remains of x1 / x2 rounded towards zero."""
    return make_call("mod", x1, x2)


def floor_mod(x1: Operand, x2: Operand) -> Call:
    """What remains of x1 / x2 rounded down."""
    return make_call("floor_mod", x1, x2)


def power(x1: Operand, x2: Operand) -> Call:
    """x1 to the power of x2."""
    return make_call("power", x1, x2)


def maximum(x1: Operand, x2: Operand) -> Call:
    """The larger of x1 and x2."""
    return make_call("maximum", x1, x2)


def minimum(x1: Operand, x2: Operand) -> Call:
    """The smaller of x1 and x2."""
    return make_call("minimum", x1, x2)


def equal(x1: Operand, x2: Operand) -> Call:
    """Whether x1 == x2."""
    return make_call("equal", x1, x2)


def not_equal(x1: Operand, x2: Operand) -> Call:
    """Whether x1 != x2."""
    return make_call("not_equal", x1, x2)


def less(x1: Operand, x2: Operand) -> Call:
    """Whether x1 < x2."""
    return make_call("less", x1, x2)


def less_equal(x1: Operand, x2: Operand) -> Call:
    """Whether x1 <= x2."""
    return make_call("less_equal", x1, x2)


def greater(x1: Operand, x2: Operand) -> Call:
    """Whether x1 > x2."""
    return make_call("greater", x1, x2)


def greater_equal(x1: Operand, x2: Operand) -> Call:
    """Whether x1 >= x2."""
    return make_call("greater_equal", x1, x2)


def logical_and(x1: Operand, x2: Operand) -> Call:
    """Whether both are true."""
    return make_call("logical_and", x1, x2)


def logical_or(x1: Operand, x2: Operand) -> Call:
    """Whether either is true."""
    return make_call("logical_or", x1, x2)


def logical_xor(x1: Operand, x2: Operand) -> Call:
    """Whether one of the two is true."""
    return make_call("logical_xor", x1, x2)


def bitwise_and(x1: Operand, x2: Operand) -> Call:
    """Bits that are set in both."""
    return make_call("bitwise_and", x1, x2)


def bitwise_or(x1: Operand, x2: Operand) -> Call:
    """Bits that are set in either."""
    return make_call("bitwise_or", x1, x2)


def bitwise_xor(x1: Operand, x2: Operand) -> Call:
    """Bits that are set in one of the two."""
    return make_call("bitwise_xor", x1, x2)


def left_shift(x1: Operand, x2: Operand) -> Call:
    """Bits of x1 moved x2 places up."""
    return make_call("left_shift", x1, x2)


def right_shift(x1: Operand, x2: Operand) -> Call:
    """Bits of x1 moved x2 places down."""
    return make_call("right_shift", x1, x2)


for _op in ("add", "subtract", "multiply", "divide", "floor_divide", "mod", "floor_mod", "power",
            "maximum", "minimum"):  # fmt: skip
    register_rule(_op, _rule())
for _op in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    register_rule(_op, _rule(dtype="bool"))
for _op in ("logical_and", "logical_or", "logical_xor"):
    register_rule(_op, _rule())
for _op in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
    register_rule(_op, _rule(kinds=_BITS))
