"""The rule for products of a matrix and a few vectors, as many as a call brings."""

from __future__ import annotations

from tvm import tir
from tvm.tir.schedule import LoopRV, Schedule

from ..base import BlockInfo
from .matmul import operand_groups
from .reduction import is_one_reduction, reads_along_the_reduction
from .rule import GPUScheduleRule, fuse_all

__all__ = ["LowBatchGEMV"]

_ROWS, _LANES = 4, 32


class LowBatchGEMV(GPUScheduleRule):
    """A warp sums a row of the matrix with several vectors at once, in registers.

    Fits a reduction of two operands, one of which has vectors of open number and the other rows of
    a fixed one that are stored along the reduction. The matrix is read once for each `bucket` of
    vectors, so that is the number for which the schedule is good; any number is computed.

    Parameters
    ----------
    bucket : vectors that a thread holds sums for.

    Raises
    ------
    ValueError : there are less than one.
    """

    def __init__(self, bucket: int = 4) -> None:
        if bucket < 1:
            raise ValueError(f"dlight: LowBatchGEMV needs a bucket of 1 or more, got {bucket}")
        self.bucket = bucket

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo], most: int) -> bool:
        if not is_one_reduction(blocks) or most < _ROWS * _LANES:
            return False
        main = blocks[0].block_rv
        groups = operand_groups(sch, blocks[0])
        if groups is None or not reads_along_the_reduction(sch, blocks[0]):
            return False
        batch, first, second, depth = groups
        vectors, rows = (second, first) if _is_open(sch, second) else (first, second)
        if batch or not _is_open(sch, vectors) or _is_open(sch, rows):
            return False
        vector, row, step = (fuse_all(sch, loops, main) for loops in (vectors, rows, depth))
        bucket, own = sch.split(vector, factors=[None, self.bucket])
        group, row_thread = sch.split(row, factors=[None, _ROWS])
        part, lane = sch.split(step, factors=[None, _LANES])
        sch.reorder(bucket, group, row_thread, own, part, lane)
        sums = sch.rfactor(lane, 0)
        # What lanes have summed is added up across them, one vector after the other.
        bucket, group, row_thread, _, lane = sch.get_loops(main)
        if len(blocks) > 1:
            sch.set_scope(main, 0, "shared")
        for loop, axis in (
            (bucket, "blockIdx.y"),
            (group, "blockIdx.x"),
            (row_thread, "threadIdx.y"),
            (lane, "threadIdx.x"),
        ):
            sch.bind(loop, axis)
        sch.set_scope(sums, 0, "local")
        sch.compute_at(sums, row_thread, preserve_unit_loops=True)
        lane, own, _, part = sch.get_loops(sums)[3:]
        sch.reorder(lane, part, own)
        sch.bind(lane, "threadIdx.x")
        sch.unroll(own)
        sch.decompose_reduction(sums, part)
        for info in blocks[1:]:
            sch.reverse_compute_at(info.block_rv, group)
            inner = fuse_all(sch, sch.get_loops(info.block_rv)[2:], info.block_rv)
            _, y, x = sch.split(inner, factors=[None, _ROWS, _LANES])
            sch.bind(y, "threadIdx.y")
            sch.bind(x, "threadIdx.x")
        return True


def _is_open(sch: Schedule, loops: list[LoopRV]) -> bool:
    return any(not isinstance(sch.get(loop).extent, tir.IntImm) for loop in loops)
