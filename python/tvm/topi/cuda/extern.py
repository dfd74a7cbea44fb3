"""Operators that are written as statements, whose kernels are there already."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from ..schedule_registry import operations_of
from ._common import as_outputs, inline_injective
from .injective import schedule_injective_from_existing

__all__ = [
    "schedule_argsort",
    "schedule_extern",
    "schedule_scan",
    "schedule_scatter",
    "schedule_sort",
    "schedule_topk",
]


def schedule_extern(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule of sorts, running sums, updates at indices, and of what stands around them.

    The operators themselves are kernels, as they were written for a GPU: they have to be made
    under its target. What they read, reductions and results get a kernel each; the rest is
    computed in place.
    """
    outputs = as_outputs(outs)
    s = te.create_schedule([out.op for out in outputs])
    read = [
        tensor
        for stage in s.stages
        if isinstance(stage.op, te.ExternOp)
        for tensor in stage.op.input_tensors
    ]
    inline_injective(s, [*outputs, *read])
    kept = [tensor.op for tensor in (*outputs, *read)]
    for operation in operations_of(outputs):
        if operation in kept or len(operation.reduce_axis):
            schedule_injective_from_existing(s, operation.output(0))
    return s


schedule_sort = schedule_argsort = schedule_topk = schedule_scan = schedule_extern
schedule_scatter = schedule_extern
