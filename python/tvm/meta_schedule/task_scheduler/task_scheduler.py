"""Which task is searched next, and how its candidates are measured."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tvm import tir

from ..builder import Builder, BuilderInput, BuilderResult
from ..candidate import MeasureCandidate
from ..measure_callback import MeasureCallback
from ..profiler import Profiler
from ..runner import LocalRunnerFuture, Runner, RunnerFuture, RunnerInput
from ..utils import Named

__all__ = ["GradientBased", "PyTaskScheduler", "RoundRobin", "TaskRecord", "TaskScheduler"]

logger = logging.getLogger("tvm.meta_schedule")


@dataclass
class TaskRecord:
    """The state of a task.

    Attributes
    ----------
    ctx : the task. task_weight : its uses in the network. flop : operations of one run.
    is_terminated : whether its search is over.
    runner_futures, measure_candidates, builder_results : the batch that is being measured.
    latency_ms : of each measurement, infinite for failures.
    build_error_count, run_error_count : failures.
    """

    ctx: Any
    task_weight: float = 1.0
    flop: float = 1.0
    is_terminated: bool = False
    build_error_count: int = 0
    run_error_count: int = 0
    measure_candidates: list[MeasureCandidate] | None = None
    builder_results: list[BuilderResult] | None = None
    runner_futures: list[RunnerFuture] | None = None
    latency_ms: list[float] = field(default_factory=list)

    @property
    def best_ms(self) -> float:
        """The lowest latency so far, in milliseconds."""
        return min(self.latency_ms, default=math.inf)


class TaskScheduler(Named):
    """Base of schedulers, which define `next_task_id`.

    Attributes
    ----------
    tasks_ : the state of each task.
    measure_callbacks_, database_, cost_model_ : parts of the run.
    remaining_tasks_ : tasks whose search is not over.
    """

    # The function `create` of the package, which knows the kinds.
    create: ClassVar[Callable[..., Any]]

    def __init__(self) -> None:
        self._reset([], None, None, [])

    def _reset(self, tasks: list[TaskRecord], database: Any, model: Any, callbacks: Any) -> None:
        self.tasks_ = tasks
        self.database_, self.cost_model_ = database, model
        self.measure_callbacks_: list[MeasureCallback] = list(callbacks)
        self.remaining_tasks_ = len(tasks)

    def next_task_id(self) -> int:
        """Index of the task to search next, -1 if all are over."""
        raise ValueError("next_task_id is not defined")

    def tune(
        self,
        tasks: Sequence[Any],
        task_weights: Sequence[float],
        max_trials_global: int,
        max_trials_per_task: int,
        num_trials_per_iter: int,
        builder: Builder,
        runner: Runner,
        measure_callbacks: Sequence[MeasureCallback],
        database: Any,
        cost_model: Any,
    ) -> None:
        """Search until the measurements are spent or all tasks are over.

        Parameters
        ----------
        tasks : `TuneContext` each, with their weights.
        max_trials_global, max_trials_per_task, num_trials_per_iter : measurements in all, of a
            task, and in a batch.
        """
        if len(tasks) != len(task_weights):
            raise ValueError(f"tune: {len(tasks)} tasks but {len(task_weights)} weights")
        self._reset(
            [TaskRecord(task, float(w), _flop(task)) for task, w in zip(tasks, task_weights)],
            database,
            cost_model,
            measure_callbacks,
        )
        builder.prepare()
        runner.prepare()
        for number, task in enumerate(tasks):
            logger.info("Initializing Task #%d: %r", number, task.task_name)
            with Profiler.timeit("InitializeTask"):
                task.pre_tuning(
                    max_trials=max_trials_per_task,
                    num_trials_per_iter=num_trials_per_iter,
                    database=database,
                    cost_model=cost_model,
                )
        logger.info("\n%s", self.statistics())
        try:
            self._run(max_trials_global, max_trials_per_task, builder, runner)
        finally:
            for number, record in enumerate(self.tasks_):
                if not record.is_terminated:
                    self.join_running_task(number)
                    self.terminate_task(number)
                record.ctx.post_tuning()

    def _run(
        self, max_trials_global: int, max_trials_per_task: int, builder: Builder, runner: Runner
    ) -> None:
        started = 0
        while started < max_trials_global:
            number = self.next_task_id()
            if number < 0:
                break
            record = self.tasks_[number]
            logger.info("TaskScheduler picks Task #%d: %r", number, record.ctx.task_name)
            if len(record.latency_ms) >= max_trials_per_task:
                self.terminate_task(number)
                continue
            with Profiler.timeit("EvoSearch"):
                candidates = record.ctx.generate_measure_candidates()
            if candidates is None:
                self.terminate_task(number)
                continue
            started += len(candidates)
            if candidates:
                self._send(record, candidates, builder, runner)

    def _send(
        self,
        record: TaskRecord,
        candidates: list[MeasureCandidate],
        builder: Builder,
        runner: Runner,
    ) -> None:
        log = record.ctx.logger
        log.info("Sending %d sample(s) to builder", len(candidates))
        target = record.ctx.target
        with Profiler.timeit("SendToBuilder"):
            built = builder.build([BuilderInput(c.sch.mod, target) for c in candidates])
        log.info("Sending %d sample(s) to runner", len(candidates))
        device = str(target.kind.name) if target is not None else "llvm"
        with Profiler.timeit("SendToRunner"):
            best = record.best_ms / 1e3 if math.isfinite(record.best_ms) else None
            inputs = [
                RunnerInput(result.artifact_path, device, candidate.args_info, best)
                for candidate, result in zip(candidates, built)
                if result.artifact_path is not None
            ]
            running = iter(runner.run(inputs) if inputs else [])
        record.measure_candidates, record.builder_results = candidates, list(built)
        record.runner_futures = [
            next(running)
            if result.artifact_path is not None
            else LocalRunnerFuture(error_message=result.error_msg or "there is no artifact")
            for result in built
        ]

    def touch_task(self, task_id: int) -> None:
        """Take the results of a task if all are there."""
        futures = self.tasks_[task_id].runner_futures
        if futures is not None and all(future.done() for future in futures):
            self.join_running_task(task_id)

    def join_running_task(self, task_id: int) -> list[Any]:
        """Wait for the results of a task, and hand them to its strategy and the callbacks."""
        record = self.tasks_[task_id]
        if record.runner_futures is None:
            return []
        with Profiler.timeit("JoinRunnerFutures"):
            results = [future.result() for future in record.runner_futures]
        log = record.ctx.logger
        candidates, built = record.measure_candidates or [], record.builder_results or []
        record.measure_candidates = record.builder_results = record.runner_futures = None
        for build, result in zip(built, results):
            seconds = result.run_secs if build.error_msg is None else None
            record.build_error_count += build.error_msg is not None
            stopped = build.error_msg is None and result.at_least is not None
            record.run_error_count += build.error_msg is None and not seconds and not stopped
            if stopped:
                log.info("[%s] a candidate was %s", record.ctx.task_name, result.error_msg)
            elif not seconds:
                message = build.error_msg or result.error_msg
                log.warning("[%s] a candidate failed: %s", record.ctx.task_name, message)
            record.latency_ms.append(float(np.mean(seconds)) * 1e3 if seconds else math.inf)
        record.ctx.notify_runner_results(candidates, results)
        with Profiler.timeit("MeasureCallback"):
            for callback in self.measure_callbacks_:
                callback.apply(self, task_id, candidates, built, results)
        logger.info("[Updated] Task #%d: %r\n%s", task_id, record.ctx.task_name, self.statistics())
        return results

    def terminate_task(self, task_id: int) -> None:
        """End the search of a task."""
        record = self.tasks_[task_id]
        if not record.is_terminated:
            record.is_terminated = True
            self.remaining_tasks_ -= 1
            logger.info(
                "Task #%d has finished. Remaining task(s): %d", task_id, self.remaining_tasks_
            )

    def statistics(self) -> str:
        """A table of all tasks, with the sums below."""
        head = (
            "ID", "Name", "FLOP", "Weight", "Speed (GFLOPS)", "Latency (us)",
            "Weighted Latency (us)", "Trials", "Done",
        )  # fmt: skip
        rows, trials, total = [], 0, 0.0
        for number, record in enumerate(self.tasks_):
            best = record.best_ms
            known = math.isfinite(best)
            trials += len(record.latency_ms)
            total += best * 1e3 * record.task_weight if known else 0.0
            rows.append(
                (
                    str(number),
                    str(record.ctx.task_name),
                    f"{record.flop:.0f}",
                    f"{record.task_weight:g}",
                    f"{record.flop / best / 1e6:.4f}" if known and best > 0 else "N/A",
                    f"{best * 1e3:.4f}" if known else "N/A",
                    f"{best * 1e3 * record.task_weight:.4f}" if known else "N/A",
                    str(len(record.latency_ms)),
                    "Y" if record.is_terminated else "",
                )
            )
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        lines = [" | ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in [head, *rows]]
        lines.insert(1, "-" * len(lines[0]))
        return "\n".join([*lines, f"Total trials: {trials}", f"Total latency (us): {total:g}"])

    def print_tuning_statistics(self) -> None:
        """Print `statistics`."""
        print(self.statistics())


def _flop(context: Any) -> float:
    try:
        return max(float(tir.analysis.estimate_tir_flops(context.mod)), 1.0)
    except (ValueError, RuntimeError, TypeError):
        # Only the table and the order of tasks need it.
        return 1.0


class PyTaskScheduler(TaskScheduler):
    """Base of schedulers that users define."""


class RoundRobin(TaskScheduler):
    """Tasks in turn."""

    def __init__(self) -> None:
        super().__init__()
        self._last = -1

    def next_task_id(self) -> int:
        for step in range(1, len(self.tasks_) + 1):
            number = (self._last + step) % len(self.tasks_)
            if not self.tasks_[number].is_terminated:
                self.join_running_task(number)
                self._last = number
                return number
        return -1


class GradientBased(TaskScheduler):
    """The task of which the next measurements promise the largest gain for the network.

    The gain of a task is judged from its last measurements and from how far it is behind the
    throughput of the others (Ansor, OSDI 2020, section 6).

    Parameters
    ----------
    alpha : share of a task's own history in the judgement.
    window_size : batches of history.
    seed : of the choice among equal tasks; -1 draws one.
    """

    def __init__(self, *, alpha: float = 0.2, window_size: int = 3, seed: int = -1) -> None:
        super().__init__()
        self.alpha, self.window_size = alpha, window_size
        self._rng = random.Random(None if seed < 0 else seed)
        self._histories: dict[int, list[float]] = {}
        self._warm: set[int] = set()

    def next_task_id(self) -> int:
        alive = [i for i, record in enumerate(self.tasks_) if not record.is_terminated]
        if not alive:
            self._histories.clear()
            self._warm.clear()
            return -1
        cold = [i for i in alive if i not in self._warm]
        number = cold[0] if cold else self._steepest(alive)
        self._warm.add(number)
        self.join_running_task(number)
        return number

    def join_running_task(self, task_id: int) -> list[Any]:
        results = super().join_running_task(task_id)
        if results:
            self._histories.setdefault(task_id, []).append(self.tasks_[task_id].best_ms)
        return results

    def _steepest(self, alive: list[int]) -> int:
        # A batch whose results nobody has taken says what its task gains.
        for number in alive:
            if self.tasks_[number].runner_futures is not None:
                self.touch_task(number)
        gains = []
        for number in alive:
            record, history = self.tasks_[number], self._histories.get(number, [])
            best = record.best_ms
            if not history or not math.isfinite(best):
                gains.append((0.0, self._rng.random(), number))
                continue
            before = history[max(0, len(history) - 1 - self.window_size)]
            steps = max(min(len(history) - 1, self.window_size), 1)
            backward = (before - best) / steps if math.isfinite(before) else best
            forward = best / max(len(history), 1)
            gain = record.task_weight * (self.alpha * backward + (1 - self.alpha) * forward)
            gains.append((gain, self._rng.random(), number))
        return max(gains)[2]
