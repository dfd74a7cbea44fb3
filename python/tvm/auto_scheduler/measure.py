"""Builders, runners, and the measurer that puts them together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm.runtime import Object
from tvm.runtime.workers import WorkerPool

from . import _ffi_api
from .measure_callback import MeasureCallback, as_callbacks
from .measure_local import LocalBuild, LocalRun  # noqa: F401 - C++ opens them by name
from .measure_node import (
    BuildResult,
    Candidate,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    recover_measure_input,
)

__all__ = [
    "BuildResult",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "ProgramBuilder",
    "ProgramMeasurer",
    "ProgramRunner",
    "recover_measure_input",
]


def _half_of_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _cpu_count() -> int:
    """Cores this process may use, which a container can restrict."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _require_override(instance: Any, base: type, method: str) -> Callable[..., Any]:
    if getattr(type(instance), method) is getattr(base, method):
        raise TypeError(f"{type(instance).__name__}: a {base.__name__} defines `{method}`")
    return getattr(instance, method)


@tvm._ffi.register_object("auto_scheduler.ProgramBuilder")
class ProgramBuilder(Object):
    """Compiles candidates. Builders of one's own derive from this class and define `build`.

    Parameters
    ----------
    n_parallel : builds at once; a measurer hands out twice as many candidates in a batch.
    timeout : seconds for one build.
    """

    def __init__(self, n_parallel: int = 1, timeout: float = 15) -> None:
        build = _require_override(self, ProgramBuilder, "build")
        self.__init_handle_by_constructor__(_ffi_api.PythonBasedBuilder, n_parallel, timeout, build)

    def build(
        self, candidates: Sequence[Candidate], unscheduled: bool = False
    ) -> list[BuildResult]:
        """Compile a batch; one result a candidate, failures included.

        Parameters
        ----------
        unscheduled : build the computations of the candidates with nothing scheduled instead.
        """
        return list(_ffi_api.ProgramBuilderBuild(self, list(candidates), unscheduled))


@tvm._ffi.register_object("auto_scheduler.LocalBuilder")
class LocalBuilder(ProgramBuilder):
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
        self.__init_handle_by_constructor__(
            _ffi_api.LocalBuilder,
            _cpu_count() if n_parallel is None else n_parallel,
            timeout,
            build_func,
            _half_of_memory() if memory_bytes is None else memory_bytes,
        )

    @property
    def pool(self) -> WorkerPool:
        """The worker processes."""
        return _ffi_api.LocalOpen(self).__self__.pool


@tvm._ffi.register_object("auto_scheduler.ProgramRunner")
class ProgramRunner(Object):
    """Times compiled programs. Runners of one's own derive from this class and define `run`.

    Parameters
    ----------
    timeout : seconds for one candidate, warm-up included.
    number : calls in one repeat, at least.
    repeat : number of repeats, each giving one cost.
    min_repeat_ms : a repeat is at least this long.
    cooldown_interval : seconds between repeats and between candidates.
    enable_cpu_cache_flush : empty the caches before each call; a repeat is then a single call.
    device : index of the device.
    check_correctness : compare outputs with those of the unscheduled program on equal inputs.

    Raises
    ------
    ValueError : a number is out of range.
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
        check_correctness: bool = False,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.PythonBasedRunner,
            timeout,
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval,
            enable_cpu_cache_flush,
            device,
            check_correctness,
            _require_override(self, ProgramRunner, "run"),
        )

    def run(
        self,
        candidates: Sequence[Candidate],
        programs: Sequence[BuildResult],
        best_seconds: Mapping[str, float] | None = None,
        references: Mapping[str, BuildResult] | None = None,
        on_result: Callable[[int, MeasureResult], None] | None = None,
    ) -> list[MeasureResult]:
        """Time a batch; one result a candidate. Failed builds are passed on as results.

        Parameters
        ----------
        candidates, programs : what was built, and what came of it.
        best_seconds : workload key to the latency of its best program so far; a far slower one is
            run only briefly.
        references : workload key to the unscheduled program to compare outputs with.
        on_result : called with position and result as soon as each is known.
        """
        return list(
            _ffi_api.ProgramRunnerRun(
                self,
                list(candidates),
                list(programs),
                dict(best_seconds or {}),
                dict(references or {}),
                on_result,
            )
        )


@tvm._ffi.register_object("auto_scheduler.LocalRunner")
class LocalRunner(ProgramRunner):
    """Times compiled candidates on this machine, one at a time, in a process of their own.

    Parameters
    ----------
    run_func : "default", or ``module:function`` to be called in the worker instead; see
        `measure_jobs.run`.
    memory_bytes : memory that a candidate may take; by default half of the machine's.

    The others are those of ProgramRunner.

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
        self.__init_handle_by_constructor__(
            _ffi_api.LocalRunner,
            timeout,
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval,
            enable_cpu_cache_flush,
            device,
            check_correctness,
            run_func,
            _half_of_memory() if memory_bytes is None else memory_bytes,
        )

    @property
    def pool(self) -> WorkerPool:
        """The worker process."""
        return _ffi_api.LocalOpen(self).__self__.pool


class LocalRPCMeasureContext:
    """A runner on this machine that is apart from this process, and ends with this object.

    Where TVM connects to a tracker and a server that it starts itself, programs are handed to a
    worker process over a pipe, which needs neither.

    Parameters
    ----------
    priority, n_parallel : there is one device and nobody to share it with, so 1.

    The others are those of LocalRunner.

    Attributes
    ----------
    runner : times programs in the worker.

    Raises
    ------
    ValueError : a number is out of range.
    """

    def __init__(
        self,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        for name, value in (("priority", priority), ("n_parallel", n_parallel)):
            if value != 1:
                raise ValueError(
                    f"LocalRPCMeasureContext: {name} must be 1 on a single device, got {value}"
                )
        self.runner = LocalRunner(
            timeout=timeout,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            cooldown_interval=cooldown_interval,
            enable_cpu_cache_flush=enable_cpu_cache_flush,
            device=device,
        )

    def __del__(self) -> None:
        runner = getattr(self, "runner", None)
        if runner is not None:
            runner.pool.close()


@tvm._ffi.register_object("auto_scheduler.ProgramMeasurer")
class ProgramMeasurer(Object):
    """Builds and times candidates, and keeps the best of each workload.

    A batch is first built by all workers at once, then run one by one, so that no build disturbs a
    measurement.

    Parameters
    ----------
    builder, runner : by default LocalBuilder() and LocalRunner().
    callbacks : such as RecordToFile; a function is called after each batch with (policy,
        candidates, results).
    verbose : 0 silent, 1 a character a program, 2 a paragraph a program.
    max_continuous_error : after this many failures in a row, whose cause is hardly the candidates,
        programs are shown as with verbose=2 until one succeeds; by default 150.

    Attributes
    ----------
    ct, error_ct : measurements, and failed ones among them.
    best_seconds : workload key to the latency of its best program.
    best : workload key to that program.
    """

    def __init__(
        self,
        builder: ProgramBuilder | None = None,
        runner: ProgramRunner | None = None,
        callbacks: Sequence[MeasureCallback | Callable[..., None]] = (),
        verbose: int = 0,
        max_continuous_error: int | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.ProgramMeasurer,
            LocalBuilder() if builder is None else builder,
            LocalRunner() if runner is None else runner,
            as_callbacks(callbacks),
            verbose,
            -1 if max_continuous_error is None else max_continuous_error,
        )

    def measure(
        self, candidates: Sequence[Candidate], policy: Any = None, batch_size: int | None = None
    ) -> list[MeasureResult]:
        """Measure candidates; one result each.

        Parameters
        ----------
        policy : who asks; goes to the callbacks.
        batch_size : programs that are built together; by default two a worker of the builder.

        Raises
        ------
        RuntimeError : a worker does not start.
        """
        return list(_ffi_api.MeasurePerformance(self, policy, list(candidates), batch_size or -1))

    def observe(self, candidate: Candidate, result: MeasureResult) -> None:
        """Take a result that was measured earlier into account."""
        _ffi_api.ProgramMeasurerObserve(self, candidate, result)

    def reset(self) -> None:
        """Forget all results."""
        _ffi_api.ProgramMeasurerReset(self)

    def close(self) -> None:
        """End the worker processes of this machine; they start again when needed."""
        for part in (self.builder, self.runner):
            if isinstance(part, (LocalBuilder, LocalRunner)):
                part.pool.close()
