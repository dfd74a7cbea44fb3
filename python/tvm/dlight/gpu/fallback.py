"""The rule for everything."""

from __future__ import annotations

from tvm.tir.schedule import Schedule

from ..base import BlockInfo
from .rule import GPUScheduleRule, fuse_all, run_by_threads, threads_for

__all__ = ["Fallback"]


class Fallback(GPUScheduleRule):
    """A kernel for each block, with a thread for each of its results."""

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo], most: int) -> bool:
        for info in blocks:
            around = info.loops("S") or [sch.add_unit_loop(info.iters[0].loop_rv)]
            results = fuse_all(sch, around, info.block_rv)
            groups = run_by_threads(sch, results, threads_for(sch, results, min(most, 256)))
            sch.bind(groups, "blockIdx.x")
            if info.is_reduction():
                sch.decompose_reduction(info.block_rv, info.loops("R")[0])
        return True
