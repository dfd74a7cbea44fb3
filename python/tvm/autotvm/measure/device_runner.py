"""What runners on devices of this machine and of others share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

import tvm

from ..measure_node import MeasureInput, MeasureResult
from .measure import BuildResult, Runner

__all__ = ["DeviceRunner", "failure", "interval"]


class DeviceRunner(Runner):
    """What runners on devices share: a GPU's limits for the builder, and AutoTVM's results.

    Parameters
    ----------
    n_parallel : points that are run at once.
    """

    def __init__(self, timeout: float, n_parallel: int) -> None:
        super().__init__(timeout, n_parallel)
        self._runner: Any = None

    @contextlib.contextmanager
    def _device(self) -> Iterator[tvm.runtime.Device]:
        """The device that the points run on, to ask for its limits."""
        raise TypeError(f"{type(self).__name__} does not say which device it uses")
        yield

    def _time(self, candidates: Sequence[Any], programs: Sequence[Any]) -> list[Any]:
        """A `MeasureResult` of auto_scheduler for each."""
        return list(self._runner.run(candidates, programs))

    def get_build_kwargs(self) -> dict[str, Any]:
        if self.task is None or self.task.target is None or "gpu" not in self.task.target.keys:
            return {}
        with self._device() as device:
            if not device.exist:
                return {}
            limits = {
                "max_shared_memory_per_block": device.max_shared_memory_per_block,
                "max_threads_per_block": device.max_threads_per_block,
            }
        return {"check_gpu": limits}

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult]
    ) -> list[MeasureResult]:
        ready = [built for built in build_results if built.program and built.candidate]
        timed = self._time([built.candidate for built in ready], [b.program for b in ready])
        by_build = {id(built): result for built, result in zip(ready, timed)}
        return [
            _result(built, by_build[id(built)]) if id(built) in by_build else failure(built)
            for built in build_results
        ]


def interval(who: str, interval: float | None, old_spelling: float | None) -> float:
    """Seconds between points under either name."""
    if interval is not None and old_spelling is not None:
        raise ValueError(f"{who}: give cooldown_interval only; coldown_interval is its old name")
    wait = old_spelling if interval is None else interval
    return 0.1 if wait is None else wait


def _result(built: BuildResult, timed: Any) -> MeasureResult:
    if timed.error_no:
        costs: tuple[Any, ...] = (RuntimeError(str(timed.error_msg)),)
    else:
        costs = tuple(float(cost) for cost in timed.costs)
    return MeasureResult(
        costs,
        int(timed.error_no),
        built.time_cost + float(timed.all_cost) - float(getattr(built.program, "time_cost", 0.0)),
        float(timed.timestamp),
    )


def failure(built: BuildResult) -> MeasureResult:
    return MeasureResult((built.error,), int(built.error_no), built.time_cost, time.time())
