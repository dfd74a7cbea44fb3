"""Reductions: the threads of a block add up one element, or each thread its own."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te
from tvm.target import Target

from ..utils import as_int, is_constant
from ._common import as_outputs, inline_injective, reduce_across_threads

__all__ = ["schedule_reduce"]


def _reduction_of(output: te.Tensor) -> te.Tensor | None:
    """The one reduction an output is made of."""
    found: list[te.Tensor] = []

    def visit(tensor: te.Tensor) -> None:
        if not isinstance(tensor.op, te.ComputeOp):
            return
        if len(tensor.op.reduce_axis) > 0:
            if not any(tensor.op.same_as(known.op) for known in found):
                found.append(tensor)
            return
        for read in tensor.op.input_tensors:
            visit(read)

    visit(output)
    if len(found) > 1:
        names = ", ".join(tensor.op.name for tensor in found)
        raise ValueError(
            f"topi.cuda.schedule_reduce: {output.op.name} is made of several reductions ({names}); "
            "schedule them one by one"
        )
    return found[0] if found else None


def _schedule_one(s: te.Schedule, reduced: te.Tensor, output: te.Tensor, warp: int) -> None:
    loops = list(s[reduced].op.reduce_axis)
    k = s[reduced].fuse(*loops) if len(loops) > 1 else loops[0]
    extent = 1
    for loop in loops:
        extent = extent * as_int(loop.dom.extent) if is_constant(loop.dom.extent) else 0
    is_output = output.op.same_as(reduced.op)
    axes = list(s[output].op.axis)
    # With little to add up a block would mostly wait; then threads have elements of their own.
    if len(axes) > 0 and 0 < extent < warp:
        fused = s[output].fuse(*axes)
        block, thread = s[output].split(fused, factor=128)
        s[output].bind(block, te.thread_axis("blockIdx.x"))
        s[output].bind(thread, te.thread_axis("threadIdx.x"))
        if not is_output:
            s[reduced].compute_at(s[output], thread)
            s[reduced].set_scope("local")
        return
    threads = warp if 0 < extent <= 1024 else 8 * warp
    is_first = reduce_across_threads(s, reduced, k, threads)
    # Without axes this is a loop of one trip.
    block = s[output].fuse(*axes)
    s[output].bind(block, te.thread_axis("blockIdx.x"))
    if not is_output:
        s[reduced].compute_at(s[output], block)
        s[reduced].set_scope("local")
    # All threads have the result; one of them writes it.
    s[output].set_store_predicate(is_first)


def schedule_reduce(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule reductions with elementwise functions before and behind.

    Raises
    ------
    ValueError : an output is made of several reductions.
    """
    outputs = as_outputs(outs)
    target = Target.current(allow_none=True)
    warp = target.thread_warp_size if target is not None else 32
    s = te.create_schedule([out.op for out in outputs])
    inline_injective(s, outputs)
    for output in outputs:
        reduced = _reduction_of(output)
        if reduced is None:
            raise ValueError(
                f"topi.cuda.schedule_reduce: {output.op.name} reduces nothing; use "
                "schedule_injective"
            )
        _schedule_one(s, reduced, output, max(warp, 2))
    return s
