"""Functions of columns: softmax and normalisations over a dimension that is not the last."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tir
from tvm.target import Target

from ..schedule_registry import operations_of
from ..utils import as_int, const_shape
from .vectors import is_costly, vector_lanes

__all__ = ["is_column_function", "schedule_column_function"]

# Neighbouring columns are computed together, in so many vectors: a cache line at least, and more
# where there are enough, since chains of sums and maxima wait for their latency.
_VECTORS = 4
_LEAST_TASKS = 8


def _reduced_axis(operations: Sequence[te.ComputeOp], shape: Sequence[int]) -> int | None:
    """The dimension that every reduction goes over, whole, if it is the same and not the last."""
    found = set()
    for operation in operations:
        if not operation.reduce_axis:
            continue
        if len(operation.reduce_axis) != 1:
            return None
        extent = as_int(operation.reduce_axis[0].dom.extent)
        reduced = list(const_shape(operation.output(0).shape))
        axes = [
            k
            for k in range(len(shape) - 1)
            if shape[k] == extent
            and reduced in ([*shape[:k], *shape[k + 1 :]], [*shape[:k], 1, *shape[k + 1 :]])
            and _reads_along(operation, k)
        ]
        if len(axes) != 1:
            return None
        found.add(axes[0])
    return found.pop() if len(found) == 1 else None


def _reads_along(operation: te.ComputeOp, axis: int) -> bool:
    """Whether the tensors of full rank are read with the reduction's variable at the dimension."""
    (loop,) = operation.reduce_axis
    matches = []

    def visit(node: object) -> None:
        if isinstance(node, tir.ProducerLoad):
            places = [k for k, index in enumerate(node.indices) if index.same_as(loop.var)]
            matches.append(places == [axis] if places else True)

    tir.stmt_functor.post_order_visit(operation.body[0], visit)
    return bool(matches) and all(matches)


def is_column_function(outputs: Sequence[te.Tensor]) -> bool:
    """Whether there is one output, of which each column depends on reductions of it alone."""
    operations = operations_of(outputs)
    if len(outputs) != 1 or not isinstance(outputs[0].op, te.ComputeOp):
        return False
    if outputs[0].op.reduce_axis or any(o.num_outputs > 1 for o in operations):
        return False
    return _reduced_axis(operations, const_shape(outputs[0].shape)) is not None


def schedule_column_function(output: te.Tensor, target: Target | None = None) -> te.Schedule:
    """Some neighbouring columns at a time, which share vectors; blocks of them in parallel.

    Parameters
    ----------
    output : of a computation that :func:`is_column_function` accepts. Functions that several
        stages read are computed once, simple ones where they are read.
    """
    target = target or Target.current() or Target("llvm")
    operations = operations_of([output])
    shape = const_shape(output.shape)
    axis = _reduced_axis(operations, shape)
    assert axis is not None
    s = te.create_schedule(output.op)
    axes = list(output.op.axis)
    lanes = vector_lanes(target, output.dtype)
    blocks, lane = s[output].split(axes[-1], factor=_columns(shape, axis, lanes))
    outer = [*axes[:axis], *axes[axis + 1 : -1], blocks]
    s[output].reorder(*outer, axes[axis], lane)
    row = s[output].fuse(*outer) if len(outer) > 1 else blocks
    s[output].parallel(row)
    s[output].vectorize(lane)
    for operation in operations:
        tensor = operation.output(0)
        if operation.same_as(output.op):
            continue
        readers = sum(any(t.op.same_as(operation) for t in o.input_tensors) for o in operations)
        if not operation.reduce_axis and (readers < 2 or not is_costly(operation)):
            if len(tensor.shape):
                s[tensor].compute_inline()
            continue
        s[tensor].compute_at(s[output], row)
        last = operation.axis[-1]
        if operation.reduce_axis:
            s[tensor].reorder(*operation.axis[:-1], *operation.reduce_axis, last)
        s[tensor].vectorize(last)
    return s


def _columns(shape: Sequence[int], axis: int, lanes: int) -> int:
    """How many columns are computed together."""
    width = shape[-1]
    whole = [n for n in (_VECTORS, 2, 1) if width % (lanes * n) == 0]
    return min(width, lanes * (whole[0] if whole else 1))
