"""Taking away blocks that only pass values on."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tir
from tvm.tir.schedule import Schedule

from .analysis import BlockInfo

__all__ = ["try_inline", "try_inline_contiguous_spatial"]


def try_inline(sch: Schedule, blocks: Sequence[BlockInfo]) -> list[BlockInfo]:
    """Compute blocks where they are read, or else what they read where they stand.

    Returns
    -------
    The blocks that are left, in order.
    """
    left = []
    for info in blocks:
        for inline in (sch.compute_inline, sch.reverse_compute_inline):
            if info.is_reduction():
                continue
            try:
                inline(info.block_rv)
            except tir.ScheduleError:
                continue
            break
        else:
            left.append(info)
    return left


def try_inline_contiguous_spatial(
    sch: Schedule, blocks: Sequence[BlockInfo] | None
) -> list[BlockInfo] | None:
    """Inline, as :func:`try_inline` does, among the blocks between two reductions, each run alone.

    Returns
    -------
    The blocks that are left, in order; None where there are none to begin with.
    """
    if blocks is None:
        return None
    left: list[BlockInfo] = []
    run: list[BlockInfo] = []
    for info in blocks:
        if info.is_injective():
            run.append(info)
            continue
        left += [*try_inline(sch, run), info]
        run = []
    return left + try_inline(sch, run)
