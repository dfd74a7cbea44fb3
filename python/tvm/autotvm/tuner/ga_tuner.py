"""A genetic tuner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..env import GLOBAL_SCOPE
from ..measure import MeasureInput, MeasureResult
from ..task.space import ConfigEntity
from ..task.task import Task
from ..utils import throughput
from .tuner import Tuner

__all__ = ["GATuner"]


class GATuner(Tuner):
    """Points cross and mutate; the faster one is, the more children it has.

    Parameters
    ----------
    task : what is tuned.
    pop_size : points a generation.
    elite_num : the best so far that always take part in crossing.
    mutation_prob : chance that a knob of a child is drawn anew.
    """

    def __init__(
        self, task: Task, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1
    ) -> None:
        super().__init__(task)
        if pop_size < 1 or not 0 <= elite_num <= pop_size or not 0 <= mutation_prob <= 1:
            raise ValueError(
                f"GATuner: needs pop_size >= 1, 0 <= elite_num <= pop_size and a probability, got "
                f"{pop_size}, {elite_num}, {mutation_prob}"
            )
        self.pop_size = min(pop_size, len(self.space))
        self.elite_num = min(elite_num, self.pop_size)
        self.mutation_prob = mutation_prob
        self.visited: set[int] = set()
        self._pending: list[int] = []
        self._scores: dict[int, float] = {}
        self._generation: list[int] = []
        self._start()

    def _start(self) -> None:
        self._generation = [int(index) for index in self.space.sample_ints(self.pop_size)]
        self._pending = [index for index in self._generation if index not in self.visited]
        self.visited.update(self._generation)

    def has_next(self) -> bool:
        return bool(self._pending) or len(self.visited) < len(self.space)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        if not self._pending:
            self._breed()
        batch, self._pending = self._pending[:batch_size], self._pending[batch_size:]
        return [self.space.get(index) for index in batch]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results):
            self._scores[int(inp.config.index)] = throughput(float(self.task.flop or 0), result)

    def load_history(
        self, data_set: Iterable[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500
    ) -> None:
        """Points on record are parents and are not measured again."""
        for inp, result in data_set:
            index = int(inp.config.index)
            if inp.task.workload == self.task.workload and self.space.is_index_valid(index):
                self._scores[index] = throughput(float(self.task.flop or 0), result)
                self.visited.add(index)
        self._pending = [index for index in self._pending if index not in self._scores]

    def _breed(self) -> None:
        """The next generation: as many points that nobody measured."""
        scored = sorted(self._scores.items(), key=lambda pair: -pair[1])
        parents = [index for index, _ in scored[: self.elite_num]]
        parents += [index for index in self._generation if index in self._scores]
        weights = np.array([self._scores[index] for index in parents])
        chances = weights / weights.sum() if weights.sum() > 0 else None
        knobs = [self.space.point2knob(index) for index in parents]
        children: list[int] = []
        wanted = min(self.pop_size, len(self.space) - len(self.visited))
        for _ in range(32 * wanted):
            if len(children) == wanted or not knobs:
                break
            mother, father = GLOBAL_SCOPE.rng.choice(len(knobs), size=2, p=chances)
            child = [
                knobs[mother if GLOBAL_SCOPE.rng.random() < 0.5 else father][axis]
                for axis in range(len(self.space.dims))
            ]
            for axis, size in enumerate(self.space.dims):
                if GLOBAL_SCOPE.rng.random() < self.mutation_prob:
                    child[axis] = int(GLOBAL_SCOPE.rng.integers(size))
            index = self.space.knob2point(child)
            if index not in self.visited and self.space.is_index_valid(index):
                self.visited.add(index)
                children.append(index)
        while len(children) < wanted:
            # Crossing gives little that is new any more.
            index = self.space.get_rand_index(to_exclude=self.visited)
            self.visited.add(index)
            children.append(index)
        self._generation = self._pending = children
