"""The rule for products of matrices."""

from __future__ import annotations

from tvm import tir
from tvm.meta_schedule.sch_analysis import is_trivially_bound
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

from ..base import BlockInfo
from .reduction import is_one_reduction
from .rule import GPUScheduleRule, axes_of, fuse_all

__all__ = ["Matmul", "operand_groups"]

_THREADS, _OWN, _DEPTH = 8, 4, 16


class Matmul(GPUScheduleRule):
    """Tiles of both operands in shared memory, a tile of results in the registers of each thread.

    Fits a reduction of two operands, each of which has rows of its own, with or without a batch.
    """

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo], most: int) -> bool:
        if len(blocks) != 1 or not is_one_reduction(blocks) or most < _THREADS * _THREADS:
            return False
        block = blocks[0].block_rv
        groups = operand_groups(sch, blocks[0])
        if groups is None:
            return False
        batch, rows, columns, depth = groups
        outer = fuse_all(sch, batch, block) if batch else None
        row, column, step = (fuse_all(sch, loops, block) for loops in (rows, columns, depth))
        row_tile, row_thread, row_own = sch.split(row, factors=[None, _THREADS, _OWN])
        column_tile, column_thread, column_own = sch.split(column, factors=[None, _THREADS, _OWN])
        step_tile, step_in = sch.split(step, factors=[None, _DEPTH])
        sch.reorder(
            row_tile,
            column_tile,
            row_thread,
            column_thread,
            step_tile,
            step_in,
            row_own,
            column_own,
        )
        if outer is not None:
            sch.bind(outer, "blockIdx.z")
        sch.bind(row_tile, "blockIdx.y")
        sch.bind(column_tile, "blockIdx.x")
        sch.bind(row_thread, "threadIdx.y")
        sch.bind(column_thread, "threadIdx.x")
        result = sch.cache_write(block, 0, "local")
        sch.reverse_compute_at(result, column_thread, preserve_unit_loops=True)
        for operand in range(2):
            _share(sch, block, operand, step_tile)
        sch.decompose_reduction(block, step_tile)
        return True


def _share(sch: Schedule, block: BlockRV, operand: int, place: LoopRV) -> None:
    """Copy what a step needs of an operand to shared memory, a part by each thread."""
    copy = sch.cache_read(block, operand, "shared")
    sch.compute_at(copy, place, preserve_unit_loops=True)
    inner = sch.get_loops(copy)
    own = inner[_depth_of(sch, place) + 1 :]
    element = fuse_all(sch, own, copy)
    _, row, column = sch.split(element, factors=[None, _THREADS, _THREADS])
    sch.bind(row, "threadIdx.y")
    sch.bind(column, "threadIdx.x")


def _depth_of(sch: Schedule, loop: LoopRV) -> int:
    depth, at = 0, sch.get_sref(loop).parent
    while at is not None and isinstance(at.stmt, tir.For):
        depth, at = depth + 1, at.parent
    return depth


def operand_groups(sch: Schedule, info: BlockInfo) -> tuple[list[LoopRV], ...] | None:
    """Loops of the batch, of the rows of the first and of the second operand, and of the sum."""
    node = sch.get(info.block_rv)
    loops = sch.get_loops(info.block_rv)
    if len(node.reads) != 2 or not is_trivially_bound(sch, info.block_rv):
        return None
    first, second = (
        set().union(*(axes_of(node, part.min) for part in region.region)) for region in node.reads
    )
    groups: tuple[list[LoopRV], ...] = ([], [], [], [])
    for at, (loop, each) in enumerate(zip(loops, info.iters)):
        if each.kind == "R":
            groups[3].append(loop)
        elif at in first and at in second:
            groups[0].append(loop)
        elif at in first or at in second:
            groups[1 if at in first else 2].append(loop)
        else:
            return None
    return groups if groups[1] and groups[2] and groups[3] else None
