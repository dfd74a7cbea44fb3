"""Which hand-written schedule an operator gets on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te
from tvm.target import Target

from .. import tag
from ..schedule_registry import operations_of, register_schedule
from .conv2d_nchw import schedule_conv2d_nchw
from .extern import schedule_extern
from .injective import schedule_injective, schedule_injective_from_existing
from .reduction import schedule_reduce
from .softmax import schedule_softmax

__all__: list[str] = []


def _reductions(outputs: Sequence[te.Tensor]) -> int:
    return sum(len(operation.reduce_axis) > 0 for operation in operations_of(outputs))


def _has_statements(outputs: Sequence[te.Tensor]) -> bool:
    stages = te.create_schedule([tensor.op for tensor in outputs]).stages
    return any(isinstance(stage.op, te.ExternOp) for stage in stages)


@register_schedule("injective", "gpu")
def _injective(
    output: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    return schedule_extern(outputs) if _has_statements(outputs) else schedule_injective(outputs)


@register_schedule(tag.COMM_REDUCE, "gpu")
def _reduce(reduced: te.Tensor, outputs: Sequence[te.Tensor], target: Target) -> te.Schedule | None:
    if len(outputs) != 1 or _reductions(outputs) != 1 or _has_statements(outputs):
        return None
    with target:
        return schedule_reduce(outputs)


@register_schedule(tag.SOFTMAX, "gpu")
def _softmax(norm: te.Tensor, outputs: Sequence[te.Tensor], target: Target) -> te.Schedule | None:
    return schedule_softmax(norm) if norm.op.same_as(outputs[0].op) else None


@register_schedule("conv2d_nchw", "gpu")
def _conv2d_nchw(
    conv: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if len(outputs) != 1 or _reductions(outputs) != 1 or len(outputs[0].shape) != 4:
        return None
    return schedule_conv2d_nchw(outputs)


@register_schedule("", "gpu")
def _one_element_a_thread(
    output: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    """A kernel for each reduction and each result; what stands between is computed in place."""
    if _has_statements(outputs):
        return schedule_extern(outputs)
    s = te.create_schedule([out.op for out in outputs])
    roots = [out.op for out in outputs]
    for operation in operations_of(outputs):
        if operation in roots or len(operation.reduce_axis):
            schedule_injective_from_existing(s, operation.output(0))
        else:
            s[operation].compute_inline()
    return s
