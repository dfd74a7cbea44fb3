"""Functions of two tensors, or a tensor and a number, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir

from . import tag
from .math import elementwise
from .utils import Extent, equal_const_int, get_const_tuple, is_constant, largest, same_extent

__all__ = [
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_shape",
    "broadcast_to",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "floor_mod",
    "greater",
    "greater_equal",
    "hypot",
    "left_shift",
    "less",
    "less_equal",
    "log_add_exp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "nextafter",
    "not_equal",
    "power",
    "read_broadcast",
    "right_shift",
    "subtract",
]

Operand = Any  # te.Tensor | tir.PrimExpr | float | int, at least one of them a tensor.


def broadcast_shape(a: Sequence[Extent], b: Sequence[Extent]) -> tuple[Extent, ...]:
    """Shape of the result of a broadcasting operator.

    Of a symbolic and a constant extent other than 1, the constant is the result's; of two symbolic
    ones that may differ, the larger.

    Raises
    ------
    ValueError : the shapes do not broadcast.
    """
    rank = max(len(a), len(b))
    result: list[Extent] = []
    for x, y in zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)):
        if equal_const_int(x, 1) or same_extent(x, y):
            result.append(y)
        elif equal_const_int(y, 1):
            result.append(x)
        elif is_constant(x) and is_constant(y):
            raise ValueError(
                f"topi: shapes {tuple(a)} and {tuple(b)} do not broadcast: {x} against {y}"
            )
        else:
            result.append(x if is_constant(x) else y if is_constant(y) else largest(x, y))
    return get_const_tuple(result)


def read_broadcast(x: te.Tensor, indices: Sequence[Any], result: Sequence[Extent]) -> Any:
    """Element of x that belongs to an index of a result it is broadcast to."""
    shape = get_const_tuple(x.shape)
    skipped = len(indices) - len(shape)
    position = []
    for extent, index, total in zip(shape, indices[skipped:], result[skipped:]):
        # Where the result's extent is 1 too, either index is right, and keeping the axis leaves
        # the stage elementwise.
        if same_extent(extent, total):
            position.append(index)
        elif is_constant(extent):
            position.append(tir.const(0, "int32"))
        else:
            position.append(tir.Select(extent == 1, tir.const(0, extent.dtype), index))
    return x(*position)


def _binary(a: Operand, b: Operand, fn: Callable[[Any, Any], Any], name: str) -> te.Tensor:
    if isinstance(a, te.Tensor) and isinstance(b, te.Tensor):
        if a.dtype != b.dtype:
            raise TypeError(
                f"topi.{name}: operands are {a.dtype} and {b.dtype}; cast one of them first"
            )
        shape_a, shape_b = get_const_tuple(a.shape), get_const_tuple(b.shape)
        shape = broadcast_shape(shape_a, shape_b)
        return te.compute(
            shape,
            lambda *i: fn(read_broadcast(a, i, shape), read_broadcast(b, i, shape)),
            name=f"T_{name}",
            tag=tag.BROADCAST,
        )
    if isinstance(a, te.Tensor):
        right = _as_operand(b, a.dtype)
        return elementwise(a, lambda v: fn(v, right), name)
    if isinstance(b, te.Tensor):
        left = _as_operand(a, b.dtype)
        return elementwise(b, lambda v: fn(left, v), name)
    raise TypeError(f"topi.{name}: at least one operand must be a tensor, got {a!r} and {b!r}")


def _as_operand(value: Any, dtype: str) -> Any:
    if isinstance(value, tir.PrimExpr):
        return value.astype(dtype)
    return tir.const(value, dtype)


def _is_float(value: Any) -> bool:
    return value.dtype.startswith(("float", "bfloat"))


def add(a: Operand, b: Operand) -> te.Tensor:
    """a + b."""
    return _binary(a, b, lambda x, y: x + y, "add")


def subtract(a: Operand, b: Operand) -> te.Tensor:
    """a - b."""
    return _binary(a, b, lambda x, y: x - y, "subtract")


def multiply(a: Operand, b: Operand) -> te.Tensor:
    """a * b."""
    return _binary(a, b, lambda x, y: x * y, "multiply")


def divide(a: Operand, b: Operand) -> te.Tensor:
    """a / b; of integers, the quotient rounded towards zero."""
    return _binary(a, b, tir.div, "divide")


def floor_divide(a: Operand, b: Operand) -> te.Tensor:
    """a / b rounded down."""

    def value(x: Any, y: Any) -> Any:
        return tir.floor(x / y) if _is_float(x) else tir.floordiv(x, y)

    return _binary(a, b, value, "floor_divide")


def mod(a: Operand, b: Operand) -> te.Tensor:
    """Remainder of a / b with the sign of a."""
    return _binary(a, b, lambda x, y: (tir.fmod if _is_float(x) else tir.truncmod)(x, y), "mod")


def floor_mod(a: Operand, b: Operand) -> te.Tensor:
    """Remainder of a / b with the sign of b."""

    def value(x: Any, y: Any) -> Any:
        if not _is_float(x):
            return tir.floormod(x, y)
        rest = tir.fmod(x, y)
        zero = tir.const(0, x.dtype)
        return tir.Select(rest * y < zero, rest + y, rest)

    return _binary(a, b, value, "floor_mod")


def maximum(a: Operand, b: Operand) -> te.Tensor:
    """The larger of a and b; NaN where one is."""
    return _binary(a, b, tir.Max, "maximum")


def minimum(a: Operand, b: Operand) -> te.Tensor:
    """The smaller of a and b; NaN where one is."""
    return _binary(a, b, tir.Min, "minimum")


def power(a: Operand, b: Operand) -> te.Tensor:
    """a to the power of b, of floating-point operands."""
    return _binary(a, b, tir.pow, "power")


def atan2(a: Operand, b: Operand) -> te.Tensor:
    """The angle of the point (b, a) in [-pi, pi]."""
    return _binary(a, b, tir.atan2, "atan2")


def copysign(a: Operand, b: Operand) -> te.Tensor:
    """The size of a with the sign of b, which zeros and NaN have, too."""
    return _binary(a, b, tir.copysign, "copysign")


def hypot(a: Operand, b: Operand) -> te.Tensor:
    """sqrt(a * a + b * b), which overflows only where the result does."""
    return _binary(a, b, tir.hypot, "hypot")


def nextafter(a: Operand, b: Operand) -> te.Tensor:
    """The number next to a in the direction of b."""
    return _binary(a, b, tir.nextafter, "nextafter")


def log_add_exp(a: Operand, b: Operand) -> te.Tensor:
    """log(exp(a) + exp(b)) without overflow."""
    return _binary(
        a, b, lambda x, y: tir.Max(x, y) + tir.log1p(tir.exp(-tir.abs(x - y))), "log_add_exp"
    )


def left_shift(a: Operand, b: Operand) -> te.Tensor:
    """a with its bits moved b places up."""
    return _binary(a, b, tir.left_shift, "left_shift")


def right_shift(a: Operand, b: Operand) -> te.Tensor:
    """a with its bits moved b places down; the sign is kept."""
    return _binary(a, b, tir.right_shift, "right_shift")


def greater(a: Operand, b: Operand) -> te.Tensor:
    """a > b; bool."""
    return _binary(a, b, lambda x, y: x > y, "greater")


def greater_equal(a: Operand, b: Operand) -> te.Tensor:
    """a >= b; bool."""
    return _binary(a, b, lambda x, y: x >= y, "greater_equal")


def less(a: Operand, b: Operand) -> te.Tensor:
    """a < b; bool."""
    return _binary(a, b, lambda x, y: x < y, "less")


def less_equal(a: Operand, b: Operand) -> te.Tensor:
    """a <= b; bool."""
    return _binary(a, b, lambda x, y: x <= y, "less_equal")


def equal(a: Operand, b: Operand) -> te.Tensor:
    """a == b; bool."""
    return _binary(a, b, lambda x, y: x == y, "equal")


def not_equal(a: Operand, b: Operand) -> te.Tensor:
    """a != b; bool."""
    return _binary(a, b, lambda x, y: x != y, "not_equal")


def logical_and(a: Operand, b: Operand) -> te.Tensor:
    """Whether both hold; bool operands."""
    return _binary(a, b, tir.all, "logical_and")


def logical_or(a: Operand, b: Operand) -> te.Tensor:
    """Whether at least one holds; bool operands."""
    return _binary(a, b, tir.any, "logical_or")


def logical_xor(a: Operand, b: Operand) -> te.Tensor:
    """Whether exactly one holds; bool operands."""
    return _binary(a, b, lambda x, y: x != y, "logical_xor")


def logical_not(a: te.Tensor) -> te.Tensor:
    """Whether a does not hold; a bool operand."""
    return elementwise(a, tir.Not, "logical_not")


def bitwise_and(a: Operand, b: Operand) -> te.Tensor:
    """Bits set in both."""
    return _binary(a, b, tir.bitwise_and, "bitwise_and")


def bitwise_or(a: Operand, b: Operand) -> te.Tensor:
    """Bits set in either."""
    return _binary(a, b, tir.bitwise_or, "bitwise_or")


def bitwise_xor(a: Operand, b: Operand) -> te.Tensor:
    """Bits set in one only."""
    return _binary(a, b, tir.bitwise_xor, "bitwise_xor")


def bitwise_not(a: te.Tensor) -> te.Tensor:
    """All bits flipped."""
    return elementwise(a, tir.bitwise_not, "bitwise_not")


def broadcast_to(data: te.Tensor, shape: Sequence[Extent]) -> te.Tensor:
    """data repeated along new dimensions and along those of size 1."""
    target = get_const_tuple(shape)
    own = get_const_tuple(data.shape)
    result = broadcast_shape(own, target)
    if len(result) != len(target) or not all(map(same_extent, result, target)):
        raise ValueError(f"topi.broadcast_to: {own} does not broadcast to {target}")
    return te.compute(
        target, lambda *i: read_broadcast(data, i, target), name="T_broadcast_to", tag=tag.BROADCAST
    )
