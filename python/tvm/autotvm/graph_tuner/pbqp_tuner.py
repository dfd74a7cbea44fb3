"""The graph tuner for networks with many branches."""

from __future__ import annotations

from .assignment import Assignment
from .base_graph_tuner import BaseGraphTuner

__all__ = ["PBQPTuner"]


class PBQPTuner(BaseGraphTuner):
    """Chooses by partitioned boolean quadratic programming: fast, and near the best."""

    def _solve(self, problem: Assignment) -> dict[int, int]:
        return problem.reduced()
