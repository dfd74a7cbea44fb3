"""Arithmetic of two tensors, or a tensor and a number, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import te, tir

from . import tag
from .utils import const_shape

__all__ = [
    "add",
    "broadcast_shape",
    "broadcast_to",
    "divide",
    "maximum",
    "minimum",
    "multiply",
    "power",
    "subtract",
]

Operand = te.Tensor | float | int


def broadcast_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Shape of the result of a broadcasting operator.

    Raises
    ------
    ValueError : the shapes do not broadcast.
    """
    rank = max(len(a), len(b))
    result = []
    for x, y in zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)):
        if x != y and 1 not in (x, y):
            raise ValueError(
                f"topi: shapes {tuple(a)} and {tuple(b)} do not broadcast: {x} against {y}"
            )
        result.append(y if x == 1 else x)
    return tuple(result)


def _read(x: te.Tensor, indices: Sequence[tir.PrimExpr], result: Sequence[int]) -> tir.PrimExpr:
    """Element of x that belongs to an index of the broadcast result."""
    shape = const_shape(x.shape)
    skipped = len(indices) - len(shape)
    # A dimension of size 1 is repeated; where the result's is 1 too, either index is right and
    # keeping the axis leaves the stage elementwise.
    return x(
        *(
            tir.const(0, "int32") if n == 1 and total != 1 else i
            for n, i, total in zip(shape, indices[skipped:], result[skipped:])
        )
    )


def _binary(
    a: Operand, b: Operand, fn: Callable[[tir.PrimExpr, tir.PrimExpr], tir.PrimExpr], name: str
) -> te.Tensor:
    if isinstance(a, te.Tensor) and isinstance(b, te.Tensor):
        if a.dtype != b.dtype:
            raise TypeError(
                f"topi.{name}: operands are {a.dtype} and {b.dtype}; cast one of them first"
            )
        shape_a, shape_b = const_shape(a.shape), const_shape(b.shape)
        shape = broadcast_shape(shape_a, shape_b)
        if shape_a == shape_b:
            return te.compute(shape, lambda *i: fn(a(*i), b(*i)), name=name, tag=tag.ELEMWISE)
        return te.compute(
            shape,
            lambda *i: fn(_read(a, i, shape), _read(b, i, shape)),
            name=name,
            tag=tag.BROADCAST,
        )
    if isinstance(a, te.Tensor):
        right = tir.const(b, a.dtype)
        return te.compute(a.shape, lambda *i: fn(a(*i), right), name=name, tag=tag.ELEMWISE)
    if isinstance(b, te.Tensor):
        left = tir.const(a, b.dtype)
        return te.compute(b.shape, lambda *i: fn(left, b(*i)), name=name, tag=tag.ELEMWISE)
    raise TypeError(f"topi.{name}: at least one operand must be a tensor, got {a!r} and {b!r}")


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
    """a / b of floating-point operands."""
    return _binary(a, b, lambda x, y: x / y, "divide")


def maximum(a: Operand, b: Operand) -> te.Tensor:
    """The larger of a and b."""
    return _binary(a, b, tir.Max, "maximum")


def minimum(a: Operand, b: Operand) -> te.Tensor:
    """The smaller of a and b."""
    return _binary(a, b, tir.Min, "minimum")


def power(a: Operand, b: Operand) -> te.Tensor:
    """a to the power of b."""
    return _binary(a, b, tir.pow, "power")


def broadcast_to(x: te.Tensor, shape: Sequence[int]) -> te.Tensor:
    """x repeated along new dimensions and along those of size 1."""
    shape = tuple(shape)
    if broadcast_shape(const_shape(x.shape), shape) != shape:
        raise ValueError(f"topi.broadcast_to: {const_shape(x.shape)} does not broadcast to {shape}")
    return te.compute(shape, lambda *i: _read(x, i, shape), name="broadcast_to", tag=tag.BROADCAST)
