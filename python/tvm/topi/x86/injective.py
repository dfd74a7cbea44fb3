"""Elementwise work: whole vectors, several at a time, chunks on all cores."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te
from tvm.target import Target

from ..utils import single_output
from .vectors import inline_producers, vector_lanes

__all__ = ["schedule_few_last", "schedule_injective"]

_ELEMENTS = 16


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
