"""The rule that sums with the threads of a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tir
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

from ..sch_analysis import (
    loop_kind,
    needs_rfactor,
    needs_tiling,
    reorder_and_fuse_reduction,
    thread_tag,
)
from .schedule_rule import ScheduleRule

__all__ = ["CrossThreadReduction"]


class CrossThreadReduction(ScheduleRule):
    """Splits a long sum over few results among the threads of a block.

    A block whose reduction threads cannot do together is left as it is.

    Parameters
    ----------
    thread_extents : candidates of how many threads there are.

    Raises
    ------
    ValueError : a candidate is not positive.
    """

    def __init__(self, thread_extents: Sequence[int]) -> None:
        self.thread_extents = [int(extent) for extent in thread_extents]
        if any(extent <= 0 for extent in self.thread_extents):
            raise ValueError(
                f"CrossThreadReduction: thread extents are positive, got {self.thread_extents}"
            )
        self._threads, self._warp = -1, -1

    def _initialize_with_tune_context(self, context: Any) -> None:
        target = context.target
        self._threads = self._warp = -1
        if target is not None and "gpu" in target.keys:
            self._threads = int(target.get_attr("max_threads_per_block", -1))
            self._warp = int(target.get_attr("thread_warp_size", -1))

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if self._threads == -1 or not needs_rfactor(sch, block, self._threads, self._warp):
            return [sch]
        after = sch.copy()
        try:
            self._sum_with_threads(after, block)
        except tir.ScheduleError:
            return [sch]
        return [after, sch]

    def _sum_with_threads(self, sch: Schedule, block: BlockRV) -> None:
        place = self._place_at_reader(sch, block)
        chances = [1.0 / len(self.thread_extents)] * len(self.thread_extents)
        threads: Any = sch.sample_categorical(self.thread_extents, chances)
        lane = None
        if place is not None:
            reader, loop = place
            loops = sch.get_loops(reader)
            bound = [this for this in loops if thread_tag(sch, this).startswith("threadIdx")]
            if not bound:
                outer, lane = sch.split(loops[-1], factors=[None, threads])
                if loop.same_as(loops[-1]):
                    loop = outer
            else:
                threads = _extent_of_threads(sch)
            # In global memory the results would be shared by all blocks of threads.
            sch.set_scope(block, 0, "shared")
            sch.compute_at(block, loop, preserve_unit_loops=True)
        fused, _ = reorder_and_fuse_reduction(sch, block)
        _, inner = sch.split(fused, factors=[None, threads])
        sch.bind(inner, "threadIdx.x")
        if lane is not None:
            # The other way round, all threads of the reader would add up the whole sum first.
            sch.bind(lane, "threadIdx.x")

    @staticmethod
    def _place_at_reader(sch: Schedule, block: BlockRV) -> tuple[BlockRV, LoopRV] | None:
        """The first reader, and the innermost of its loops at which the sum may be made."""
        readers = sch.get_consumers(block)
        if len(sch.get(block).writes) != 1 or not readers or needs_tiling(sch, readers[0]):
            return None
        loops = sch.get_loops(readers[0])
        deepest = len(loops) - 1
        if len(readers) > 1:
            shared = _shared_loops(sch, readers)
            if not shared:
                return None
            deepest = shared - 1
        place = -1
        for own, (number, _) in zip(sch.get_loops(block), enumerate(loops)):
            if loop_kind(sch, own) != "S":
                break
            place = number
            if number == deepest:
                break
        return None if place < 0 else (readers[0], loops[place])


def _shared_loops(sch: Schedule, blocks: Sequence[BlockRV]) -> int:
    """How many loops all blocks stand in together."""
    nests = [sch.get_loops(block) for block in blocks]
    count = 0
    for level in zip(*nests):
        first = sch.get_sref(level[0])
        if not all(sch.get_sref(loop).same_as(first) for loop in level):
            break
        count += 1
    return count


def _extent_of_threads(sch: Schedule) -> Any:
    """The sampled extent of threadIdx.x, as the trace has it.

    Raises
    ------
    ScheduleError : no split with an explicit factor made the loop.
    """
    insts = list(sch.trace.insts)
    for bound in insts:
        if str(bound.kind.name) != "Bind" or str(bound.arguments["thread_axis"]) != "threadIdx.x":
            continue
        for split in insts:
            if str(split.kind.name) != "Split":
                continue
            for number, made in enumerate(split.outputs):
                if made.same_as(bound.inputs[0]):
                    factor = split.arguments["factors"][number]
                    if factor is not None:
                        return factor
    raise tir.ScheduleError("the extent of threadIdx.x does not come from a split")
