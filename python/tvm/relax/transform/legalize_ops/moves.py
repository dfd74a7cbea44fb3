"""Computations of operators that move elements, of the form that kernels of TVM have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir, topi
from tvm.topi import tag
from tvm.topi.utils import (
    Extent,
    as_int,
    equal_const_int,
    get_const_tuple,
    is_constant,
    normalize_axes,
    normalize_axis,
    simplify,
)

from .digits import digits

__all__ = ["concat", "flatten", "flip", "repeat", "reshape", "take", "tile"]


def _moved(x: te.Tensor, shape: Sequence[Extent], place: Any, name: str) -> te.Tensor:
    return te.compute(shape, lambda *i: x(*place(*i)), name=f"T_{name}", tag=tag.INJECTIVE)


def reshape(x: te.Tensor, shape: Sequence[Extent]) -> te.Tensor:
    """The elements in row-major order under another shape."""
    own = get_const_tuple(x.shape)
    target = topi.infer_reshape(own, shape)
    return _moved(x, target, lambda *i: digits(i, target, own), "reshape")


def flatten(x: te.Tensor) -> te.Tensor:
    """All elements as one row."""
    return reshape(x, (-1,))


def repeat(x: te.Tensor, repeats: int, axis: int | None = None) -> te.Tensor:
    """Each element along an axis, or of all, several times in a row."""
    if axis is None:
        return repeat(flatten(x), repeats, 0)
    return topi.repeat(x, repeats, axis)


def tile(x: te.Tensor, repeats: Sequence[Extent]) -> te.Tensor:
    """The tensor several times along each axis, as NumPy's tile."""
    own, times = get_const_tuple(x.shape), get_const_tuple(repeats)
    rank = max(len(own), len(times))
    padded = (1,) * (rank - len(own)) + own
    times = (1,) * (rank - len(times)) + times
    return _moved(
        x,
        [simplify(n * t) for n, t in zip(padded, times)],
        lambda *i: [
            0 if equal_const_int(n, 1) else index % n for index, n in zip(i[rank - len(own) :], own)
        ],
        "tile",
    )


def flip(x: te.Tensor, axis: int | Sequence[int]) -> te.Tensor:
    """The tensor with the order along some axes reversed."""
    own = get_const_tuple(x.shape)
    at = normalize_axes(axis, len(own))

    def place(*indices: Any) -> list[Any]:
        return [
            index if k not in at else n - 1 - index if is_constant(n) else n - index - 1
            for k, (index, n) in enumerate(zip(indices, own))
        ]

    return _moved(x, own, place, "flip")


def concat(tensors: Sequence[te.Tensor], axis: int | None = 0) -> te.Tensor:
    """Tensors joined along an axis; the last one is asked for first."""
    if axis is None:
        tensors, axis = [flatten(tensor) for tensor in tensors], 0
    shapes = [get_const_tuple(tensor.shape) for tensor in tensors]
    at = normalize_axis(as_int(axis), len(shapes[0]))
    ends: list[Extent] = []
    for shape in shapes:
        ends.append(ends[-1] + shape[at] if ends else shape[at])

    def read(*indices: Any) -> Any:
        value = tensors[0](*indices)
        # Where an element is in the next tensor, one extent after the other.
        where = indices[at]
        for tensor, start, before in zip(tensors[1:], ends, shapes):
            where = indices[at] - start if is_constant(start) else where - before[at]
            begins = indices[at] >= start if is_constant(start) else where >= 0
            element = tensor(*indices[:at], where, *indices[at + 1 :])
            value = tir.if_then_else(begins, element, value)
        return value

    out = (*shapes[0][:at], ends[-1], *shapes[0][at + 1 :])
    return te.compute(out, read, name="T_concat", tag=tag.INJECTIVE)


def take(x: te.Tensor, indices: Any, axis: int | None = None, **settings: Any) -> te.Tensor:
    """Elements along an axis, those that a tensor of indices or one number names."""
    own = get_const_tuple(x.shape)
    if axis is None or settings or not isinstance(indices, int | tir.IntImm):
        return topi.take(x, indices, axis, **settings)
    at = normalize_axis(axis, len(own))
    if not is_constant(own[at]):
        return topi.take(x, indices, axis)
    place = min(max(as_int(indices), 0), own[at] - 1)
    return _moved(x, own[:at] + own[at + 1 :], lambda *i: (*i[:at], place, *i[at:]), "take")
