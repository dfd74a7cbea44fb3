"""Building and timing candidates in worker processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm

from .measure_node import (
    MAX_FLOAT,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    shorten_error_text,
)
from .measure_record import dump_input
from .worker_pool import Job, Outcome, WorkerPool

__all__ = ["BuiltProgram", "LocalBuilder", "LocalRunner", "MeasureCallback", "ProgramMeasurer"]

MeasureCallback = Callable[[Any, Sequence[MeasureInput], Sequence[MeasureResult]], None]

_JOBS_MODULE = "tvm.auto_scheduler.measure_jobs"
_BUILD = f"{_JOBS_MODULE}:build"
_RUN = f"{_JOBS_MODULE}:run"
# After this many failures in a row something else than the candidates is wrong.
_MAX_CONSECUTIVE_ERRORS = 150


def _machine_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cpu_count() -> int:
    """Cores this process may use, which a container can restrict."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class BuiltProgram:
    """Outcome of a build.

    Attributes
    ----------
    code : object file, empty on failure.
    description : what the runner must know about the code: functions, arguments, layouts.
    error_no, error_msg : what went wrong.
    time_cost : seconds.
    """

    code: bytes
    description: dict[str, Any] = field(default_factory=dict)
    error_no: int = 0
    error_msg: str = ""
    time_cost: float = 0.0


class LocalBuilder:
    """Compiles candidates on this machine, several at once, in processes of their own.

    Parameters
    ----------
    timeout : seconds for one build.
    n_parallel : builds at once; by default one a core.
    build_func : "default", or ``module:function`` to be called in the workers instead; see
        `measure_jobs.build` for what it takes and returns.
    memory_bytes : memory that one build may take; by default half of the machine's.

    Raises
    ------
    ValueError : a limit is not positive, or `build_func` has another form.
    """

    def __init__(
        self,
        timeout: float = 15,
        n_parallel: int | None = None,
        build_func: str = "default",
        memory_bytes: int | None = None,
    ) -> None:
        if build_func != "default" and ":" not in build_func:
            raise ValueError(
                'LocalBuilder: build_func must be "default" or "module:function", got '
                f"{build_func!r}"
            )
        self.timeout = timeout
        self.n_parallel = _cpu_count() if n_parallel is None else n_parallel
        self._function = _BUILD if build_func == "default" else build_func
        self.pool = WorkerPool(
            self.n_parallel,
            timeout,
            _machine_memory() // 2 if memory_bytes is None else memory_bytes,
            modules=[self._function.partition(":")[0]],
        )

    def build(
        self, inputs: Sequence[MeasureInput], default_schedule: bool = False
    ) -> list[BuiltProgram]:
        """Compile candidates.

        Parameters
        ----------
        inputs : the candidates.
        default_schedule : build their tasks with nothing scheduled instead.
        """
        jobs = [
            Job(
                self._function,
                {
                    "input": dump_input(measure_input),
                    "workload": _workload(measure_input.task),
                    "default_schedule": default_schedule,
                },
            )
            for measure_input in inputs
        ]
        return [self._built(outcome) for outcome in self.pool.run(jobs)]

    @staticmethod
    def _built(outcome: Outcome) -> BuiltProgram:
        if outcome.status == "timeout":
            error_no, message = MeasureErrorNo.BUILD_TIMEOUT, outcome.message
        elif outcome.status != "done":
            error_no, message = MeasureErrorNo.COMPILE_HOST, outcome.message
        elif outcome.result["error_no"]:
            error_no = MeasureErrorNo(outcome.result["error_no"])
            message = outcome.result["error_msg"]
        else:
            return BuiltProgram(outcome.blob, outcome.result, time_cost=outcome.seconds)
        return BuiltProgram(
            b"",
            error_no=int(error_no),
            error_msg=shorten_error_text(message),
            time_cost=outcome.seconds,
        )


_workload_texts: dict[str, str] = {}


def _workload(task: Any) -> list[str]:
    """Key and tensors of a task, for a process that has not got them."""
    key = str(task.workload_key)
    if key not in _workload_texts:
        _workload_texts[key] = tvm.ir.save_json(list(task.compute_dag.tensors))
    return [key, _workload_texts[key]]


class LocalRunner:
    """Times compiled candidates on this machine, one at a time, in a process of their own.

    Parameters
    ----------
    timeout : seconds for one candidate, warm-up included.
    number : calls in one repeat, at least.
    repeat : number of repeats, each giving one cost.
    min_repeat_ms : a repeat is at least this long.
    cooldown_interval : seconds between repeats and between candidates.
    enable_cpu_cache_flush : empty the caches before each call; a repeat is then a single call.
    device : index of the device.
    run_func : "default", or ``module:function`` to be called in the worker instead; see
        `measure_jobs.run`.
    memory_bytes : memory that a candidate may take; by default half of the machine's.
    check_correctness : compare outputs with those of the unscheduled program on equal inputs.

    Raises
    ------
    ValueError : a number is out of range, or `run_func` has another form.
    """

    def __init__(
        self,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: float = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
        run_func: str = "default",
        memory_bytes: int | None = None,
        check_correctness: bool = False,
    ) -> None:
        for name, value, least in (
            ("number", number, 1),
            ("repeat", repeat, 1),
            ("min_repeat_ms", min_repeat_ms, 0),
            ("cooldown_interval", cooldown_interval, 0),
            ("device", device, 0),
        ):
            if value < least:
                raise ValueError(f"LocalRunner: {name} must be >= {least}, got {value}")
        if run_func != "default" and ":" not in run_func:
            raise ValueError(
                f'LocalRunner: run_func must be "default" or "module:function", got {run_func!r}'
            )
        self.timeout = timeout
        self.number = number
        self.repeat = repeat
        self.min_repeat_ms = min_repeat_ms
        self.cooldown_interval = cooldown_interval
        self.enable_cpu_cache_flush = enable_cpu_cache_flush
        self.device = device
        self.check_correctness = check_correctness
        self._function = _RUN if run_func == "default" else run_func
        self.pool = WorkerPool(
            1,
            timeout,
            _machine_memory() // 2 if memory_bytes is None else memory_bytes,
            modules=[self._function.partition(":")[0]],
        )

    def run_one(
        self,
        measure_input: MeasureInput,
        program: BuiltProgram,
        best_seconds: float | None = None,
        reference: BuiltProgram | None = None,
    ) -> MeasureResult:
        """Time one program.

        Parameters
        ----------
        measure_input : what it was built from.
        program : a successful or failed build; the latter's error is passed on.
        best_seconds : latency of the best candidate so far; a far slower one is run only briefly.
        reference : the unscheduled program to compare outputs with.
        """
        if program.error_no:
            return self._result([MAX_FLOAT], program.error_no, program.error_msg, program.time_cost)
        if reference is not None and reference.error_no:
            raise RuntimeError(
                "LocalRunner: the unscheduled program, which outputs are compared with, does not "
                f"build: {reference.error_msg}"
            )
        arguments = {
            **program.description,
            "key": str(measure_input.task.workload_key),
            "device": [str(measure_input.task.target.kind.name), self.device],
            "number": self.number,
            "repeat": self.repeat,
            "min_repeat_ms": self.min_repeat_ms,
            "cooldown_interval": self.cooldown_interval,
            "flush": self.enable_cpu_cache_flush,
            "best_seconds": best_seconds,
            "reference": None if reference is None else reference.description,
            "reference_at": len(program.code),
        }
        blob = program.code + (b"" if reference is None else reference.code)
        [outcome] = self.pool.run([Job(self._function, arguments, blob)])
        if self.cooldown_interval:
            time.sleep(self.cooldown_interval)
        seconds = program.time_cost + outcome.seconds
        if outcome.status == "timeout":
            return self._result([MAX_FLOAT], MeasureErrorNo.RUN_TIMEOUT, outcome.message, seconds)
        if outcome.status != "done":
            return self._result(
                [MAX_FLOAT], MeasureErrorNo.RUNTIME_DEVICE, outcome.message, seconds
            )
        if outcome.result["error_no"]:
            return self._result(
                [MAX_FLOAT], outcome.result["error_no"], outcome.result["error_msg"], seconds
            )
        return self._result(outcome.result["costs"], MeasureErrorNo.NO_ERROR, None, seconds)

    @staticmethod
    def _result(
        costs: Sequence[float], error_no: int, message: str | None, seconds: float
    ) -> MeasureResult:
        text = None if message is None else shorten_error_text(message)
        return MeasureResult(costs, int(error_no), text, seconds, time.time())


class ProgramMeasurer:
    """Builds and times candidates, and keeps the best of each workload.

    A batch is first built by all workers at once, then run one by one, so that no build disturbs a
    measurement.

    Parameters
    ----------
    builder, runner : by default LocalBuilder() and LocalRunner().
    callbacks : called after each batch with (None, inputs, results), such as RecordToFile.
    max_consecutive_errors : this many failures in a row end the measuring, since they have another
        cause than the candidates.

    Attributes
    ----------
    best_seconds : workload key to the latency of its best program.
    best_state : workload key to the state of its best program.
    """

    def __init__(
        self,
        builder: LocalBuilder | None = None,
        runner: LocalRunner | None = None,
        callbacks: Sequence[MeasureCallback] = (),
        max_consecutive_errors: int = _MAX_CONSECUTIVE_ERRORS,
    ) -> None:
        self.builder = LocalBuilder() if builder is None else builder
        self.runner = LocalRunner() if runner is None else runner
        self.callbacks = list(callbacks)
        self.max_consecutive_errors = max_consecutive_errors
        self.best_seconds: dict[str, float] = {}
        self.best_state: dict[str, Any] = {}
        self._consecutive_errors = 0
        self._references: dict[str, BuiltProgram] = {}

    def measure(
        self,
        inputs: Sequence[MeasureInput],
        on_result: Callable[[int, MeasureResult], None] | None = None,
        best_seconds: float | None = None,
    ) -> list[MeasureResult]:
        """Measure candidates.

        Parameters
        ----------
        inputs : the candidates, usually of one task.
        on_result : called with position and result as soon as each is known.
        best_seconds : latency of the best schedule known elsewhere, for instance from a record.

        Raises
        ------
        RuntimeError : too many candidates failed in a row, or a worker does not start.
        """
        inputs = list(inputs)
        programs = self.builder.build(inputs)
        results: list[MeasureResult] = []
        try:
            for position, (measure_input, program) in enumerate(zip(inputs, programs)):
                key = str(measure_input.task.workload_key)
                known = [s for s in (best_seconds, self.best_seconds.get(key)) if s is not None]
                result = self.runner.run_one(
                    measure_input,
                    program,
                    best_seconds=min(known, default=None),
                    reference=self._reference(measure_input),
                )
                results.append(result)
                self._register(key, measure_input, result)
                if on_result is not None:
                    on_result(position, result)
        finally:
            # What was measured before an interruption is recorded all the same.
            if results:
                for callback in self.callbacks:
                    callback(None, inputs[: len(results)], results)
        return results

    def close(self) -> None:
        """End the worker processes; they start again when needed."""
        self.builder.pool.close()
        self.runner.pool.close()

    def _reference(self, measure_input: MeasureInput) -> BuiltProgram | None:
        if not self.runner.check_correctness:
            return None
        key = str(measure_input.task.workload_key)
        if key not in self._references:
            [self._references[key]] = self.builder.build([measure_input], default_schedule=True)
        return self._references[key]

    def _register(self, key: str, measure_input: MeasureInput, result: MeasureResult) -> None:
        if int(result.error_no) == MeasureErrorNo.NO_ERROR:
            self._consecutive_errors = 0
            seconds = result.mean_cost
            if seconds < self.best_seconds.get(key, float("inf")):
                self.best_seconds[key] = seconds
                self.best_state[key] = measure_input.state
            return
        self._consecutive_errors += 1
        if self._consecutive_errors >= self.max_consecutive_errors:
            raise RuntimeError(
                f"ProgramMeasurer: {self._consecutive_errors} candidates failed in a row, the last "
                f"with error {int(result.error_no)}: {result.error_msg}"
            )
