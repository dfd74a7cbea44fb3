"""What a runner over RPC does: libraries are sent to devices of a tracker and timed there."""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm import error, rpc
from tvm.runtime.linker import link_objects

from .measure_jobs import Inputs, load_program, time_program
from .measure_local import RunnerOptions, failed, run_arguments
from .measure_node import MAX_FLOAT, BuildResult, Candidate, MeasureErrorNo, MeasureResult

__all__ = ["RPCRun", "RPCTimer"]

# Until a device is free.
_DEVICE_SECONDS = 600.0
# Until a tracker that was there before has been started again.
_TRACKER_SECONDS = 30.0
_TRACKER_POLL_SECONDS = 0.5
# A candidate whose session breaks is timed in another one, since the server may have been lost; one
# that ends this many sessions ends them itself.
_SESSIONS = 2


def _library(program: Mapping[str, Any], code: bytes, folder: Path) -> Path:
    """Link what a builder made into a library that the runtime alone can load."""
    library = folder / "candidate.so"
    if "kernels_at" in program:
        load_program(program, code).export_library(library)
        return library
    objects = folder / "candidate.o"
    objects.write_bytes(code)
    link_objects(library, [objects])
    return library


class RPCTimer:
    """Times programs in a session, and in another one where that breaks.

    Parameters
    ----------
    connect : gives a session.
    timeout : seconds for one candidate.
    """

    def __init__(self, connect: Callable[[], rpc.RPCSession], timeout: float) -> None:
        self._connect, self._timeout = connect, timeout
        self._session: rpc.RPCSession | None = None
        self._inputs = Inputs()
        self._count = 0

    def time(
        self, arguments: dict[str, Any], code: bytes, reference_code: bytes = b""
    ) -> dict[str, Any]:
        """Time a program; the result is that of `measure_jobs.run`.

        Raises
        ------
        RPCError : no device can be had.
        """
        kind, number = arguments["device"]
        with tempfile.TemporaryDirectory(prefix="tvm_rpc_") as folder:
            try:
                if arguments["file"]:
                    library = Path(arguments["file"])
                else:
                    library = _library(arguments, code, Path(folder))
            except error.RuntimeError as reason:
                return _refused(MeasureErrorNo.COMPILE_HOST, str(reason))

            def upload(path: Path) -> Any:
                # A name of its own: a library that is loaded is not written over.
                self._count += 1
                name = f"candidate{self._count}{path.suffix}"
                session.upload(path, name)
                module = session.load_module(name)
                session.remove(name)
                return module

            def load_reference() -> Any:
                own = Path(folder, "reference")
                own.mkdir(exist_ok=True)
                return upload(_library(arguments["reference"], reference_code, own))

            broken = ""
            for _ in range(_SESSIONS):
                session = self._session or self._connect()
                self._session = session
                session.set_time_limit(self._timeout)
                started = time.monotonic()
                try:
                    device = session.device(kind, number)
                    return time_program(
                        arguments, lambda: upload(library), load_reference, device, self._inputs
                    )
                except error.RPCSessionTimeoutError:
                    self.close()
                    seconds = time.monotonic() - started
                    return _refused(
                        MeasureErrorNo.RUN_TIMEOUT, f"no result after {seconds:.1f} s on the device"
                    )
                except error.RPCError as reason:
                    self.close()
                    broken = str(reason)
            return _refused(MeasureErrorNo.RUNTIME_DEVICE, broken)

    def close(self) -> None:
        """Give the device back."""
        if self._session is not None:
            self._inputs = Inputs()
            self._session.close()
            self._session = None


def _refused(error_no: MeasureErrorNo, message: str) -> dict[str, Any]:
    return {"error_no": int(error_no), "error_msg": message}


@dataclass
class _Work:
    """One batch: what is still to be measured, and what is known."""

    candidates: Sequence[Candidate]
    programs: Sequence[BuildResult]
    references: Mapping[str, BuildResult]
    best: dict[str, float]
    todo: queue.SimpleQueue[int] = field(default_factory=queue.SimpleQueue)
    done: queue.SimpleQueue[tuple[int, MeasureResult] | BaseException] = field(
        default_factory=queue.SimpleQueue
    )


class RPCRun:
    """Measures the batches of an RPCRunner: a session a device for each batch, so that others who
    wait for the device have their turn in between."""

    def __init__(self, runner: Any) -> None:
        self._options = RunnerOptions.of(runner)
        self._key, self._address = str(runner.key), (str(runner.host), int(runner.port))
        self._priority, self._timeout = int(runner.priority), float(runner.timeout)
        self._n_parallel = int(runner.n_parallel)
        self._reached = False

    def __call__(
        self,
        candidates: Sequence[Candidate],
        programs: Sequence[BuildResult],
        best_seconds: Mapping[str, float],
        references: Mapping[str, BuildResult],
        on_result: Callable[[int, MeasureResult], None] | None,
    ) -> list[MeasureResult]:
        best = {str(key): float(seconds) for key, seconds in best_seconds.items()}
        work = _Work(list(candidates), list(programs), references, best)
        for position in range(len(work.candidates)):
            work.todo.put(position)
        threads = [
            threading.Thread(target=self._measure, args=(work,), name="rpc-runner", daemon=True)
            for _ in range(min(self._n_parallel, len(work.candidates)))
        ]
        for thread in threads:
            thread.start()
        results: dict[int, MeasureResult] = {}
        while len(results) < len(work.candidates):
            news = work.done.get()
            if isinstance(news, BaseException):
                # Nobody else can be reached either; what is left would fail one by one.
                while not work.todo.empty():
                    work.todo.get()
                raise news
            position, results[position] = news
            if on_result is not None:
                on_result(*news)
        for thread in threads:
            thread.join()
        return [results[position] for position in range(len(work.candidates))]

    def _connect(self) -> rpc.RPCSession:
        """A session with a device of the tracker. One that was there before may be on its way back.

        Raises
        ------
        RPCError : the tracker is gone. RPCSessionTimeoutError : no device became free.
        """
        deadline = time.monotonic() + (_TRACKER_SECONDS if self._reached else 0.0)
        while True:
            try:
                tracker = rpc.connect_tracker(*self._address)
                self._reached = True
                return tracker.request(self._key, self._priority, request_timeout=_DEVICE_SECONDS)
            except error.RPCSessionTimeoutError:
                raise
            except error.RPCError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_TRACKER_POLL_SECONDS)

    def _measure(self, work: _Work) -> None:
        """Measure with one device until nothing is left."""
        timer = RPCTimer(self._connect, self._timeout)
        try:
            while True:
                position = work.todo.get_nowait()
                result = self._run_one(timer, work, position)
                if int(result.error_no) == MeasureErrorNo.NO_ERROR:
                    key = work.candidates[position].workload_key
                    work.best[key] = min(result.mean_cost, work.best.get(key, MAX_FLOAT))
                work.done.put((position, result))
        except queue.Empty:
            pass
        except BaseException as reason:
            work.done.put(reason)
        finally:
            timer.close()

    def _run_one(self, timer: RPCTimer, work: _Work, position: int) -> MeasureResult:
        candidate, program = work.candidates[position], work.programs[position]
        if program.error_no:
            return failed(int(program.error_no), str(program.error_msg), program.time_cost)
        key = candidate.workload_key
        reference = work.references.get(key)
        started = time.monotonic()
        try:
            arguments = run_arguments(
                self._options, candidate, program, work.best.get(key), reference
            )
        except ValueError as reason:
            return failed(int(MeasureErrorNo.RUNTIME_DEVICE), str(reason), program.time_cost)
        code = b"" if reference is None else bytes(reference.code)
        found = timer.time(arguments, bytes(program.code), code)
        if self._options.cooldown_interval:
            time.sleep(self._options.cooldown_interval)
        seconds = program.time_cost + time.monotonic() - started
        if found["error_no"]:
            return failed(int(found["error_no"]), str(found["error_msg"]), seconds)
        kernels = arguments.get("kernels")
        return MeasureResult(found["costs"], 0, None, seconds, time.time(), kernels)


@tvm._ffi.register_func("auto_scheduler.rpc_runner.open")
def _open_runner(runner: Any) -> Callable[..., list[MeasureResult]]:
    return RPCRun(runner).__call__
