"""The rule that marks functions with how their loops may run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.tir.schedule import BlockRV, Schedule

from ..sch_analysis import cores_of, is_root, is_spatial_function
from .schedule_rule import ScheduleRule

__all__ = ["ParallelizeVectorizeUnroll"]


class ParallelizeVectorizeUnroll(ScheduleRule):
    """Marks a function with how much may run at once, in lanes, and be unrolled.

    Parameters
    ----------
    max_jobs_per_core : jobs a core; -1 for no threads.
    max_vectorize_extent : lanes at most; -1 for no vectors.
    unroll_max_steps : candidates of the longest body to unroll; None for no unrolling.
    unroll_explicit : unroll in this compiler, not in the one behind it.
    """

    def __init__(
        self,
        max_jobs_per_core: int = 16,
        max_vectorize_extent: int = 16,
        unroll_max_steps: Sequence[int] | None = None,
        unroll_explicit: bool = True,
    ) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self.max_vectorize_extent = max_vectorize_extent
        self.unroll_max_steps = list(unroll_max_steps or ())
        self.unroll_explicit = unroll_explicit
        self._cores = 1

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._cores = cores_of(context.target)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not is_root(sch, block):
            return [sch]
        if self.max_jobs_per_core != -1:
            sch.annotate(block, "meta_schedule.parallel", self.max_jobs_per_core * self._cores)
        if self.max_vectorize_extent != -1:
            sch.annotate(block, "meta_schedule.vectorize", self.max_vectorize_extent)
        if self.unroll_max_steps and not is_spatial_function(sch, block):
            count = len(self.unroll_max_steps)
            steps = sch.sample_categorical(self.unroll_max_steps, [1.0 / count] * count)
            how = "explicit" if self.unroll_explicit else "implicit"
            sch.annotate(block, f"meta_schedule.unroll_{how}", steps)
        return [sch]
