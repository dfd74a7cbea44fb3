"""Simulated annealing over a model's predictions."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from ..env import GLOBAL_SCOPE
from ..task.task import Task
from ..utils import logger
from .model_based_tuner import CostModel, ModelOptimizer

__all__ = ["SimulatedAnnealingOptimizer"]


class SimulatedAnnealingOptimizer(ModelOptimizer):
    """Many walkers that step to neighbours, upwards always and downwards ever less often.

    Parameters
    ----------
    task : whose space it walks.
    n_iter : steps of each walker.
    temp : temperature, or its first and last value.
    persistent : begin where the last call ended.
    parallel_size : walkers.
    early_stop : end after so many steps that found nothing better.
    log_interval : steps between two messages.
    """

    def __init__(
        self,
        task: Task,
        n_iter: int = 500,
        temp: float | Sequence[float] = (1, 0),
        persistent: bool = True,
        parallel_size: int = 128,
        early_stop: int = 50,
        log_interval: int = 50,
    ) -> None:
        if task.config_space is None:
            raise ValueError(f"annealing: the task {task.name} has no space")
        self.space = task.config_space
        self.n_iter = n_iter
        self.temp = temp
        self.persistent = persistent
        self.parallel_size = min(parallel_size, len(self.space))
        self.early_stop = early_stop
        self.log_interval = log_interval
        self.points: np.ndarray | None = None

    def find_maximums(self, model: CostModel, num: int, exclusive: set[int]) -> list[int]:
        first, last = self.temp if isinstance(self.temp, Sequence) else (self.temp, self.temp)
        points = self.points if self.persistent else None
        if points is None:
            points = self.space.sample_ints(self.parallel_size)
        scores = model.predict(points)
        best: list[tuple[float, int]] = []
        kept: set[int] = set(exclusive)

        def keep(score: float, index: int) -> bool:
            if index in kept or len(best) == num and score <= best[0][0]:
                return False
            kept.add(index)
            (heapq.heappush if len(best) < num else heapq.heapreplace)(best, (score, index))
            return True

        for score, point in zip(scores, points):
            keep(float(score), int(point))
        last_change = 0
        for step in range(self.n_iter):
            temperature = first + (last - first) * step / max(self.n_iter, 1)
            moved = np.array([self.space.random_walk(int(point)) for point in points])
            values = model.predict(moved)
            chance = np.exp(np.minimum((values - scores) / (temperature + 1e-5), 1.0))
            accept = GLOBAL_SCOPE.rng.random(len(points)) < chance
            points = np.where(accept, moved, points)
            scores = np.where(accept, values, scores)
            for score, point in zip(values, moved):
                if keep(float(score), int(point)):
                    last_change = step
            if self.log_interval and step % self.log_interval == 0:
                logger.debug("annealing step %d: best %.3f", step, max(best)[0] if best else 0.0)
            if step - last_change >= self.early_stop:
                break
        self.points = points
        return [index for _, index in sorted(best, reverse=True)]
