"""Random points of a space."""

from __future__ import annotations

from tvm.tir.schedule import Trace

from ..candidate import MeasureCandidate
from .search_strategy import SearchStrategy, finish_schedule, finish_trace

__all__ = ["ReplayFunc", "ReplayTrace"]


class ReplayTrace(SearchStrategy):
    """Replays traces with new samples.

    Parameters
    ----------
    max_fail_count : tries for one candidate; with none of them legal the batch is cut short.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        super().__init__()
        self.max_fail_count = max_fail_count

    def _propose(self, count: int) -> list[MeasureCandidate] | None:
        mod, postprocs = self.context.mod, self.context.space_generator.postprocs or []
        found: list[MeasureCandidate] = []
        for _ in range(count):
            for _ in range(self.max_fail_count):
                trace = Trace(self.rng.choice(self.traces).insts, {})
                sch = finish_trace(mod, trace, postprocs, self._seed())
                if sch is not None:
                    found.append(self._candidate(sch))
                    break
        return found or None


class ReplayFunc(SearchStrategy):
    """Runs the space generator anew for each candidate.

    Parameters
    ----------
    max_fail_count : tries for one candidate; with none of them legal the batch is cut short.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        super().__init__()
        self.max_fail_count = max_fail_count

    def _propose(self, count: int) -> list[MeasureCandidate] | None:
        generator = self.context.space_generator
        found: list[MeasureCandidate] = []
        for _ in range(count):
            for _ in range(self.max_fail_count):
                schedules = generator.generate_design_space(self.context.mod)
                sch = finish_schedule(self.rng.choice(schedules), generator.postprocs or [])
                if sch is not None:
                    found.append(self._candidate(sch))
                    break
        return found or None
