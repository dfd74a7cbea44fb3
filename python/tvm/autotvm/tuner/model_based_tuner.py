"""Tuners that learn which points are fast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..env import GLOBAL_SCOPE
from ..measure import MeasureInput, MeasureResult
from ..task.space import ConfigEntity
from ..task.task import Task
from ..utils import logger, throughput
from .tuner import Tuner

__all__ = ["CostModel", "ModelBasedTuner", "ModelOptimizer"]


class CostModel:
    """Predicts how fast points are; larger is better."""

    def fit(self, xs: Any, ys: Any, plan_size: int) -> None:
        """Learn from indices and operations a second.

        Parameters
        ----------
        plan_size : how many points are picked at once; the model is to rank these best.
        """
        raise TypeError(f"{type(self).__name__} does not define fit")

    def fit_log(
        self,
        records: Iterable[tuple[MeasureInput, MeasureResult]],
        plan_size: int,
        min_seed_records: int = 500,
    ) -> bool:
        """Learn from records; returns whether there were enough."""
        raise TypeError(f"{type(self).__name__} does not define fit_log")

    def predict(self, xs: Any, output_margin: bool = False) -> np.ndarray:
        """One score an index."""
        raise TypeError(f"{type(self).__name__} does not define predict")

    def load_basemodel(self, base_model: CostModel) -> None:
        """Start from another model."""
        raise TypeError(f"{type(self).__name__} does not define load_basemodel")

    def spawn_base_model(self) -> CostModel:
        """A new model of this kind, to learn from records."""
        raise TypeError(f"{type(self).__name__} does not define spawn_base_model")


class ModelOptimizer:
    """Finds points that a model thinks are fast."""

    def find_maximums(self, model: CostModel, num: int, exclusive: set[int]) -> list[int]:
        """Up to `num` indices that are not in `exclusive`, the best first."""
        raise TypeError(f"{type(self).__name__} does not define find_maximums")


class ModelBasedTuner(Tuner):
    """Measures what its model thinks is fast, and teaches the model what came of it.

    Parameters
    ----------
    task : what is tuned.
    cost_model, model_optimizer : what predicts, and what looks for the best prediction.
    plan_size : points picked at once.
    diversity_filter_ratio : pick this many times `plan_size` by score, and of these the points that
        differ most; None picks by score alone.

    Attributes
    ----------
    xs, ys, visited : indices measured, their operations a second, and all that were proposed.
    """

    # Share of points that are drawn at random, so that the model sees what it does not believe in.
    _EXPLORE = 0.05

    def __init__(
        self,
        task: Task,
        cost_model: CostModel,
        model_optimizer: ModelOptimizer,
        plan_size: int,
        diversity_filter_ratio: float | None = None,
    ) -> None:
        super().__init__(task)
        if diversity_filter_ratio is not None and diversity_filter_ratio < 1:
            raise ValueError(
                f"tuner: diversity_filter_ratio is at least 1, got {diversity_filter_ratio}"
            )
        self.cost_model = cost_model
        self.model_optimizer = model_optimizer
        self.plan_size = plan_size
        self.diversity_filter_ratio = diversity_filter_ratio
        self.xs: list[int] = []
        self.ys: list[float] = []
        self.visited: set[int] = set()
        self.flops_max = 0.0
        self.train_ct = 0
        self._trained_with = 0
        self.trials: list[int] = []

    def has_next(self) -> bool:
        return len(self.visited) < len(self.space)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        batch: list[ConfigEntity] = []
        while len(batch) < batch_size and self.has_next():
            while self.trials and self.trials[0] in self.visited:
                self.trials.pop(0)
            explore = GLOBAL_SCOPE.rng.random() < self._EXPLORE or not self.trials
            index = (
                self.space.get_rand_index(to_exclude=self.visited)
                if explore
                else self.trials.pop(0)
            )
            self.visited.add(index)
            batch.append(self.space.get(index))
        return batch

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results):
            index = int(inp.config.index)
            flops = throughput(float(self.task.flop or 0), result)
            self.flops_max = max(self.flops_max, flops)
            self.xs.append(index)
            self.ys.append(flops)
            # Also those that were measured elsewhere.
            self.visited.add(index)
        enough = len(self.xs) - self._trained_with >= self.plan_size
        if enough and self.flops_max > 1e-6 and len(self.xs) > 1:
            self._plan()

    def _plan(self) -> None:
        self.cost_model.fit(self.xs, np.array(self.ys), self.plan_size)
        ratio = self.diversity_filter_ratio
        wanted = self.plan_size if ratio is None else int(self.plan_size * ratio)
        found = self.model_optimizer.find_maximums(self.cost_model, wanted, self.visited)
        if ratio is not None:
            scores = self.cost_model.predict(found)
            knobs = [self.space.point2knob(index) for index in found]
            found = [found[i] for i in submodular_pick(scores, knobs, self.plan_size)]
        self.trials = found
        self._trained_with = len(self.xs)
        self.train_ct += 1

    def load_history(
        self, data_set: Iterable[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500
    ) -> None:
        """Let a model learn from records of this template, which the tuner's own builds on."""
        records = [pair for pair in data_set if pair[0].task.name == self.task.name]
        base = self.cost_model.spawn_base_model()
        if not base.fit_log(records, self.plan_size, min_seed_records):
            logger.info("%d records are too few to learn from", len(records))
            return
        self.cost_model.load_basemodel(base)
        self.trials = self.model_optimizer.find_maximums(base, self.plan_size, self.visited)


def submodular_pick(
    scores: np.ndarray, knobs: Sequence[Sequence[int]], n_pick: int, knob_weight: float = 1.0
) -> list[int]:
    """Greedy choice of points that score high and differ in their knobs.

    Choices that no picked point has yet add `knob_weight` times the mean score of their knob.

    Returns
    -------
    Positions of the points, in the order in which they were picked.
    """
    left = list(range(len(knobs)))
    scores = np.asarray(scores, dtype=float)
    bonus = knob_weight * float(np.abs(scores).mean()) if len(scores) else 0.0
    seen: set[tuple[int, int]] = set()
    picked: list[int] = []
    while left and len(picked) < n_pick:
        gains = [
            scores[i]
            + bonus
            * sum((a, c) not in seen for a, c in enumerate(knobs[i]))
            / max(len(knobs[i]), 1)
            for i in left
        ]
        best = left.pop(int(np.argmax(gains)))
        picked.append(best)
        seen.update(enumerate(knobs[best]))
    return picked
