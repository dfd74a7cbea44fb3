"""The rule for reductions that need each other, of the same rows."""

from __future__ import annotations

from tvm import tir
from tvm.tir.schedule import Schedule

from ..base import BlockInfo
from .rule import GPUScheduleRule, fuse_all, run_by_threads

__all__ = ["GeneralReduction"]


class GeneralReduction(GPUScheduleRule):
    """A block of threads computes a row: softmax, normalisation, all in one kernel.

    Fits chains of blocks whose outer loops run over the same rows; what passes between them stays
    in shared memory.
    """

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo], most: int) -> bool:
        reductions = [info for info in blocks if info.is_reduction()]
        if len(blocks) < 2 or not reductions:
            return False
        rows = min(len(info.loops("S")) for info in blocks)
        if rows == 0 or len({_extents(info, rows) for info in blocks}) != 1:
            return False
        last = blocks[-1]
        row = fuse_all(sch, last.loops("S")[:rows], last.block_rv)
        sch.bind(row, "blockIdx.x")
        for info in reversed(blocks[:-1]):
            sch.set_scope(info.block_rv, 0, "shared")
            sch.compute_at(info.block_rv, row, preserve_unit_loops=True)
        threads = min(most, 256)
        for info in blocks:
            inner = sch.get_loops(info.block_rv)[1:]
            count = len(info.loops("R"))
            shared = inner[len(inner) - count :] if count else inner
            run_by_threads(sch, fuse_all(sch, shared, info.block_rv), threads)
        return True


def _extents(info: BlockInfo, rows: int) -> tuple[str, ...]:
    return tuple(
        str(int(dom)) if isinstance(dom, tir.IntImm) else str(dom) for dom in info.dom()[:rows]
    )
