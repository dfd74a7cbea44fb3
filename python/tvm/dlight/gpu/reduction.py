"""The rule for one reduction."""

from __future__ import annotations

from tvm import tir
from tvm.tir.schedule import LoopRV, Schedule

from ..base import BlockInfo
from .rule import GPUScheduleRule, axes_of, fuse_all, run_by_threads, threads_for

__all__ = ["Reduction", "reads_along_the_reduction", "reduce_together"]


class Reduction(GPUScheduleRule):
    """Threads of a block reduce together, for one result or for some that lie beside each other.

    Fits a reduction, and what is computed from its results alone.
    """

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo], most: int) -> bool:
        if not is_one_reduction(blocks):
            return False
        if reads_along_the_reduction(sch, blocks[0]):
            reduce_together(sch, blocks, rows=1, lanes=min(most, 256), rows_axis="threadIdx.y")
        else:
            # Results beside each other are read from elements beside each other.
            reduce_together(
                sch,
                blocks,
                rows=16,
                lanes=min(most // 16, 16),
                rows_axis="threadIdx.x",
                lanes_axis="threadIdx.y",
            )
        return True


def is_one_reduction(blocks: list[BlockInfo]) -> bool:
    """Whether the blocks are a reduction, and perhaps one that reads its results."""
    if not blocks or not blocks[0].is_reduction() or len(blocks) > 2:
        return False
    return bool(blocks[0].loops("R")) and all(info.is_injective() for info in blocks[1:])


def reads_along_the_reduction(sch: Schedule, info: BlockInfo) -> bool:
    """Whether the iterations of the innermost reduction read elements beside each other.

    Of operands, those with the most axes count: a vector is read along the reduction always.
    """
    node = sch.get(info.block_rv)
    kinds = [int(axis.iter_type) for axis in node.iter_vars]
    regions = [region.region for region in node.reads if len(region.region)]
    used = [set().union(*(axes_of(node, part.min) for part in region)) for region in regions]
    last: set[int] = set()
    for region, axes in zip(regions, used):
        if len(axes) == max(map(len, used)):
            last |= axes_of(node, region[-1].min)
    return any(kinds[at] == int(tir.IterVar.CommReduce) for at in last)


def reduce_together(
    sch: Schedule,
    blocks: list[BlockInfo],
    rows: int,
    lanes: int,
    rows_axis: str,
    lanes_axis: str = "threadIdx.x",
) -> None:
    """Let `lanes` threads reduce each result, and `rows` results be computed in a block of threads.

    What is computed from the results is computed in the same kernel, behind the reduction.
    """
    main = blocks[0]
    around = main.loops("S") or [sch.add_unit_loop(main.iters[0].loop_rv)]
    results = fuse_all(sch, around, main.block_rv)
    parts = fuse_all(sch, main.loops("R"), main.block_rv)
    if len(blocks) > 1:
        sch.set_scope(main.block_rv, 0, "shared")
    group = results
    if rows > 1:
        group, row = sch.split(results, factors=[None, rows])
    sch.bind(group, "blockIdx.x")
    if rows > 1:
        sch.bind(row, rows_axis)
    run_by_threads(sch, parts, threads_for(sch, parts, lanes), lanes_axis)
    for info in blocks[1:]:
        sch.reverse_compute_at(info.block_rv, group)
        _finish(sch, info, main, group)


def _finish(sch: Schedule, info: BlockInfo, main: BlockInfo, group: LoopRV) -> None:
    """Share out what is computed from results among the threads that there are."""
    inner = sch.get_loops(info.block_rv)[1:]
    loop = fuse_all(sch, inner, info.block_rv)
    for made in sch.get_loops(main.block_rv):
        node = sch.get(made)
        tag = str(node.thread_binding.thread_tag) if node.thread_binding is not None else ""
        if tag == "threadIdx.x":
            run_by_threads(sch, loop, int(node.extent), tag)
            return
