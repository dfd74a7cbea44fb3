"""Giving the loops of a block to the threads of a graphics processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir
from tvm.target import Target
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

from .sch_analysis import TILED, annotation, constant_extent, is_root, loop_kind, thread_tag

__all__ = ["bind_block_thread_idx", "bind_spatial_loop", "factor_sampler", "threads_per_block"]


def threads_per_block(target: Target | None, who: str) -> int:
    """Threads that a block of a target may have.

    Raises
    ------
    ValueError : there is no target, or it says nothing of its threads.
    """
    limit = None if target is None else target.get_attr("max_threads_per_block")
    if limit is None:
        raise ValueError(
            f"{who}: the target {target} has no max_threads_per_block; give a graphics processor, "
            '"nvidia/geforce-rtx-3080" or "cuda -max_threads_per_block=1024" for example'
        )
    return int(limit)


def factor_sampler(sch: Schedule, extents: Sequence[int]) -> Callable[[int], Any]:
    """A function of how many iterations there are that samples one of the thread counts."""

    def sample(iterations: int) -> Any:
        fitting = [extent for extent in extents if extent <= iterations]
        if len(fitting) < 2:
            return fitting[0] if fitting else iterations
        return sch.sample_categorical(fitting, [1.0 / len(fitting)] * len(fitting))

    return sample


def bind_spatial_loop(
    sch: Schedule,
    loop: LoopRV,
    max_threadblocks: int,
    max_threads: int,
    get_factor: Callable[[int], Any],
) -> list[LoopRV]:
    """Run a loop on blocks of threads, and what is too much for them one after another.

    Returns
    -------
    The loops that it became, outermost first.
    """
    extent = constant_extent(sch, loop)
    if extent is not None and extent > max_threadblocks * max_threads:
        rest, blocks, threads = sch.split(loop, factors=[None, max_threadblocks, max_threads])
        sch.reorder(blocks, threads, rest)
        loops = [blocks, threads, rest]
    else:
        most = max_threads if extent is None else min(extent, max_threads)
        loops = sch.split(loop, factors=[None, get_factor(most)])
    sch.bind(loops[0], "blockIdx.x")
    sch.bind(loops[1], "threadIdx.x")
    return loops


def bind_block_thread_idx(
    sch: Schedule,
    block: BlockRV,
    max_threadblocks: int,
    max_threads: int,
    get_factor: Callable[[int], Any],
) -> None:
    """Run the outer independent loops of a block on threads, unless threads run it already.

    Raises
    ------
    ScheduleError : an axis of blocks runs it, and none of threads.
    """
    if is_root(sch, block) or annotation(sch.get(block), TILED) is not None:
        return
    loops = sch.get_loops(block)
    tags = [thread_tag(sch, loop) for loop in loops]
    of_blocks = any(tag.startswith("blockIdx") for tag in tags)
    threads = next((i for i, tag in enumerate(tags) if tag.startswith("threadIdx")), None)
    if of_blocks and threads is not None:
        return
    if of_blocks:
        raise tir.ScheduleError(
            f"the block {sch.get(block).name_hint} is run by an axis of blocks and by none of "
            "threads; bind one of its loops to threadIdx.x"
        )
    spatial, alone = 0, len(loops)
    for i, loop in enumerate(loops):
        if spatial == i and loop_kind(sch, loop) == "S":
            spatial = i + 1
        if int(sch.get(loop).kind) != tir.ForKind.SERIAL:
            alone = min(alone, i)
        if isinstance(sch.get(loop).body, tir.SeqStmt):
            alone = min(alone, i + 1)
    if not spatial:
        loops.insert(0, sch.add_unit_loop(loops[0] if loops else block))
        spatial, alone = 1, alone + 1
        threads = None if threads is None else threads + 1
    count = min(spatial, alone)
    if threads is not None:
        sch.bind(sch.fuse(*loops[: min(count, threads)]), "blockIdx.x")
        return
    bind_spatial_loop(sch, sch.fuse(*loops[:count]), max_threadblocks, max_threads, get_factor)
