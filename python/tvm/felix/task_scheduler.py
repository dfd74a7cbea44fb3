"""Which task to tune next: the gradient of the network's latency with respect to effort."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["TaskProgress", "TaskScheduler"]


@dataclass(frozen=True)
class TaskProgress:
    """What the scheduler needs to know of a task."""

    weight: float
    """Uses in the network."""
    flop: float
    history: Sequence[float]
    """Best latency in seconds after each round; infinity while nothing valid was measured."""
    dead: bool = False
    """Nothing new is left to measure, or the task failed too often."""


class TaskScheduler:
    """Gradient task scheduling of Ansor (OSDI 2020, section 6) with Felix's constants.

    A task that has no valid measurement yet counts with a finite prior latency, the one its FLOP
    would take at the mean throughput of the others, so a task that only fails cannot absorb the
    whole budget; after `max_failed_rounds` rounds without a valid result it is dropped.
    """

    def __init__(
        self,
        alpha: float = 0.2,
        backward_window: int = 3,
        max_failed_rounds: int = 3,
        stall_rounds: int = 8,
    ) -> None:
        self.alpha = alpha
        self.backward_window = backward_window
        self.max_failed_rounds = max_failed_rounds
        self.stall_rounds = stall_rounds

    def choose(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> int | None:
        """Index of the task to tune next, or None when all are finished."""
        alive = [i for i, task in enumerate(tasks) if not self._finished(task)]
        if not alive:
            return None
        untouched = [i for i in alive if not tasks[i].history]
        if untouched:
            return max(untouched, key=lambda i: tasks[i].flop * tasks[i].weight)
        gains = np.array([self._gain(tasks[i], self._throughput(tasks)) for i in alive])
        best = np.flatnonzero(gains == gains.max())
        return alive[int(rng.choice(best))]

    def _finished(self, task: TaskProgress) -> bool:
        if task.dead:
            return True
        history = task.history
        failed = len(history) >= self.max_failed_rounds and math.isinf(history[-1])
        # Many rounds without any progress: the optimum of the space has most likely been found.
        stalled = (
            len(history) > self.stall_rounds
            and history[-1 - self.stall_rounds] <= history[-1] * 1.0001
        )
        return failed or stalled

    def _gain(self, task: TaskProgress, throughput: float) -> float:
        """Expected decrease of the network's latency, seconds a round."""
        history = [h if math.isfinite(h) else task.flop / throughput for h in task.history]
        latest, rounds, window = history[-1], len(history), self.backward_window
        backward = (history[-1 - window] - latest) / window if rounds > window else latest / rounds
        forward = latest / rounds
        return task.weight * (self.alpha * backward + (1 - self.alpha) * forward)

    @staticmethod
    def _throughput(tasks: Sequence[TaskProgress]) -> float:
        known = [t for t in tasks if t.history and math.isfinite(t.history[-1])]
        seconds = sum(t.history[-1] for t in known)
        return sum(t.flop for t in known) / seconds if seconds > 0 else 1e9
