"""Work on single elements: whole vectors, several at a time, chunks on all cores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tvm import te, tir
from tvm.target import Target

from ..utils import const_shape, is_constant, prod, simplify, single_output
from .vectors import inline_producers, vector_lanes

__all__ = [
    "schedule_few_last",
    "schedule_injective",
    "schedule_rows",
    "schedule_transposed",
    "transposed_axis",
]

_ELEMENTS = 16
# Elements of a side of the squares in which dimensions change places: their rows and columns
# are read and written a cache line at a time, and stay in the first-level cache in between.
_SQUARE = 16
# Of fewer rows, each is shared by several cores.
_LEAST_ROWS = 64


def schedule_injective(
    output: te.Tensor | Sequence[te.Tensor], vectors: int = 4, target: Target | None = None
) -> te.Schedule:
    """One parallel loop over chunks of `vectors` vectors of the flattened result.

    Parameters
    ----------
    output : each element depends on single elements of the inputs, by way of stages that are
        computed in place. A list of one tensor is that tensor.
    vectors : vectors that one trip computes; their independent chains of operations overlap.
    """
    target = target or Target.current() or Target("llvm")
    output = single_output(output, "schedule_injective")
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    chunk = vectors * vector_lanes(target, output.dtype)
    fused = s[output].fuse(*output.op.axis)
    outer, inner = s[output].split(fused, factor=chunk)
    s[output].parallel(outer)
    s[output].vectorize(inner)
    return s


def schedule_few_last(output: te.Tensor) -> te.Schedule:
    """For a last dimension of a few elements, such as colours: some of the one before written out.

    What is read of an image by planes is so read along its rows, and no loop is as short as the
    last dimension.

    Parameters
    ----------
    output : of rank 3 or more; each element depends on single elements of the inputs.
    """
    s = te.create_schedule(output.op)
    *outer, column, last = output.op.axis
    _, column = s[output].split(column, factor=_ELEMENTS)
    s[output].parallel(s[output].fuse(*outer))
    s[output].unroll(column)
    s[output].unroll(last)
    return s


def schedule_rows(output: te.Tensor, target: Target | None = None) -> te.Schedule:
    """Vectors along the last dimension, whose rows run in parallel.

    What does not vary along a row, such as which of several tensors it is of, is decided once.

    Parameters
    ----------
    output : of rank 2 or more; each element depends on single elements of the inputs.
    """
    target = target or Target.current() or Target("llvm")
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    *rows, last = output.op.axis
    lane, lanes = last, vector_lanes(target, output.dtype)
    if const_shape(output.shape)[-1] > lanes:
        outer, lane = s[output].split(last, factor=lanes)
        if math.prod(const_shape(output.shape)[:-1]) < _LEAST_ROWS:
            rows.append(outer)
    s[output].vectorize(lane)
    s[output].parallel(s[output].fuse(*rows) if len(rows) > 1 else rows[0])
    return s


def schedule_transposed(output: te.Tensor, axis: int) -> te.Schedule:
    """Squares of the last dimension by another, along which the data is stored.

    Parameters
    ----------
    output : each element depends on single elements of the inputs.
    axis : what :func:`transposed_axis` found.
    """
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    *others, last = output.op.axis
    across = others.pop(axis)
    outer, lane = s[output].split(last, factor=min(_SQUARE, int(last.dom.extent)))
    block, across = s[output].split(across, factor=min(_SQUARE, int(across.dom.extent)))
    s[output].reorder(*others, block, outer, across, lane)
    s[output].vectorize(lane)
    rows = [*others, block]
    s[output].parallel(s[output].fuse(*rows) if len(rows) > 1 else block)
    return s


def transposed_axis(output: te.Tensor) -> int | None:
    """The dimension of a result along which the data that it moves is stored, unless the last."""
    axes = [axis.var for axis in output.op.axis]
    extents = const_shape(output.shape)
    found = set()
    for tensor, indices in _reads(output, axes, set()):
        if not is_constant(size := prod(tensor.shape)) or size * 2 <= math.prod(extents):
            continue  # What is repeated stays in cache, however it is read.
        last = simplify(indices[-1])
        found |= {
            k for k, var in enumerate(axes) if isinstance(last, tir.Var) and last.same_as(var)
        }
    found = {k for k in found if k != len(axes) - 1 and extents[k] > 1}
    return found.pop() if len(found) == 1 and extents[-1] >= _SQUARE // 4 else None


def _reads(
    tensor: te.Tensor, indices: Sequence[Any], seen: set[te.Operation]
) -> Iterator[tuple[te.Tensor, list[Any]]]:
    """The inputs that an element is computed from, each with the first place that is read."""
    if tensor.op in seen:
        return
    seen.add(tensor.op)
    if not isinstance(tensor.op, te.ComputeOp):
        if len(indices):
            yield tensor, list(indices)
        return
    places = {axis.var: index for axis, index in zip(tensor.op.axis, indices)}
    loads: list[tir.ProducerLoad] = []

    def visit(node: object) -> None:
        if isinstance(node, tir.ProducerLoad):
            loads.append(node)

    tir.stmt_functor.post_order_visit(tensor.op.body[tensor.value_index], visit)
    for load in loads:
        where = [tir.stmt_functor.substitute(index, places) for index in load.indices]
        yield from _reads(load.producer, where, seen)
