"""Softmax: a block for each row, with both of its reductions across the threads."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from ..utils import as_int, is_constant
from ._common import as_outputs, reduce_across_threads

__all__ = ["schedule_softmax"]

_THREADS = 64


def schedule_softmax(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule :func:`topi.nn.softmax` or :func:`topi.nn.log_softmax` as one kernel.

    Raises
    ------
    ValueError : `outs` is something else.
    """
    (output,) = as_outputs(outs)
    if "axis" not in output.op.attrs:
        raise ValueError(
            f"topi.cuda.schedule_softmax: {output.op.name} is no softmax; pass the result of "
            "topi.nn.softmax or log_softmax"
        )
    axis = as_int(output.op.attrs["axis"])
    s = te.create_schedule(output.op)
    reductions = []
    for stage in list(s.stages):
        if not isinstance(stage.op, te.ComputeOp) or stage.op.same_as(output.op):
            continue
        if len(stage.op.reduce_axis) > 0:
            reductions.append(stage.op.output(0))
        else:
            # The exponentials are cheaper to compute again than to keep.
            stage.compute_inline()
    axes = list(s[output].op.axis)
    along = axes.pop(axis)
    s[output].reorder(*axes, along)
    threads = _THREADS
    if is_constant(output.shape[axis]):
        threads = min(threads, as_int(output.shape[axis]))
    thread = te.thread_axis((0, threads), "threadIdx.x")
    outer, inner = s[output].split(along, factor=threads)
    s[output].bind(inner, thread)
    s[output].reorder(*axes, outer, inner)
    if not axes:
        # A single row: a loop of one trip is the block.
        block, outer = s[output].split(outer, nparts=1)
    else:
        block = s[output].fuse(*axes)
    s[output].bind(block, te.thread_axis("blockIdx.x"))
    for reduced in reductions:
        reduce_across_threads(s, reduced, s[reduced].op.reduce_axis[0], threads)
        s[reduced].compute_at(s[output], block)
        s[reduced].set_scope("local")
    return s
