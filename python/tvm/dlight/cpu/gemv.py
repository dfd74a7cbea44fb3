"""The rule for products of a matrix and a vector."""

from __future__ import annotations

from tvm.tir.schedule import Schedule

from ..base import BlockInfo
from ..gpu.gemv import is_gemv
from ..gpu.reduction import is_one_reduction, reads_along_the_reduction
from ..gpu.rule import fuse_all
from .rule import CPUScheduleRule

__all__ = ["GEMV"]

_ROWS, _LANES = 4, 16


class GEMV(CPUScheduleRule):
    """Threads compute rows, in vectors: along the sum, or of columns that lie beside each other.

    Fits sums of products of two elements, of which one is the same for all rows.
    """

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo]) -> bool:
        if not is_one_reduction(blocks) or not is_gemv(sch, blocks[0]):
            return False
        main = blocks[0].block_rv
        around = blocks[0].loops("S") or [sch.add_unit_loop(blocks[0].iters[0].loop_rv)]
        rows = fuse_all(sch, around, main)
        steps = fuse_all(sch, blocks[0].loops("R"), main)
        if reads_along_the_reduction(sch, blocks[0]):
            group, row = sch.split(rows, factors=[None, _ROWS])
            part, lane = sch.split(steps, factors=[None, _LANES])
            sch.reorder(group, row, part, lane)
            sums = sch.rfactor(lane, 0)
            group, row, _ = sch.get_loops(main)
            sch.set_scope(sums, 0, "local")
            sch.compute_at(sums, row, preserve_unit_loops=True)
            lane, _, part = sch.get_loops(sums)[2:]
            sch.reorder(part, lane)
            sch.vectorize(lane)
            sch.decompose_reduction(sums, part)
            sch.decompose_reduction(main, sch.get_loops(main)[-1])
        else:
            group, lane = sch.split(rows, factors=[None, _LANES])
            sch.reorder(group, steps, lane)
            sch.vectorize(lane)
            sch.decompose_reduction(main, steps)
        sch.parallel(group)
        for info in blocks[1:]:
            sch.reverse_compute_at(info.block_rv, group, preserve_unit_loops=True)
        return True
