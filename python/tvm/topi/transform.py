"""Operators that move elements without changing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from . import tag
from .utils import as_int, const_shape, normalize_axes, normalize_axis

__all__ = [
    "concatenate",
    "expand_dims",
    "flatten",
    "infer_reshape",
    "reshape",
    "split",
    "squeeze",
    "strided_slice",
    "transpose",
]


def infer_reshape(shape: Sequence[int], newshape: Sequence[int]) -> tuple[int, ...]:
    """New shape with a single -1 replaced by what the element count leaves.

    Raises
    ------
    ValueError : the element counts differ, or there is more than one -1.
    """
    target = [as_int(extent) for extent in newshape]
    count = math.prod(shape)
    if target.count(-1) > 1:
        raise ValueError(f"topi.reshape: at most one -1 is allowed, got {tuple(target)}")
    if -1 in target:
        rest = math.prod(extent for extent in target if extent != -1)
        if rest and count % rest == 0:
            target[target.index(-1)] = count // rest
    if math.prod(target) != count or -1 in target:
        raise ValueError(
            f"topi.reshape: {tuple(shape)} has {count} elements and does not fill {tuple(newshape)}"
        )
    return tuple(target)


def reshape(x: te.Tensor, newshape: Sequence[int]) -> te.Tensor:
    """The elements of x in row-major order under another shape; one extent may be -1."""
    shape = const_shape(x.shape)
    target = infer_reshape(shape, newshape)

    def read(*indices: tir.Var) -> tir.PrimExpr:
        flat: Any = 0
        for index, extent in zip(indices, target):
            flat = flat * extent + index
        position: list[Any] = []
        stride = math.prod(shape)
        for extent in shape:
            stride //= extent
            step = flat // stride if stride != 1 else flat
            # The leading digit needs no reduction: the whole index is in range already.
            position.append(step % extent if position else step)
        return x(*position)

    return te.compute(target, read, name="reshape", tag=tag.INJECTIVE)


def flatten(x: te.Tensor) -> te.Tensor:
    """All dimensions but the first merged into one."""
    shape = const_shape(x.shape)
    return reshape(x, (shape[0], math.prod(shape[1:])))


def transpose(x: te.Tensor, axes: Sequence[int] | None = None) -> te.Tensor:
    """Dimension k of the result is dimension axes[k] of x; None reverses the order."""
    shape = const_shape(x.shape)
    order = (
        tuple(reversed(range(len(shape))))
        if axes is None
        else tuple(normalize_axis(as_int(a), len(shape)) for a in axes)
    )
    if sorted(order) != list(range(len(shape))):
        raise ValueError(f"topi.transpose: axes {axes} do not permute {len(shape)} dimensions")
    inverse = [order.index(axis) for axis in range(len(shape))]
    return te.compute(
        [shape[axis] for axis in order],
        lambda *i: x(*(i[k] for k in inverse)),
        name="transpose",
        tag=tag.INJECTIVE,
    )


def expand_dims(x: te.Tensor, axis: int, num_newaxis: int = 1) -> te.Tensor:
    """New dimensions of size 1, the first of them at position axis of the result."""
    shape = const_shape(x.shape)
    at = normalize_axis(axis, len(shape) + 1)
    return te.compute(
        shape[:at] + (1,) * num_newaxis + shape[at:],
        lambda *i: x(*i[:at], *i[at + num_newaxis :]),
        name="expand_dims",
        tag=tag.INJECTIVE,
    )


def squeeze(x: te.Tensor, axis: int | Sequence[int] | None = None) -> te.Tensor:
    """x without the given dimensions of size 1; None drops all of size 1."""
    shape = const_shape(x.shape)
    if axis is None:
        dropped = tuple(k for k, extent in enumerate(shape) if extent == 1)
    else:
        dropped = normalize_axes(axis, len(shape))
    for k in dropped:
        if shape[k] != 1:
            raise ValueError(f"topi.squeeze: dimension {k} of {shape} has size {shape[k]}, not 1")
    kept = [k for k in range(len(shape)) if k not in dropped]
    zero = tir.const(0, "int32")

    def read(*indices: tir.Var) -> tir.PrimExpr:
        own = iter(indices)
        return x(*(next(own) if k in kept else zero for k in range(len(shape))))

    return te.compute([shape[k] for k in kept], read, name="squeeze", tag=tag.INJECTIVE)


def concatenate(tensors: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Tensors joined along one dimension; the other dimensions must agree."""
    if not tensors:
        raise ValueError("topi.concatenate: needs at least one tensor")
    shapes = [const_shape(t.shape) for t in tensors]
    at = normalize_axis(axis, len(shapes[0]))
    for shape in shapes[1:]:
        if shape[:at] + shape[at + 1 :] != shapes[0][:at] + shapes[0][at + 1 :]:
            raise ValueError(
                f"topi.concatenate: {shape} and {shapes[0]} differ outside dimension {at}"
            )
    ends = [sum(shape[at] for shape in shapes[: k + 1]) for k in range(len(shapes))]

    def read(*indices: tir.Var) -> tir.PrimExpr:
        where = indices[at]

        def element(k: int) -> tir.PrimExpr:
            start = ends[k - 1] if k else 0
            return tensors[k](*indices[:at], where - start, *indices[at + 1 :])

        value = element(len(tensors) - 1)
        for k in reversed(range(len(tensors) - 1)):
            value = tir.if_then_else(where < ends[k], element(k), value)
        return value

    out = shapes[0][:at] + (ends[-1],) + shapes[0][at + 1 :]
    return te.compute(out, read, name="concatenate", tag=tag.INJECTIVE)


def strided_slice(
    x: te.Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
) -> te.Tensor:
    """x[begin:end:strides] for each leading dimension given; limits as in Python, strides >= 1."""
    shape = const_shape(x.shape)
    steps = tuple(strides) if strides is not None else (1,) * len(begin)
    if min(steps, default=1) < 1:
        raise ValueError(f"topi.strided_slice: strides must be at least 1, got {steps}")
    ranges = [range(*slice(b, e, s).indices(n)) for b, e, s, n in zip(begin, end, steps, shape)]
    ranges += [range(n) for n in shape[len(ranges) :]]
    return te.compute(
        [len(r) for r in ranges],
        lambda *i: x(*(k if r == range(n) else k * r.step + r.start
                       for k, r, n in zip(i, ranges, shape))),
        name="strided_slice",
        tag=tag.INJECTIVE,
    )  # fmt: skip


def split(x: te.Tensor, sizes: Sequence[int], axis: int = 0) -> list[te.Tensor]:
    """Consecutive pieces of the given sizes along one dimension."""
    shape = const_shape(x.shape)
    at = normalize_axis(axis, len(shape))
    if sum(sizes) != shape[at]:
        raise ValueError(f"topi.split: sizes {tuple(sizes)} do not add up to {shape[at]}")
    pieces, start = [], 0
    for size in sizes:
        begin, end = [0] * len(shape), list(shape)
        begin[at], end[at] = start, start + size
        pieces.append(strided_slice(x, begin, end))
        start += size
    return pieces
