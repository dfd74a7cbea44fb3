"""Operators over tensors that are made of others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import error, tir
from tvm.ir import RelayExpr

from ..expr import Call, PrimValue, Tuple, const
from .base import make_call
from .binary import add, equal, less_equal, maximum, minimum, multiply, subtract
from .create import arange, astype
from .manipulate import broadcast_to, concat, expand_dims, reshape, squeeze
from .rules import known_shape, number
from .selection import take, where
from .statistical import cumsum, sum
from .unary import abs, exp, negative

__all__ = [
    "atan2",
    "bucketize",
    "eye",
    "eye_like",
    "gather_nd",
    "index_tensor",
    "log_add_exp",
    "meshgrid",
    "multinomial_from_uniform",
    "one_hot",
    "outer",
    "scatter_nd",
    "slice_scatter",
    "stack",
]


def _shape(x: RelayExpr, name: str) -> list:
    shape = known_shape(x.struct_info)
    if shape is None:
        raise error.ValueError(f"relax.{name}: the shape must be known, got {x.struct_info}")
    return shape


def _parts(tensors: RelayExpr | Sequence[RelayExpr]) -> list[RelayExpr]:
    return list(tensors.fields) if isinstance(tensors, Tuple) else list(tensors)


def stack(tensors: RelayExpr | Sequence[RelayExpr], axis: int = 0) -> Call:
    """Tensors of one shape joined along a new axis, which is at `axis` of the result."""
    parts = _parts(tensors)
    if not parts:
        raise error.ValueError("relax.stack: needs at least one tensor")
    rank = parts[0].struct_info.ndim + 1
    if not -rank <= axis < rank:
        raise error.IndexError(f"relax.stack: axis {axis} is out of range for {rank} dimensions")
    return concat([expand_dims(part, axis % rank) for part in parts], axis % rank)


def meshgrid(tensors: RelayExpr | Sequence[RelayExpr], indexing: str = "ij") -> Tuple:
    """Coordinates of a grid: each vector along an axis of its own, repeated along the others.

    Parameters
    ----------
    indexing : "ij" for axes in order, "xy" with the first two exchanged.

    Returns
    -------
    Tuple of as many tensors.
    """
    if indexing not in ("ij", "xy"):
        raise error.ValueError(f"relax.meshgrid: indexing is 'ij' or 'xy', got {indexing!r}")
    parts = _parts(tensors)
    places = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        places[:2] = [1, 0]
    lengths = [_shape(part, "meshgrid")[0] for part in parts]
    full = [lengths[places.index(k)] for k in range(len(parts))]
    grids = []
    for part, place, length in zip(parts, places, lengths):
        own = [length if k == place else 1 for k in range(len(parts))]
        grids.append(broadcast_to(reshape(part, own), full))
    return Tuple(grids)


def outer(x1: RelayExpr, x2: RelayExpr) -> Call:
    """Products of all pairs of elements of two vectors, (n,) and (m,) give (n, m)."""
    ranks = [x.struct_info.ndim for x in (x1, x2)]
    if ranks != [1, 1]:
        raise error.ValueError(f"relax.outer: takes vectors, got tensors of {ranks} dimensions")
    return multiply(expand_dims(x1, 1), expand_dims(x2, 0))


def multinomial_from_uniform(
    prob: RelayExpr,
    uniform_sample: RelayExpr,
    sample_indices: RelayExpr | None = None,
    dtype: str = "int64",
) -> Call:
    """Choices with the probabilities of rows.

    Parameters
    ----------
    prob : (rows, choices), of which each row sums up to one.
    uniform_sample : (samples, 1), from 0 on, below 1: a sample is the first choice whose sum of
        probabilities up to it exceeds its number.
    sample_indices : (samples, 1), the row of each sample; by default its own.
    dtype : of the result, which is (samples, 1).

    Raises
    ------
    ValueError : the shape of `prob` is not of two known extents.
    """
    rows, choices = _shape(prob, "multinomial_from_uniform")
    sums = cumsum(prob, axis=1)
    if sample_indices is not None:
        sums = take(sums, squeeze(sample_indices, [1]), axis=0)
    passed = sum(astype(less_equal(sums, uniform_sample), dtype), axis=[1], keepdims=True)
    # Sums are rounded, so the last one may be below a number that is below 1.
    return minimum(passed, PrimValue(tir.Cast(dtype, choices - 1)))


def one_hot(
    indices: RelayExpr,
    on_value: float | int | PrimValue,
    off_value: float | int | PrimValue,
    depth: int,
    axis: int = -1,
) -> Call:
    """A new axis of `depth` elements: one value at the index, another everywhere else.

    Parameters
    ----------
    indices : integers; one outside of [0, depth) has no element of `on_value`.
    on_value, off_value : numbers of one type, which is that of the result.
    axis : of the result.
    """
    rank = indices.struct_info.ndim + 1
    if not -rank <= axis < rank:
        raise error.IndexError(f"relax.one_hot: axis {axis} is out of range for {rank} dimensions")
    at = axis % rank
    kind = str(indices.struct_info.dtype)
    places = reshape(arange(0, depth, 1, kind), [depth if k == at else 1 for k in range(rank)])
    on, off = (
        const(v.value.value, str(v.value.dtype)) if isinstance(v, PrimValue) else const(v)
        for v in (on_value, off_value)
    )
    return where(equal(expand_dims(indices, at), places), on, off)


def eye(n: int, m: int | None = None, k: int = 0, dtype: str = "float32") -> Call:
    """(n, m) with ones where the column is the row plus `k`, zeros elsewhere; m is n by default."""
    rows = expand_dims(arange(0, n, 1, "int64"), 1)
    columns = expand_dims(arange(0, n if m is None else m, 1, "int64"), 0)
    return astype(equal(columns, add(rows, const(k, "int64"))), dtype)


def eye_like(x: RelayExpr, k: int = 0, dtype: str | None = None) -> Call:
    """:func:`eye` in the shape of a matrix, whose type is the default."""
    rows, columns = _shape(x, "eye_like")
    return eye(rows, columns, k, dtype or str(x.struct_info.dtype))


def index_tensor(data: RelayExpr, indices: RelayExpr | Sequence[RelayExpr]) -> Call:
    """data[indices[0], indices[1], ...] with tensors of integers that broadcast, as in NumPy.

    Negative indices count from the end.
    """
    parts = _parts(indices)
    return make_call("index_tensor", data, Tuple(parts), axes=list(range(len(parts))), out_axis=0)


def gather_nd(data: RelayExpr, indices: RelayExpr, batch_dims: int = 0) -> Call:
    """Slices of data at tuples of indices.

    Parameters
    ----------
    indices : integers (..., depth): the last axis is an index into the axes of data behind
        `batch_dims`; negative numbers count from the end.
    batch_dims : leading axes that data and indices share.
    """
    return make_call("gather_nd", data, indices, batch_dims=batch_dims)


def scatter_nd(
    data: RelayExpr, indices: RelayExpr, updates: RelayExpr, reduction: str = "update"
) -> Call:
    """data with slices at tuples of indices replaced by, or combined with, updates.

    Parameters
    ----------
    indices : integers (..., depth), as in :func:`gather_nd`.
    reduction : "update", "add", "mul", "min" or "max".
    """
    return make_call("scatter_nd", data, indices, updates, reduction=reduction)


def slice_scatter(
    input_tensor: RelayExpr, src: RelayExpr, start: int, end: int, step: int = 1, axis: int = 0
) -> Call:
    """input_tensor with its slice [start:end:step] along an axis replaced by `src`."""
    shape = _shape(input_tensor, "slice_scatter")
    if not -len(shape) <= axis < len(shape):
        raise error.IndexError(f"relax.slice_scatter: axis {axis} is out of range for {shape}")
    at = axis % len(shape)
    extents = [number(extent) for extent in shape[: at + 1]]
    if None in extents:
        raise error.ValueError(f"relax.slice_scatter: axes up to {at} must be fixed, got {shape}")
    begin, stop = [0] * at + [start], [*extents[:at], end]
    return make_call(
        "strided_set", input_tensor, src, begin=begin, end=stop, strides=[1] * at + [step]
    )


def bucketize(
    input_tensor: RelayExpr, boundaries: RelayExpr, out_int32: bool = False, right: bool = False
) -> Call:
    """Which bucket each element belongs to: how many rising boundaries lie below it.

    Parameters
    ----------
    right : whether a boundary that equals the element counts.
    out_int32 : int32 rather than int64.
    """
    dtype = "int32" if out_int32 else "int64"
    return make_call("searchsorted", boundaries, input_tensor, right=right, out_dtype=dtype)


def atan2(x1: RelayExpr, x2: RelayExpr) -> Call:
    """The angle of the point (x2, x1), in [-pi, pi]."""
    return make_call("atan2", x1, x2)


def log_add_exp(x1: RelayExpr, x2: RelayExpr) -> Call:
    """log(exp(x1) + exp(x2)), which does not overflow."""
    # Of equal operands, also infinite ones, the difference says nothing.
    twice = add(x1, const(math.log(2), str(x1.struct_info.dtype)))
    rest = make_call("log1p", exp(negative(abs(subtract(x1, x2)))))
    return where(equal(x1, x2), twice, add(maximum(x1, x2), rest))
