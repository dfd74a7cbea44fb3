"""Elementwise and other injective operators: one element, or one vector, a thread."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from ..utils import as_int, is_constant
from ._common import as_outputs, inline_injective

__all__ = [
    "schedule_broadcast",
    "schedule_elemwise",
    "schedule_injective",
    "schedule_injective_from_existing",
]

_THREADS = 256
# Beyond this many blocks a thread takes several elements, as the grid is large enough then.
_MAX_BLOCKS = 65536


def schedule_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """Bind the loops of one injective stage to blocks and threads."""
    if len(sch[out].op.axis) == 0:
        return sch
    fused = sch[out].fuse(*sch[out].op.axis)
    constant = all(is_constant(extent) for extent in out.shape)
    total = 1
    for extent in out.shape:
        total = total * as_int(extent) if constant else 0
    if constant and total % 4 == 0 and total >= 4 * _THREADS and "float" in str(out.dtype):
        fused, lane = sch[out].split(fused, factor=4)
        sch[out].vectorize(lane)
        total //= 4
    if constant and total > _THREADS * _MAX_BLOCKS:
        rest, fused = sch[out].split(fused, factor=_THREADS * _MAX_BLOCKS)
        block, thread = sch[out].split(fused, factor=_THREADS)
        sch[out].reorder(block, thread, rest)
    else:
        block, thread = sch[out].split(fused, factor=_THREADS)
    sch[out].bind(block, te.thread_axis("blockIdx.x"))
    sch[out].bind(thread, te.thread_axis("threadIdx.x"))
    return sch


def schedule_injective(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule injective operators; all that they are made of is computed in place."""
    outputs = as_outputs(outs)
    s = te.create_schedule([out.op for out in outputs])
    inline_injective(s, outputs)
    for out in outputs:
        schedule_injective_from_existing(s, out)
    return s


schedule_elemwise = schedule_broadcast = schedule_injective
