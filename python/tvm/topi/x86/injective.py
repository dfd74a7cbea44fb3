"""Work on single elements: whole vectors, several at a time, chunks on all cores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import DataType, te, tir
from tvm.target import Target
from tvm.tir.functor import StmtExprVisitor

from ..utils import as_int, const_shape, is_constant, simplify, single_output
from .vectors import inline_producers, vector_lanes

__all__ = [
    "Transposed",
    "find_transposed",
    "joins_odd_rows",
    "schedule_few_last",
    "schedule_injective",
    "schedule_odd_rows",
    "schedule_rows",
    "schedule_transposed",
]

_ELEMENTS = 16
# Elements of a side of the squares in which dimensions change places: their rows and columns
# are read and written a cache line at a time, and stay in the first-level cache in between.
_SQUARE = 16
# At multiples of this, the lines of a square are in few of a cache's sets.
_FAR_BYTES = 1024
# Squares that fill their dimensions are wider: of each line that is read more is used at once.
_WIDE_SQUARE = 32
# Rows of more pieces are decided element by element.
_MOST_PIECES = 8
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

    The last dimensions are one where all data is stored in their order, as in joins of channels.
    What does not vary along a row, such as which of several tensors it is of, is decided once.

    Parameters
    ----------
    output : of rank 2 or more; each element depends on single elements of the inputs.
    """
    target = target or Target.current() or Target("llvm")
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    shape = const_shape(output.shape)
    joined = _joined_dimensions(output)
    rows = list(output.op.axis[:-joined])
    width = math.prod(shape[-joined:])
    last = s[output].fuse(*output.op.axis[-joined:]) if joined > 1 else output.op.axis[-1]
    lane, lanes = last, vector_lanes(target, output.dtype)
    if width > lanes:
        outer, lane = s[output].split(last, factor=lanes)
        if math.prod(shape[:-joined]) < _LEAST_ROWS:
            rows.append(outer)
    s[output].vectorize(lane)
    if rows:
        s[output].parallel(s[output].fuse(*rows) if len(rows) > 1 else rows[0])
    return s


def joins_odd_rows(output: te.Tensor, lanes: int) -> bool:
    """Whether rows are pieces one behind the other, of which one ends inside of a vector.

    Joins decide by the place in the row alone, pads by that of the row among others too.
    """
    value, last = output.op.body[output.value_index], output.op.axis[-1].var
    ends: list[int] = []
    while isinstance(value, tir.Call) and value.op.same_as(tir.op.Op.get("tir.if_then_else")):
        where, _, value = value.args
        found = _borders(where, last)
        if found is None:
            return False
        ends += found
    return 0 < len(ends) < _MOST_PIECES and any(end % lanes for end in ends)


def _borders(condition: Any, last: tir.Var) -> list[int] | None:
    """Where a condition on a place changes along the last dimension; None where that is unclear."""
    if isinstance(condition, tir.And):
        both = [_borders(part, last) for part in (condition.a, condition.b)]
        return None if None in both else [end for ends in both for end in ends or ()]
    uses_last = False

    def visit(node: object) -> None:
        nonlocal uses_last
        uses_last |= isinstance(node, tir.Var) and node.same_as(last)

    tir.stmt_functor.post_order_visit(condition, visit)
    if not uses_last:
        return []
    if not isinstance(condition, (tir.LT, tir.GE, tir.LE)):
        return None
    low, high = condition.a, condition.b
    for place, border in ((low, high), (high, low)):
        if place.same_as(last) and is_constant(border):
            return [int(border)]
    return None


def schedule_odd_rows(output: te.Tensor) -> te.Schedule:
    """A loop for each piece of a row, as `joins_odd_rows` finds them.

    Parameters
    ----------
    output : of rank 2 or more; each element depends on single elements of the inputs.
    """
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    *rows, last = output.op.axis
    s[output].parallel(s[output].fuse(*rows) if len(rows) > 1 else rows[0])
    s[output].pragma(last, "loop_partition_hint", True)
    s[output].vectorize(last)
    return s


def _joined_dimensions(output: te.Tensor) -> int:
    """How many of the last dimensions are one row of memory for all that is read: at least one."""
    extents = const_shape(output.shape)
    for count in range(len(extents), 1, -1):
        if _is_joined(output, extents[-count:], set()):
            return count
    return 1


def _is_joined(tensor: te.Tensor, extents: Sequence[int], seen: set[te.Operation]) -> bool:
    """Whether a stage, and those it is computed from, read their last dimensions in step, or one
    element of all of them."""
    if tensor.op in seen or not isinstance(tensor.op, te.ComputeOp):
        return True
    seen.add(tensor.op)
    own = [axis.var for axis in tensor.op.axis[-len(extents) :]]
    uses = _UsesOfRow(own, extents)
    uses.visit(tensor.op.body[tensor.value_index])
    return not uses.apart and all(_is_joined(read, extents, seen) for read in uses.in_step)


class _UsesOfRow(StmtExprVisitor):
    """What is read at the variables of the last dimensions.

    Attributes
    ----------
    in_step : tensors of the same last dimensions, read at all of the variables in order.
    apart : whether a variable is used in any other way.
    """

    def __init__(self, own: Sequence[tir.Var], extents: Sequence[int]) -> None:
        self._own, self._extents = own, extents
        self.in_step: list[te.Tensor] = []
        self.apart = False

    def visit_producer_load_(self, op: tir.ProducerLoad) -> None:
        count = len(self._own)
        last = op.indices[-count:]
        in_step = len(last) == count and all(
            index.same_as(var) and is_constant(size) and int(size) == extent
            for index, var, size, extent in zip(
                last, self._own, op.producer.shape[-count:], self._extents
            )
        )
        if in_step:
            self.in_step.append(op.producer)
        for index in op.indices[:-count] if in_step else op.indices:
            self.visit_expr(index)

    def visit_var_(self, op: tir.Var) -> None:
        self.apart |= any(op.same_as(var) for var in self._own)


@dataclass(frozen=True)
class Transposed:
    """A result that moves data stored along another dimension than its last.

    Attributes
    ----------
    axis : the dimension of the result along which the data is stored.
    far : whether rows of the data, but not those of the result, are so far apart that the same
        places of several fall into few sets of the first-level cache.
    """

    axis: int
    far: bool = False


def schedule_transposed(output: te.Tensor, moved: Transposed) -> te.Schedule:
    """Squares of the last dimension by another, along which the data is stored.

    Rows of a square are vectors that are interleaved in registers
    (:func:`tvm.tir.transform.TransposeInRegisters`). Squares follow each other along the side whose
    rows are far apart.

    Parameters
    ----------
    output : each element depends on single elements of the inputs.
    moved : what :func:`find_transposed` says of it.
    """
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    *others, last = output.op.axis
    across = others.pop(moved.axis)
    extents = [as_int(axis.dom.extent) for axis in (across, last)]
    whole = all(extent % _WIDE_SQUARE == 0 for extent in extents)
    square = _WIDE_SQUARE if whole else _SQUARE
    outer, lane = s[output].split(last, factor=min(square, extents[1]))
    block, across = s[output].split(across, factor=min(square, extents[0]))
    first, second = (outer, block) if moved.far else (block, outer)
    s[output].reorder(*others, first, second, across, lane)
    s[output].vectorize(lane)
    rows = [*others, first]
    s[output].parallel(s[output].fuse(*rows) if len(rows) > 1 else first)
    return s


def find_transposed(output: te.Tensor) -> Transposed | None:
    """How a result moves data, None where it is stored along the result's last dimension."""
    axes = [axis.var for axis in output.op.axis]
    extents = const_shape(output.shape)
    if extents[-1] < _SQUARE // 4:
        return None
    found = {}
    for tensor, indices in _reads(output, axes, set()):
        if not all(map(is_constant, tensor.shape)):
            continue
        if math.prod(const_shape(tensor.shape)) * 2 <= math.prod(extents):
            continue  # What is repeated stays in cache, however it is read.
        last = simplify(indices[-1])
        for k, var in enumerate(axes[:-1]):
            if isinstance(last, tir.Var) and last.same_as(var) and extents[k] > 1:
                found[k] = tensor, [simplify(index) for index in indices]
    if len(found) != 1:
        return None
    ((axis, (tensor, indices)),) = found.items()
    row = math.prod(extents[axis + 1 :]) * DataType(output.dtype).itemsize
    return Transposed(axis, row % _FAR_BYTES != 0 and _is_far(tensor, indices, axes[-1]))


def _is_far(tensor: te.Tensor, indices: Sequence[Any], var: tir.Var) -> bool:
    """Whether neighbours along the variable compete for the same places of a cache."""
    shape = const_shape(tensor.shape)
    places = [k for k, index in enumerate(indices) if isinstance(index, tir.Var)]
    steps = [math.prod(shape[k + 1 :]) for k in places if indices[k].same_as(var)]
    return any(step * DataType(tensor.dtype).itemsize % _FAR_BYTES == 0 for step in steps)


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
