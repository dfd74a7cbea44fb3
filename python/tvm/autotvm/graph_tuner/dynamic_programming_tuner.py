"""The graph tuner that finds the best choice."""

from __future__ import annotations

from .assignment import Assignment
from .base_graph_tuner import BaseGraphTuner

__all__ = ["DPTuner"]


class DPTuner(BaseGraphTuner):
    """Chooses by dynamic programming: exact, for networks whose branches are few at a time."""

    def _solve(self, problem: Assignment) -> dict[int, int]:
        return problem.exact()
