"""Reductions of rows, and of whatever stands around the last dimension."""

from __future__ import annotations

import math

from tvm import te, tir
from tvm.target import Target

from ..utils import as_int
from .row_normalization import split_row
from .vectors import inline_producers

__all__ = ["reduces_rows", "schedule_reduce_columns", "schedule_reduce_rows"]

# Reductions shorter than this stay in the nearest cache whatever their order.
_LONG_COLUMN = 32
# A number that all elements go into is made of those of chunks.
_MOST_CHUNKS = 64
_LEAST_CHUNK = 2048
# Enough for the threads to share.
_LEAST_TILES = 4


def reduces_rows(reduced: te.Tensor) -> bool:
    """Whether a stage reduces over all of the last dimensions of what it reads first."""
    axes = reduced.op.reduce_axis
    source = reduced.op.input_tensors[0]
    rows = source.shape[len(source.shape) - len(axes) :]
    if [as_int(axis.dom.extent) for axis in axes] != [as_int(extent) for extent in rows]:
        return False
    places: list[bool] = []

    def visit(node: object) -> None:
        if isinstance(node, tir.ProducerLoad) and node.producer.same_as(source):
            last = list(node.indices)[-len(axes) :]
            places.append(all(i.same_as(a.var) for i, a in zip(last, axes, strict=True)))

    tir.stmt_functor.post_order_visit(reduced.op.body[0], visit)
    return bool(places) and all(places)


def schedule_reduce_columns(reduced: te.Tensor, output: te.Tensor, lanes: int) -> te.Schedule:
    """Neighbours along the last dimension, each with a reduction of its own, share a vector.

    Parameters
    ----------
    reduced : reduces, but not over the last dimension; windows of NHWC data, for instance.
    output : `reduced`, or an elementwise function of it.
    lanes : elements of a vector, which divide the last dimension.
    """
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    *outer, last = output.op.axis
    vectors = _vectors_side_by_side(reduced, lanes)
    tile, column = s[output].split(last, factor=vectors * lanes)
    vector, lane = s[output].split(column, factor=lanes)
    row = s[output].fuse(*outer, tile)
    s[output].parallel(row)
    s[output].unroll(vector)
    s[output].vectorize(lane)
    if output.op.same_as(reduced.op):
        s[output].reorder(*s[output].op.reduce_axis, vector, lane)
    else:
        s[reduced].compute_at(s[output], row)
        *_, last = s[reduced].op.axis
        vector, lane = s[reduced].split(last, factor=lanes)
        s[reduced].reorder(*s[reduced].op.reduce_axis, vector, lane)
        s[reduced].unroll(vector)
        s[reduced].vectorize(lane)
    return s


def _vectors_side_by_side(reduced: te.Tensor, lanes: int) -> int:
    """Vectors of neighbours that are reduced at a time.

    Down one column of vectors each load is of another page, which no prefetcher follows. Windows
    are read again by their neighbours, from the nearest cache.
    """
    *outer, columns = (as_int(extent) for extent in reduced.shape)
    if math.prod(as_int(loop.dom.extent) for loop in reduced.op.reduce_axis) < _LONG_COLUMN:
        return 1
    tiles = math.prod(outer) * columns // lanes
    return next(
        count
        for count in range(8, 0, -1)
        if columns % (count * lanes) == 0 and (tiles >= _LEAST_TILES * count or count == 1)
    )


def schedule_reduce_rows(
    reduced: te.Tensor,
    output: te.Tensor,
    target: Target | None = None,
    lanes: int | None = None,
) -> te.Schedule:
    """Vectors along the reduction hold partial results, combined at the end.

    Parameters
    ----------
    reduced : reduces over the last dimensions of what it reads, all of them whole or the last.
    output : `reduced`, or an elementwise function of it; also a single number.
    lanes : partial results at first; by default those that take least.
    """
    target = target or Target.current() or Target("llvm")
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    if not output.op.axis:
        _reduce_all(s, reduced, target, lanes)
        return s
    partials = split_row(s, reduced, target, lanes)
    row = s[output].fuse(*output.op.axis)
    s[output].parallel(row)
    if not output.op.same_as(reduced.op):
        s[reduced].compute_at(s[output], row)
    for partial in partials:
        s[partial].compute_at(s[output], row)
    return s


def _reduce_all(s: te.Schedule, reduced: te.Tensor, target: Target, lanes: int | None) -> None:
    """To a single number: of chunks in parallel, if there are enough elements, and of these."""
    loops = list(reduced.op.reduce_axis)
    size = math.prod(as_int(loop.dom.extent) for loop in loops)
    counts = range(min(_MOST_CHUNKS, size // _LEAST_CHUNK), 1, -1)
    chunks = next((count for count in counts if size % count == 0), 1)
    if chunks == 1:
        split_row(s, reduced, target, lanes)
        return
    loop = s[reduced].fuse(*loops) if len(loops) > 1 else loops[0]
    chunk, _ = s[reduced].split(loop, nparts=chunks)
    sums = s.rfactor(reduced, chunk)
    partials = split_row(s, sums, target, lanes)
    (row,) = s[sums].op.axis
    s[sums].parallel(row)
    for partial in partials:
        s[partial].compute_at(s[sums], row)
