"""Coordinate descent over knobs.

Canesche et al., "The Droplet Search Algorithm for Kernel Scheduling" (ACM TACO 2024).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..measure import MeasureInput, MeasureResult
from ..task.space import ConfigEntity
from ..task.task import Task
from .tuner import Tuner

__all__ = ["DropletTuner"]

_UNKNOWN = 1e10


class DropletTuner(Tuner):
    """From one point to the best of its neighbours, as long as one is significantly faster.

    Neighbours differ by `step` in one knob. Around a point that nothing beats the step grows, so
    that a valley next door is found; the run ends after `total_execution` steps that found nothing.

    Parameters
    ----------
    task : what is tuned.
    start_position : number of the candidate of each knob; by default the first of each.
    pvalue : two points differ if Welch's test over their repeats says so at this level.

    Attributes
    ----------
    best_choice : index, knobs and costs (seconds) of the best point.
    step, execution, total_execution, batch : see above; points proposed at once at most.
    """

    def __init__(
        self, task: Task, start_position: Sequence[int] | None = None, pvalue: float = 0.05
    ) -> None:
        super().__init__(task)
        self.dims = self.space.dims
        start = [0] * len(self.dims) if start_position is None else [int(v) for v in start_position]
        if len(start) != len(self.dims) or any(not 0 <= v < d for v, d in zip(start, self.dims)):
            raise ValueError(
                f"DropletTuner: start_position={start} is no point of {self.dims} choices"
            )
        self.visited: set[int] = set()
        self.execution, self.total_execution = 1, max(self.dims, default=1)
        self.batch, self.pvalue, self.step = 16, pvalue, 1
        self.best_choice: tuple[int, list[int], Sequence[float]] = (-1, start, [_UNKNOWN])
        self._pending: list[int] = []
        first = self.space.knob2point(start)
        if not self.space.is_index_valid(first):
            first = self.space.get_rand_index()
            self.best_choice = (-1, self.space.point2knob(first), [_UNKNOWN])
        self._propose([first])
        self._propose(self._neighbours())

    def has_next(self) -> bool:
        return bool(self._pending)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        count = min(batch_size, self.batch)
        batch, self._pending = self._pending[:count], self._pending[count:]
        return [self.space.get(index) for index in batch]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        improved = False
        for inp, result in zip(inputs, results):
            costs = [float(c) for c in result.costs] if int(result.error_no) == 0 else [_UNKNOWN]
            if np.mean(costs) < np.mean(self.best_choice[2]) and self._differs(costs):
                index = int(inp.config.index)
                self.best_choice = (index, self.space.point2knob(index), costs)
                improved = True
        if improved:
            self._pending.clear()
            self.execution = self.step = 1
            self._propose(self._neighbours())
        while not self._pending and self.execution < self.total_execution:
            self.execution += 1
            self.step += 1
            self._propose(self._neighbours())

    def load_history(
        self, data_set: Iterable[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500
    ) -> None:
        """Begin at the fastest point on record."""
        pairs = [
            (inp, result)
            for inp, result in data_set
            if inp.task.workload == self.task.workload
            and int(result.error_no) == 0
            and self.space.is_index_valid(int(inp.config.index))
        ]
        self.visited.update(int(inp.config.index) for inp, _ in pairs)
        self._pending.clear()
        self.update([inp for inp, _ in pairs], [result for _, result in pairs])

    def _differs(self, costs: Sequence[float]) -> bool:
        """Whether the repeats of two points are more than noise apart; a single one always is."""
        known = self.best_choice[2]
        if len(costs) < 2 or len(known) < 2:
            return True
        # Here, since it takes longer to import than all of TVM.
        from scipy import stats

        return float(stats.ttest_ind(costs, known, equal_var=False).pvalue) <= self.pvalue

    def _neighbours(self) -> list[int]:
        knob = self.best_choice[1]
        found = []
        for axis, size in enumerate(self.dims):
            for way in (self.step, -self.step):
                moved = list(knob)
                moved[axis] += way
                if 0 <= moved[axis] < size:
                    found.append(self.space.knob2point(moved))
        return found

    def _propose(self, indices: Iterable[int]) -> None:
        for index in indices:
            if index not in self.visited and self.space.is_index_valid(index):
                self.visited.add(index)
                self._pending.append(index)
