"""Tuners that go through the indices of a space."""

from __future__ import annotations

from collections.abc import Iterable

from ..measure import MeasureInput, MeasureResult
from ..task.space import ConfigEntity
from ..task.task import Task
from .tuner import Tuner

__all__ = ["GridSearchTuner", "IndexBaseTuner", "RandomTuner"]


class IndexBaseTuner(Tuner):
    """Base of tuners over indices; each valid index is visited once.

    Parameters
    ----------
    task : what is tuned.
    range_idx : first and last index to visit; by default all.

    Attributes
    ----------
    begin_idx, end_idx, range_length : the indices, the end excluded.
    visited, visited_max : indices proposed so far, and how many there are to visit.

    Raises
    ------
    IndexError : the range leaves the space.
    """

    def __init__(self, task: Task, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task)
        first, last = (0, self.space.range_length - 1) if range_idx is None else range_idx
        if not 0 <= first <= last < self.space.range_length:
            raise IndexError(
                f"{type(self).__name__}: range_idx=({first}, {last}) is no range of the "
                f"{self.space.range_length} indices of the space"
            )
        self.begin_idx, self.end_idx = first, last + 1
        self.range_length = self.end_idx - self.begin_idx
        self.visited_max = self.space.subrange_length(self.begin_idx, self.end_idx)
        self.visited: set[int] = set()

    def has_next(self) -> bool:
        return len(self.visited) < self.visited_max

    def load_history(
        self, data_set: Iterable[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500
    ) -> None:
        """Points on record are not measured again."""
        for inp, _ in data_set:
            if (
                inp.task.workload == self.task.workload
                and self.begin_idx <= inp.config.index < self.end_idx
            ):
                self.visited.add(int(inp.config.index))

    def _take(self, index: int) -> ConfigEntity:
        self.visited.add(index)
        return self.space.get(index)


class GridSearchTuner(IndexBaseTuner):
    """All points in the order of their indices.

    Attributes
    ----------
    index : the next one to measure.
    """

    def __init__(self, task: Task, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task, range_idx)
        self.index = self._next_after(self.begin_idx - 1)

    def _next_after(self, index: int) -> int:
        following = self.space.get_next_index(index, start=self.begin_idx, end=self.end_idx)
        return self.end_idx if following is None else following

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        batch: list[ConfigEntity] = []
        while len(batch) < batch_size and self.index < self.end_idx:
            if self.index not in self.visited:
                batch.append(self._take(self.index))
            self.index = self._next_after(self.index)
        return batch


class RandomTuner(IndexBaseTuner):
    """All points in random order."""

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        batch: list[ConfigEntity] = []
        while len(batch) < batch_size and self.has_next():
            batch.append(
                self._take(self.space.get_rand_index(self.begin_idx, self.end_idx, self.visited))
            )
        return batch
