"""The rule for copies that turn rows into columns."""

from __future__ import annotations

from tvm import tir
from tvm.meta_schedule.sch_analysis import is_trivially_bound
from tvm.tir.schedule import LoopRV, Schedule

from ..base import BlockInfo
from .rule import GPUScheduleRule, axes_of, fuse_all

__all__ = ["Transpose"]

_TILE = 16


class Transpose(GPUScheduleRule):
    """Square tiles go through shared memory, so that both sides see elements beside each other.

    Fits one block that reads one buffer along another axis than it writes.
    """

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo], most: int) -> bool:
        if len(blocks) != 1 or most < _TILE * _TILE:
            return False
        axes = _turned_axes(sch, blocks[0])
        if axes is None:
            return False
        block = blocks[0].block_rv
        loops = sch.get_loops(block)
        read, written = (loops[at] for at in axes)
        others = [loop for at, loop in enumerate(loops) if at not in axes]
        copy = sch.cache_read(block, 0, "shared")
        read_tile, read_in = sch.split(read, factors=[None, _TILE])
        written_tile, written_in = sch.split(written, factors=[None, _TILE])
        sch.reorder(*others, read_tile, written_tile, read_in, written_in)
        tile = sch.fuse(*others, read_tile, written_tile)
        sch.bind(tile, "blockIdx.x")
        sch.compute_at(copy, tile, preserve_unit_loops=True)
        _bind_tile(sch, [read_in, written_in])
        inner = sch.get_loops(copy)[1:]
        element = fuse_all(sch, inner, copy)
        _, row, column = sch.split(element, factors=[None, _TILE, _TILE])
        _bind_tile(sch, [row, column])
        # Rows then start in different banks, which columns are read from at once.
        sch.storage_align(copy, 0, axis=-2, factor=32, offset=1)
        return True


def _bind_tile(sch: Schedule, loops: list[LoopRV]) -> None:
    for loop, axis in zip(loops, ("threadIdx.y", "threadIdx.x")):
        sch.bind(loop, axis)


def _turned_axes(sch: Schedule, info: BlockInfo) -> tuple[int, int] | None:
    """Loops along which the block reads, and along which it writes, elements beside each other."""
    node = sch.get(info.block_rv)
    if info.is_reduction() or len(node.reads) != 1 or len(node.writes) != 1:
        return None
    if not is_trivially_bound(sch, info.block_rv) or len(node.reads[0].region) < 2:
        return None
    ends = [
        axes_of(node, regions[0].region[-1].min) if len(regions[0].region) else set()
        for regions in (node.reads, node.writes)
    ]
    if any(len(end) != 1 for end in ends) or ends[0] == ends[1]:
        return None
    if not all(isinstance(dom, tir.IntImm) for dom in info.dom()):
        return None
    return ends[0].pop(), ends[1].pop()
