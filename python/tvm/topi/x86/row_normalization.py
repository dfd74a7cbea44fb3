"""Functions of rows: normalisations and softmax over the last dimensions of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te, tir
from tvm.target import Target

from ..schedule_registry import operations_of
from ..utils import as_int, const_shape, has_size
from .vectors import is_costly, vector_lanes

__all__ = ["is_row_function", "reduce_row", "schedule_row_function", "split_row", "vectorize_row"]

# Sums and maxima that could start while one waits for the one before it.
_LATENCY = 4
# Loops of so few trips are written out: what they keep stays in registers.
_FEW_TRIPS = 4
# Of so few results the rest is added up one by one.
_LEAST_LANES = 4


@dataclass(frozen=True)
class _Rows:
    """The rows of a tensor.

    Attributes
    ----------
    count : how many of the last dimensions they extend over.
    first : the extent along the first of those; the dimension itself may hold several rows, as
        that of channels does in groups of channels.
    """

    count: int
    first: int


def _rows(operations: Sequence[te.ComputeOp], shape: Sequence[int]) -> _Rows | None:
    """What every reduction goes over, in order, if that is the same for all."""
    found = set()
    for operation in operations:
        if not operation.reduce_axis:
            continue
        if not all(has_size(axis.dom.extent) for axis in operation.reduce_axis):
            return None  # as many elements as the data says
        extents = [as_int(axis.dom.extent) for axis in operation.reduce_axis]
        count = len(extents)
        if count > len(shape):
            return None
        lead, last = list(shape[: len(shape) - count]), list(shape[len(shape) - count :])
        reduced = list(const_shape(operation.output(0).shape))
        if extents == last:
            if reduced not in (lead, [*lead, 1], [*lead, *[1] * count]):
                return None
        elif (
            extents[1:] != last[1:]
            or reduced != [*lead, last[0] // extents[0]]
            or last[0] % extents[0]
        ):
            return None
        found.add(_Rows(count, extents[0]))
    return found.pop() if len(found) == 1 else None


def is_row_function(outputs: Sequence[te.Tensor]) -> bool:
    """Whether there is one output, and each row of it depends on reductions of rows alone."""
    operations = operations_of(outputs)
    if len(outputs) != 1 or not isinstance(outputs[0].op, te.ComputeOp):
        return False
    if outputs[0].op.reduce_axis:
        return False
    shape = const_shape(outputs[0].shape)
    rows = _rows(operations, shape)
    if rows is None or any(o.num_outputs > 1 for o in operations):
        return False
    lead = shape[: len(shape) - rows.count]
    if not lead and rows.first == shape[0]:
        return False
    plain = [o for o in operations if not o.reduce_axis]
    return all(
        const_shape(o.output(0).shape)[: len(lead)] == lead
        for o in plain
        if len(o.axis) == len(shape) and not _is_of_constants(o, lead)
    )


def _is_of_constants(operation: te.ComputeOp, lead: Sequence[int]) -> bool:
    """Whether a stage has no rows of its own, as factors that are repeated for every row."""
    return all(as_int(axis.dom.extent) == 1 for axis in operation.axis[: len(lead)])


def schedule_row_function(output: te.Tensor, target: Target | None = None) -> te.Schedule:
    """Rows in parallel; what is computed of a row stays in the first-level cache.

    Parameters
    ----------
    output : of a computation that :func:`is_row_function` accepts. Functions that several stages
        read, such as the powers of a softmax, are computed once; simple ones where they are read.
    """
    target = target or Target.current() or Target("llvm")
    operations = operations_of([output])
    shape = const_shape(output.shape)
    rows = _rows(operations, shape)
    assert rows is not None
    s = te.create_schedule(output.op)
    lead = list(output.op.axis[: len(shape) - rows.count])
    along = list(output.op.axis[len(lead) :])
    width = rows.first * math.prod(shape[len(lead) + 1 :])
    grouped = rows.first != shape[len(lead)]
    if grouped:
        outer, along[0] = s[output].split(along[0], factor=rows.first)
        s[output].reorder(*lead, outer, *along)
        lead.append(outer)
    row = s[output].fuse(*lead) if len(lead) > 1 else lead[0]
    s[output].parallel(row)
    readers = {
        o: [r for r in operations if any(t.op.same_as(o) for t in r.input_tensors)]
        for o in operations
    }
    for operation in operations:
        tensor = operation.output(0)
        if operation.reduce_axis:
            reduce_row(s, tensor, output, row, target)
        elif not operation.same_as(output.op):
            if len(readers[operation]) > 1 and is_costly(operation) and len(tensor.shape):
                s[tensor].compute_at(s[output], row)
                vectorize_row(s, tensor, operation.axis[-rows.count :], width, target)
            else:
                s[tensor].compute_inline()
    if grouped and len(along) > 1:
        # Factors of a channel are the same for all its elements: channel by channel.
        along, width = along[1:], width // rows.first
    vectorize_row(s, output, along, width, target)
    return s


def _lanes(width: int, target: Target, dtype: str, latency: int) -> int:
    """Elements at a time for which a row takes least: some vectors, or a part of one.

    Parameters
    ----------
    latency : instructions that could start while one waits for the step before it; 1 for steps that
        do not depend on each other.
    """
    whole = vector_lanes(target, dtype)

    def steps(lanes: int) -> int:
        chunks, rest = divmod(width, lanes)
        # What does not fill a chunk takes vectors of half the width, a quarter, ...
        return chunks * max(lanes // whole, latency) + rest.bit_count() * latency

    choices = [lanes for n in (4, 2, 1) if (lanes := whole * n) <= width]
    choices += [whole // n for n in (2, 4) if _LEAST_LANES <= whole // n <= width]
    return min(choices, key=steps, default=whole)


def vectorize_row(
    s: te.Schedule, tensor: te.Tensor, loops: Sequence[tir.IterVar], width: int, target: Target
) -> None:
    """Whole vectors along the last loops of a stage, of `width` trips, some at a time."""
    if width == 1:
        return
    loop = s[tensor].fuse(*loops) if len(loops) > 1 else loops[0]
    lanes = _lanes(width, target, tensor.dtype, 1)
    outer, lane = s[tensor].split(loop, factor=lanes)
    s[tensor].vectorize(lane)
    if width <= _FEW_TRIPS * lanes:
        s[tensor].unroll(outer)


def reduce_row(
    s: te.Schedule, reduced: te.Tensor, output: te.Tensor, row: tir.IterVar, target: Target
) -> None:
    """Reduce in vectors of partial results, in a loop of the output's."""
    s[reduced].compute_at(s[output], row)
    for partial in split_row(s, reduced, target):
        s[partial].compute_at(s[output], row)


def split_row(
    s: te.Schedule, reduced: te.Tensor, target: Target, lanes: int | None = None
) -> list[te.Tensor]:
    """Reduce in vectors of partial results; the stages of these, which are yet to be placed.

    Parameters
    ----------
    lanes : partial results at first; by default those that take least.
    """
    loops = list(reduced.op.reduce_axis)
    width = math.prod(as_int(loop.dom.extent) for loop in loops)
    lanes = lanes or _lanes(width, target, reduced.dtype, _LATENCY)
    if width < lanes:
        return []
    loop = s[reduced].fuse(*loops) if len(loops) > 1 else loops[0]
    partials = []
    # Halved again and again: a chain through all lanes would wait for each of its steps.
    while lanes >= _LEAST_LANES:
        _, lane = s[reduced].split(loop, factor=lanes)
        # Last, so that the partial results of a row lie side by side.
        partial = s.rfactor(reduced, lane, -1)
        partials.append(partial)
        *rest, lane = s[partial].op.axis
        (outer,) = s[partial].op.reduce_axis
        s[partial].reorder(*rest, outer, lane)
        s[partial].vectorize(lane)
        if width <= _FEW_TRIPS * lanes:
            s[partial].unroll(outer)
        width = lanes
        (loop,) = s[reduced].op.reduce_axis
        lanes //= 2
    s[reduced].unroll(loop)
    return partials
