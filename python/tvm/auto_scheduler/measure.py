"""Builders, runners, and the measurer that puts them together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm import error, rpc
from tvm.runtime import Object
from tvm.runtime.threading import usable_cores
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
from .measure_rpc import RPCRun  # noqa: F401 - likewise

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
    "RPCRunner",
    "recover_measure_input",
]


# Until a tracker must have a device of a key, free or not.
_DEVICE_SECONDS = 10.0


def _half_of_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


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
            usable_cores() if n_parallel is None else n_parallel,
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
        on_result : called with position and result as soon as each is known. A runner that does
            not call it loses the results of its batch when it is interrupted.
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


@tvm._ffi.register_object("auto_scheduler.RPCRunner")
class RPCRunner(ProgramRunner):
    """Times compiled candidates on devices that a tracker gives out.

    A batch has a device for itself, or `n_parallel` of them; then others have their turn. The
    secret of tracker and servers is that of the environment, see `tvm.rpc.base.load_secret`.

    Parameters
    ----------
    key : kind of device.
    host, port : of the tracker.
    priority : requests of a higher one are served first.
    n_parallel : devices used at once.

    The others are those of ProgramRunner. The timeout includes sending a candidate.

    Raises
    ------
    ValueError : a number is out of range.
    """

    def __init__(
        self,
        key: str,
        host: str,
        port: int,
        priority: int = 1,
        n_parallel: int = 1,
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
            _ffi_api.RPCRunner,
            timeout,
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval,
            enable_cpu_cache_flush,
            device,
            check_correctness,
            key,
            host,
            int(port),
            priority,
            n_parallel,
        )
        if not rpc.device_is_there(key, host, int(port), seconds=_DEVICE_SECONDS):
            raise error.RPCError(
                f"RPCRunner: the tracker at {host}:{port} has no device of key {key!r}; start one "
                f"with python -m tvm.exec.rpc_server --tracker {host}:{port} --key {key}"
            )


class LocalRPCMeasureContext:
    """A tracker, a server of this machine, and a runner that uses them; all end with this object.

    The architecture of a GPU is that of each candidate's target.

    Parameters
    ----------
    priority, n_parallel, timeout, number, repeat, min_repeat_ms, cooldown_interval,
    enable_cpu_cache_flush, device : of the RPCRunner.

    Attributes
    ----------
    tracker, server : the processes. runner : measures through them.

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
        key = "local"
        self.tracker = rpc.Tracker(port=0, silent=True)
        self.server = rpc.Server(
            port=0,
            key=key,
            tracker_addr=(self.tracker.host, self.tracker.port),
            silent=True,
            max_sessions=n_parallel,
        )
        self.runner = RPCRunner(
            key,
            self.tracker.host,
            self.tracker.port,
            priority,
            n_parallel,
            timeout,
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval,
            enable_cpu_cache_flush,
            device,
        )

    def __del__(self) -> None:
        for part in (getattr(self, "server", None), getattr(self, "tracker", None)):
            if part is not None:
                part.terminate()


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
