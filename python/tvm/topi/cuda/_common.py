"""What the schedules of operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te

from .. import tag

__all__ = ["as_outputs", "inline_injective", "reduce_across_threads"]


def as_outputs(outs: te.Tensor | Sequence[te.Tensor]) -> list[te.Tensor]:
    """One tensor, or several, as a list."""
    return [outs] if isinstance(outs, te.Tensor) else list(outs)


def inline_injective(
    s: te.Schedule, outs: Sequence[te.Tensor], keep: Sequence[te.Tensor] = ()
) -> None:
    """Compute every injective stage but the outputs and those of `keep` where it is read."""
    kept = [tensor.op for tensor in (*outs, *keep)]
    for stage in list(s.stages):
        op = stage.op
        if any(op.same_as(other) for other in kept) or not isinstance(op, te.ComputeOp):
            continue
        if len(op.reduce_axis) == 0 and (tag.is_injective(op.tag) or not op.tag):
            stage.compute_inline()


def reduce_across_threads(s: te.Schedule, reduced: te.Tensor, loop: Any, threads: int) -> Any:
    """Let `threads` threads of a block add up one element; returns whether a thread is the first.

    Each thread reduces every `threads`-th value, then the threads combine what they have.
    """
    _, lane = s[reduced].split(loop, factor=threads)
    outputs = [reduced.op.output(i) for i in range(reduced.op.num_outputs)]
    parts = s.rfactor(outputs[0], lane)
    part = parts if isinstance(parts, te.Tensor) else parts[0]
    (combined,) = s[reduced].op.reduce_axis
    thread = te.thread_axis((0, threads), "threadIdx.x")
    s[reduced].bind(combined, thread)
    s[part].compute_at(s[reduced], combined)
    return thread.var.equal(0)
