"""What builders and runners do in this process: jobs for workers, and results of outcomes."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import tvm
from tvm.runtime import Device
from tvm.runtime.workers import Job, Outcome, WorkerPool

from .machine_gauge import gauge_here
from .measure_jobs import describe_argument
from .measure_node import MAX_FLOAT, BuildResult, Candidate, MeasureErrorNo, MeasureResult

__all__ = [
    "BuildJobs",
    "DeviceLostError",
    "JobPool",
    "LocalBuild",
    "LocalRun",
    "RunJobs",
    "RunnerOptions",
    "failed",
    "function_of",
    "run_arguments",
]

_JOBS_MODULE = "tvm.auto_scheduler.measure_jobs"
# How often a device that failed is asked whether it works again, and seconds between: a driver that
# resets one takes a few.
_PROBES = 4
_PROBE_PAUSE_SECONDS = 2.0
# The function of a library file, which `tvm.build` names so.
_LIBRARY_FUNCTION = "default_function"


def _pool(function: str, size: int, local: Any) -> WorkerPool:
    module = function.partition(":")[0]
    return WorkerPool(size, float(local.timeout), int(local.memory_bytes), modules=[module])


class DeviceLostError(ConnectionError):
    """The device that programs are timed on does not answer any more, from no process.

    What was measured before is kept; the candidate under way has no result.
    """


def _failure_of(outcome: Outcome, late: int, failed: int) -> tuple[int, str] | None:
    """Error code and text of what became of a job, or None if nothing went wrong."""
    if outcome.status == "timeout":
        return late, outcome.message
    if outcome.status != "done":
        return failed, outcome.message
    if outcome.result["error_no"]:
        return int(outcome.result["error_no"]), str(outcome.result["error_msg"])
    return None


@dataclass(frozen=True)
class RunnerOptions:
    """How a runner times; the fields are those of a ProgramRunner."""

    number: int
    repeat: int
    min_repeat_ms: float
    cooldown_interval: float
    enable_cpu_cache_flush: bool
    device: int

    @classmethod
    def of(cls, runner: Any) -> RunnerOptions:
        """Those of a runner. It holds what is opened for it, which must not hold it."""
        return cls(
            int(runner.number),
            int(runner.repeat),
            float(runner.min_repeat_ms),
            float(runner.cooldown_interval),
            bool(runner.enable_cpu_cache_flush),
            int(runner.device),
        )


class JobPool(Protocol):
    """Runs jobs in processes of their own, wherever these are."""

    def run(
        self, jobs: Sequence[Job], on_outcome: Callable[[int, Outcome], None] | None = None
    ) -> list[Outcome]:
        """One outcome a job, as of `WorkerPool.run`."""


def _job_function(name: str, default: str) -> str:
    return f"{_JOBS_MODULE}:{default}" if name == "default" else name


class BuildJobs:
    """Compiles candidates by jobs.

    Parameters
    ----------
    pool : runs them.
    function : ``module:name`` that they call, see `measure_jobs.build`.
    """

    def __init__(self, pool: JobPool, function: str = "default") -> None:
        self._function = _job_function(function, "build")
        self._jobs = pool

    def __call__(self, candidates: Sequence[Candidate], unscheduled: bool) -> list[BuildResult]:
        requests = [candidate.request(unscheduled) for candidate in candidates]
        jobs = [
            Job(self._function, {"program": request.function, "arguments": request.arguments})
            for request in requests
        ]
        return [self._built(outcome) for outcome in self._jobs.run(jobs)]

    @staticmethod
    def _built(outcome: Outcome) -> BuildResult:
        failure = _failure_of(outcome, MeasureErrorNo.BUILD_TIMEOUT, MeasureErrorNo.COMPILE_HOST)
        if failure is not None:
            return BuildResult(None, [], *failure, outcome.seconds)
        return BuildResult(
            None, [], 0, None, outcome.seconds, outcome.blob, description=outcome.result
        )


class LocalBuild(BuildJobs):
    """The processes of a LocalBuilder."""

    def __init__(self, builder: Any) -> None:
        name = str(builder.build_func)
        self.pool = _pool(_job_function(name, "build"), int(builder.n_parallel), builder)
        super().__init__(self.pool, name)


def run_arguments(
    options: RunnerOptions,
    candidate: Candidate,
    program: BuildResult,
    best_seconds: float | None,
    reference: BuildResult | None,
) -> dict[str, Any]:
    """What `measure_jobs.run` takes for a program that was built.

    Raises
    ------
    ValueError : an input that the candidate names is not what it reads.
    """
    return {
        **_description(program),
        "number": options.number,
        "repeat": options.repeat,
        "min_repeat_ms": options.min_repeat_ms,
        "cooldown_interval": options.cooldown_interval,
        "flush": options.enable_cpu_cache_flush,
        "key": candidate.workload_key,
        "device": [str(candidate.build_target.kind.name), options.device],
        "best_seconds": best_seconds,
        "special_inputs": candidate.special_inputs(),
        "reference": None if reference is None else json.loads(reference.description),
        "reference_at": len(bytes(program.code)),
    }


class RunJobs:
    """Times candidates by jobs, one after the other.

    Parameters
    ----------
    pool : runs them.
    runner : has the numbers of a ProgramRunner.
    function : ``module:name`` that they call, see `measure_jobs.run`.
    """

    def __init__(self, pool: JobPool, runner: Any, function: str = "default") -> None:
        self._function = _job_function(function, "run")
        self._jobs = pool
        self._options = RunnerOptions.of(runner)

    def __call__(
        self,
        candidates: Sequence[Candidate],
        programs: Sequence[BuildResult],
        best_seconds: Mapping[str, float],
        references: Mapping[str, BuildResult],
        on_result: Callable[[int, MeasureResult], None] | None,
    ) -> list[MeasureResult]:
        best = {str(key): float(seconds) for key, seconds in best_seconds.items()}
        results = []
        for position, (candidate, program) in enumerate(zip(candidates, programs)):
            key = candidate.workload_key
            result = self.run_one(candidate, program, best.get(key), references.get(key))
            if int(result.error_no) == MeasureErrorNo.NO_ERROR:
                best[key] = min(result.mean_cost, best.get(key, MAX_FLOAT))
            results.append(result)
            if on_result is not None:
                on_result(position, result)
        return results

    def run_one(
        self,
        candidate: Candidate,
        program: BuildResult,
        best_seconds: float | None,
        reference: BuildResult | None,
    ) -> MeasureResult:
        """Time one candidate.

        Raises
        ------
        DeviceLostError : the device does not answer any more.
        """
        if program.error_no:
            return failed(int(program.error_no), str(program.error_msg), program.time_cost)
        try:
            arguments = run_arguments(self._options, candidate, program, best_seconds, reference)
        except ValueError as error:
            return failed(int(MeasureErrorNo.RUNTIME_DEVICE), str(error), program.time_cost)
        blob = bytes(program.code) + (b"" if reference is None else bytes(reference.code))
        outcome = self._run(Job(self._function, arguments, blob))
        if self._options.cooldown_interval:
            time.sleep(self._options.cooldown_interval)
        seconds = program.time_cost + outcome.seconds
        failure = _failure_of(outcome, MeasureErrorNo.RUN_TIMEOUT, MeasureErrorNo.RUNTIME_DEVICE)
        if failure is not None:
            return failed(*failure, seconds)
        kernels = arguments.get("kernels")
        return MeasureResult(outcome.result["costs"], 0, None, seconds, time.time(), kernels)

    def _is_there(self, device: Device) -> bool:
        """Whether a device that does not answer was there, so that it is lost."""
        return True

    def _run(self, job: Job) -> Outcome:
        """What became of a job on a device that works.

        A GPU that fails in the middle of a job takes its process along, whoever is to blame. If a
        new process can use it, the job has a second try; a program that fails twice is to blame.
        """
        device = tvm.device(*job.arguments["device"])
        [outcome] = self._jobs.run([job])
        if device.device_type == tvm.cpu().device_type:
            return outcome
        for tries_left in (1, 0):
            failed_device = outcome.status == "done" and "device_failed" in outcome.result
            if (outcome.status == "done" and not failed_device) or not self._is_there(device):
                break
            reason = self._why_silent(job.arguments["device"])
            if reason:
                raise DeviceLostError(f"the device {device} is lost: {reason}")
            if not (failed_device and tries_left):
                break
            [outcome] = self._jobs.run([job])
        return outcome

    def _why_silent(self, device: Sequence[Any]) -> str:
        """Why a device does not answer a new process, after some time to recover; "" if it does."""
        reason = ""
        for attempt in range(_PROBES):
            if attempt:
                time.sleep(_PROBE_PAUSE_SECONDS)
            [outcome] = self._jobs.run([Job(f"{_JOBS_MODULE}:probe", {"device": list(device)})])
            reason = outcome.message if outcome.status != "done" else outcome.result["reason"]
            if not reason:
                break
        return str(reason)


class LocalRun(RunJobs):
    """The process of a LocalRunner."""

    def __init__(self, runner: Any) -> None:
        name = str(runner.run_func)
        self.pool = _pool(_job_function(name, "run"), 1, runner)
        super().__init__(self.pool, runner, name)

    def _is_there(self, device: Device) -> bool:
        # This process runs nothing on it, and knows what it saw first.
        return device.exist

    def _run(self, job: Job) -> Outcome:
        # The process may be new, and the machine disturbed from its start on.
        job.arguments["gauge_seconds"] = gauge_here.usual
        outcome = super()._run(job)
        if outcome.status == "done":
            gauge_here.learn(outcome.result.get("gauge_seconds", math.inf))
        return outcome


def failed(error_no: int, message: str, seconds: float) -> MeasureResult:
    """The result of a program that could not be measured."""
    return MeasureResult([MAX_FLOAT], error_no, message, seconds, time.time())


def function_of(program: BuildResult) -> str:
    """Name of a built program's function."""
    return str(_description(program)["functions"][0])


def _description(program: BuildResult) -> dict[str, Any]:
    """What a worker must know of a program; one in a file is described by its arguments."""
    if not program.filename:
        return {"file": "", **json.loads(program.description)}
    return {
        "file": str(program.filename),
        "functions": [_LIBRARY_FUNCTION],
        "args": [describe_argument(tensor) for tensor in program.args],
        "transforms": [],
    }


@tvm.register_func("auto_scheduler.local_builder.open")
def _open_builder(builder: Any) -> Callable[..., list[BuildResult]]:
    return LocalBuild(builder).__call__


@tvm.register_func("auto_scheduler.local_runner.open")
def _open_runner(runner: Any) -> Callable[..., list[MeasureResult]]:
    return LocalRun(runner).__call__
