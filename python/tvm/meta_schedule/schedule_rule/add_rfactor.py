"""The rule that makes long sums parallel."""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.tir.schedule import BlockRV, Schedule

from ..sch_analysis import cores_of, needs_rfactor, reorder_and_fuse_reduction
from .schedule_rule import ScheduleRule

__all__ = ["AddRFactor"]


class AddRFactor(ScheduleRule):
    """Splits a long sum over few results into partial sums that run at once.

    What sums the partial ones up is marked, so that `RandomComputeLocation` finds a place for them.

    Parameters
    ----------
    max_jobs_per_core : jobs a core that are worth having.
    max_innermost_factor : largest inner tile of the summed loops.
    """

    def __init__(
        self, max_jobs_per_core: int = 16, max_innermost_factor: int | None = None
    ) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self.max_innermost_factor = -1 if max_innermost_factor is None else max_innermost_factor
        self._cores = 1

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._cores = cores_of(context.target)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not needs_rfactor(sch, block, self.max_jobs_per_core * self._cores, self._cores):
            return [sch]
        original = sch.copy()
        try:
            fused, spatial = reorder_and_fuse_reduction(sch, block)
            factors = sch.sample_perfect_tile(
                fused, n=2, max_innermost_factor=self.max_innermost_factor
            )
            parts = sch.split(fused, factors=factors)
        except tir.ScheduleError:
            return [original]
        results = []
        for loop in parts:
            after = sch.copy()
            try:
                after.rfactor(loop, spatial)
            except tir.ScheduleError:
                continue
            after.annotate(block, "meta_schedule.random_compute_producer", 1)
            results.append(after)
        return [*results, original]
