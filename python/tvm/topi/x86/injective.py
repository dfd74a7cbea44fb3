"""Elementwise work: whole vectors, several at a time, chunks on all cores."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te
from tvm.target import Target

from ..utils import single_output
from .conv2d import vector_lanes

__all__ = ["schedule_injective"]


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


def inline_producers(s: te.Schedule, output: te.Tensor, first: te.Tensor | None = None) -> None:
    """Compute every elementwise stage before `output` in the place that reads it.

    Parameters
    ----------
    first : the stage where this ends, computed in place as well; what it reads stays.
    """
    pending, seen = [output], {output.op}
    while pending:
        tensor = pending.pop()
        if first is not None and tensor.op.same_as(first.op):
            continue
        for operand in tensor.op.input_tensors:
            if not isinstance(operand.op, te.ComputeOp) or operand.op in seen:
                continue
            seen.add(operand.op)
            pending.append(operand)
            if not operand.op.reduce_axis and len(operand.shape):
                s[operand].compute_inline()
