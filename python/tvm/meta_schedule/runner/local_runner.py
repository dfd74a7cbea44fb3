"""Timing on this machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm.runtime import Device
from tvm.runtime.workers import Job, WorkerPool
from tvm.runtime.workers.forked import Clock, can_fork, run_forked

from ..candidate import RunnerResult
from ..utils import get_global_func_with_default_on_worker
from ..worker_jobs import allocate, evaluate
from .config import EvaluatorConfig
from .runner import Runner, RunnerFuture, RunnerInput

__all__ = ["LocalRunner", "LocalRunnerFuture", "default_alloc_argument", "default_run_evaluator"]

_JOBS = "tvm.meta_schedule.worker_jobs"
# How much longer than a hopeless call one takes that is not waited for.
_STOP_FACTOR = 2.0


def default_alloc_argument(device: Any, args_info: list[Any], alloc_repeat: int) -> list[list[Any]]:
    """Random arrays for lists ["TENSOR", dtype, shape]; one list a repeat."""
    return allocate(device, args_info, alloc_repeat)


def default_run_evaluator(
    rt_mod: Any, device: Any, evaluator_config: EvaluatorConfig, repeated_args: list[list[Any]]
) -> list[float]:
    """Seconds of each repeat over each list of arrays."""
    return evaluate(rt_mod, device, evaluator_config._asdict(), repeated_args)


class LocalRunnerFuture(RunnerFuture):
    """A result that is there."""

    def __init__(
        self,
        res: list[float] | None = None,
        error_message: str | None = None,
        at_least: float | None = None,
    ) -> None:
        super().__init__()
        if (res is None) == (error_message is None):
            raise ValueError("LocalRunnerFuture: give either seconds or an error")
        self.res, self.error_message, self.at_least = res, error_message, at_least

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        return RunnerResult(self.res, self.error_message, self.at_least)


def _mean(future: LocalRunnerFuture) -> float:
    """Seconds of a result, infinite for a failure."""
    return math.inf if not future.res else sum(future.res) / len(future.res)


class LocalRunner(Runner):
    """Times libraries one at a time in a worker process.

    Parameters
    ----------
    timeout_sec : for one candidate, warm-up included.
    evaluator_config : how to time.
    cooldown_sec : wait after each.
    alloc_repeat : sets of arrays, each timed.
    f_alloc_argument, f_run_evaluator, f_cleanup : functions, or names of registered ones, in the
        place of the default ones. With any of them candidates run in a copy of this process, so
        what these functions change is not seen here; those for other devices than processors run
        in this process, as long as they take.
    initializer : called once before the first run; where functions of one's own run in copies, in
        each of them.
    hopeless_factor : a candidate whose first call takes this many times as long as the best program
        of its task, of this batch or before (`RunnerInput.best_seconds`), is not called again, and
        that call is its result. A call that takes twice as long as that is stopped, and its result
        is an error that says how long it ran (`RunnerResult.at_least`). ``math.inf`` times all of
        them carefully, however long they take. On processors each candidate runs in a copy of the
        worker, so that one that crashes or is stopped does not cost the start of a worker.
    """

    def __init__(
        self,
        timeout_sec: float = 30.0,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_alloc_argument: str | Callable[..., Any] | None = None,
        f_run_evaluator: str | Callable[..., Any] | None = None,
        f_cleanup: str | Callable[..., Any] | None = None,
        initializer: Callable[[], None] | None = None,
        hopeless_factor: float = 2.0,
    ) -> None:
        if not hopeless_factor > 1:
            raise ValueError(
                f"LocalRunner: hopeless_factor must be above 1, got {hopeless_factor}; math.inf "
                "times every candidate carefully"
            )
        self.timeout_sec = timeout_sec
        self.evaluator_config = evaluator_config or EvaluatorConfig()
        self.cooldown_sec = cooldown_sec
        self.alloc_repeat = alloc_repeat
        self.f_alloc_argument = f_alloc_argument
        self.f_run_evaluator = f_run_evaluator
        self.f_cleanup = f_cleanup
        self.initializer = initializer
        self.hopeless_factor = hopeless_factor
        self._pool = WorkerPool(1, timeout_sec, modules=[_JOBS])
        self._ready = False

    def prepare(self) -> None:
        if not self._has_own:
            self._pool.start()

    @property
    def _has_own(self) -> bool:
        own = (self.f_alloc_argument, self.f_run_evaluator, self.f_cleanup)
        return any(function is not None for function in own)

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        if self._has_own:
            return [self._run_with_own(entry) for entry in runner_inputs]
        self._initialize()
        return self._run_batch(runner_inputs)

    def _initialize(self) -> None:
        if not self._ready and self.initializer is not None:
            self.initializer()
        self._ready = True

    def _run_batch(self, entries: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Results of candidates of one task."""
        best = min((e.best_seconds for e in entries if e.best_seconds), default=math.inf)
        # While nothing better is known, a call that takes as long as a whole repeat is put off.
        unknown = math.inf if math.isinf(self.hopeless_factor) else self._long
        timed: list[tuple[LocalRunnerFuture, bool]] = []
        for entry in entries:
            hopeless = self.hopeless_factor * best
            # What is over so soon is not worth a doubt.
            stop = max(_STOP_FACTOR * hopeless, self._long)
            future, once = self._run(entry, min(hopeless, unknown), stop)
            best = min(best, _mean(future))
            timed.append((future, once))
        results: list[RunnerFuture] = []
        for entry, (future, once) in zip(entries, timed):
            if once and _mean(future) <= self.hopeless_factor * best:
                future, _ = self._run(entry, math.inf, math.inf)
            results.append(future)
        return results

    @property
    def _long(self) -> float:
        """Seconds that a call takes at least to be as good as a repeat."""
        return max(self.evaluator_config.min_repeat_ms, 1) / 1e3

    def _run(
        self, entry: RunnerInput, once_above: float, stop_after: float
    ) -> tuple[LocalRunnerFuture, bool]:
        """The result, and whether it is that of a single call."""
        arguments = {
            "path": str(entry.artifact_path),
            "device": entry.device_type,
            "args_info": [info.as_json() for info in entry.args_info],
            "alloc_repeat": self.alloc_repeat,
            "config": self.evaluator_config._asdict(),
            "once_above": once_above,
            "long": self._long,
            "stop_after": stop_after if math.isfinite(stop_after) else None,
        }
        [outcome] = self._pool.run([Job(f"{_JOBS}:run", arguments)])
        time.sleep(self.cooldown_sec)
        at_least = None
        if outcome.status == "timeout":
            error = f"Timeout, killed after {self.timeout_sec} seconds"
        elif outcome.status == "done":
            error, at_least = outcome.result["error"], outcome.result["at_least"]
        else:
            error = outcome.message
        if error:
            return LocalRunnerFuture(None, f"LocalRunner: {error}", at_least), False
        return LocalRunnerFuture(outcome.result["seconds"]), bool(outcome.result["once"])

    def _run_with_own(self, entry: RunnerInput) -> RunnerFuture:
        """The result by the caller's functions.

        They are functions of this process, so a copy of it calls them, which can be killed. A copy
        has no device open, so those for other devices are called here, for as long as they take.
        """
        on_host = tvm.device(entry.device_type, 0).device_type == Device.kDLCPU
        try:
            if on_host and can_fork():
                outcome = run_forked(lambda clock: self._timed(clock, entry), self.timeout_sec)
                if outcome.status == "timeout":
                    error = f"Timeout, killed after {self.timeout_sec} seconds"
                    return LocalRunnerFuture(error_message=f"LocalRunner: {error}")
                if outcome.status != "done":
                    return LocalRunnerFuture(error_message=_own_failure(outcome.message))
                return LocalRunnerFuture(outcome.result)
            try:
                return LocalRunnerFuture(self._by_own(entry))
            except Exception as error:  # the caller's functions
                return LocalRunnerFuture(
                    error_message=_own_failure(f"{type(error).__name__}: {error}")
                )
        finally:
            time.sleep(self.cooldown_sec)

    def _timed(self, clock: Clock, entry: RunnerInput) -> list[float]:
        clock.start()
        return self._by_own(entry)

    def _by_own(self, entry: RunnerInput) -> list[float]:
        self._initialize()
        find = get_global_func_with_default_on_worker
        try:
            device = tvm.device(entry.device_type, 0)
            module = tvm.runtime.load_module(str(entry.artifact_path))
            args_info = [info.as_json() for info in entry.args_info]
            sets = find(self.f_alloc_argument, default_alloc_argument)(
                device, args_info, self.alloc_repeat
            )
            seconds = find(self.f_run_evaluator, default_run_evaluator)(
                module, device, self.evaluator_config, sets
            )
            return [float(value) for value in seconds]
        finally:
            cleanup = find(self.f_cleanup, None)
            if cleanup is not None:
                cleanup()


def _own_failure(what: str) -> str:
    return f"LocalRunner: An exception occurred\n{what}"
