"""The rule that gives loops to threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.tir.schedule import BlockRV, Schedule

from ..thread_bind import bind_block_thread_idx, factor_sampler, threads_per_block
from .schedule_rule import ScheduleRule

__all__ = ["AutoBind"]


class AutoBind(ScheduleRule):
    """Runs blocks that no thread runs yet on threads; how many in a block is sampled.

    Parameters
    ----------
    max_threadblocks : blocks of threads; longer loops are run in several rounds.
    thread_extents : candidates of how many threads a block has.
    max_threads_per_block : most threads of a block; -1 for what the target has.
    """

    def __init__(
        self,
        max_threadblocks: int = 256,
        thread_extents: Sequence[int] | None = None,
        max_threads_per_block: int = -1,
    ) -> None:
        self.max_threadblocks = max_threadblocks
        self.thread_extents = list(
            (32, 64, 128, 256, 512, 1024) if thread_extents is None else thread_extents
        )
        self.max_threads_per_block = max_threads_per_block
        self._threads = max_threads_per_block

    def _initialize_with_tune_context(self, context: Any) -> None:
        if self.max_threads_per_block == -1:
            self._threads = threads_per_block(context.target, "AutoBind")

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        sampler = factor_sampler(sch, self.thread_extents)
        bind_block_thread_idx(sch, block, self.max_threadblocks, self._threads, sampler)
        return [sch]
