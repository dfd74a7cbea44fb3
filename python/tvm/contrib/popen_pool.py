"""Functions of Python run in processes of their own, which may crash, hang or be killed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from threading import local
from typing import Any

from tvm.runtime.threading import usable_cores
from tvm.runtime.workers import Job, Outcome, WorkerPool

try:
    import cloudpickle as _pickler
except ModuleNotFoundError:  # functions by name only
    _pickler = pickle

__all__ = ["MapResult", "PopenPoolExecutor", "PopenWorker", "StatusKind"]

# What stands for no limit: the selectors of the system take no infinity.
_NO_LIMIT = 1e6


class StatusKind(IntEnum):
    """What became of one call of `PopenPoolExecutor.map_with_error_catching`."""

    RUNNING = 0
    COMPLETE = 1
    EXCEPTION = 2
    TIMEOUT = 3


@dataclass(frozen=True)
class MapResult:
    """A status with the result, or with the exception for any but COMPLETE."""

    status: StatusKind
    value: Any


def _serve(arguments: dict[str, Any], blob: bytes) -> tuple[Any, bytes]:
    """Run in the worker: the call, and its result or the exception it raised."""
    function, args, kwargs = pickle.loads(blob)
    try:
        answer = (True, function(*args, **kwargs))
    except Exception as error:
        answer = (False, error)
    try:
        return None, _pickler.dumps(answer)
    except Exception as error:
        told = TypeError(f"the result of {function} cannot be sent back: {error}")
        return None, pickle.dumps((False, told))


class PopenWorker:
    """One process that runs one call after another.

    Parameters
    ----------
    initializer, initargs : called in the process when it starts.
    maximum_uses : calls after which the process is replaced; None for no limit.

    Notes
    -----
    Functions and arguments are pickled; a function is known by its name where the package
    cloudpickle is missing. The process starts with the first call.
    """

    def __init__(
        self,
        initializer: Callable[..., Any] | None = None,
        initargs: Sequence[Any] = (),
        maximum_uses: int | None = None,
    ) -> None:
        if maximum_uses is not None and maximum_uses < 1:
            raise ValueError(f"PopenWorker: maximum_uses must be at least 1, got {maximum_uses}")
        self._initializer, self._initargs = initializer, tuple(initargs)
        self._maximum_uses, self._uses = maximum_uses, 0
        self._pool = WorkerPool(1, _NO_LIMIT)
        # The process ends with the thread that started it, so there is one for all calls.
        self._thread = ThreadPoolExecutor(1)
        self._pending: Future[Outcome] | None = None
        self._limit: float = _NO_LIMIT

    def is_alive(self) -> bool:
        """Whether there is a process."""
        return bool(self._pool.process_ids())

    def kill(self) -> None:
        """End the process; the next call starts another one."""
        self._pool.close()
        self._uses = 0

    def join(self, timeout: float | None = None) -> None:
        """Wait until the call that was sent has ended, then end the process.

        Raises
        ------
        TimeoutError : it takes longer than `timeout` seconds.
        """
        if self._pending is not None:
            self._pending.result(timeout)
        self.kill()

    def send(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Start a call; `recv` has its result.

        Parameters
        ----------
        timeout : seconds, after which the process is killed.

        Raises
        ------
        RuntimeError : the result of the call before was not taken.
        """
        if self._pending is not None:
            raise RuntimeError("PopenWorker.send: take the result of the last call by recv first")
        self._limit = _NO_LIMIT if timeout is None else timeout
        self._pending = self._thread.submit(self._run, (fn, tuple(args), kwargs or {}))

    def recv(self) -> Any:
        """Result of the call that was sent.

        Raises
        ------
        TimeoutError : it took too long.
        ChildProcessError : the process ended in the middle of it.
        RuntimeError : nothing was sent.
        Exception : what the function raised.
        """
        if self._pending is None:
            raise RuntimeError("PopenWorker.recv: send a call first")
        pending, self._pending = self._pending, None
        outcome = pending.result()
        if outcome.status == "timeout":
            raise TimeoutError(f"PopenWorker: {outcome.message}")
        if outcome.status == "died":
            raise ChildProcessError(f"PopenWorker: {outcome.message}")
        if outcome.status == "error":
            raise TypeError(f"PopenWorker: the call could not be read: {outcome.message}")
        complete, value = pickle.loads(outcome.blob)
        if not complete:
            raise value
        return value

    def _run(self, call: tuple[Any, ...]) -> Outcome:
        if self._maximum_uses is not None and self._uses >= self._maximum_uses:
            self.kill()
        if self._initializer is not None and not self.is_alive():
            self._pool.timeout = _NO_LIMIT
            outcome = self._one((self._initializer, self._initargs, {}))
            if outcome.status != "done" or not pickle.loads(outcome.blob)[0]:
                return outcome
        self._uses += 1
        self._pool.timeout = self._limit
        return self._one(call)

    def _one(self, call: tuple[Any, ...]) -> Outcome:
        blob = _pickler.dumps(call)
        return self._pool.run([Job(f"{__name__}:{_serve.__name__}", {}, blob)])[0]

    def __del__(self) -> None:
        if hasattr(self, "_thread"):
            self._pool.close()
            self._thread.shutdown(wait=False)


class PopenPoolExecutor:
    """Calls in several processes, as `concurrent.futures` has them.

    Parameters
    ----------
    max_workers : processes at once; by default half of the cores of this machine.
    timeout : seconds for one call, after which its process is replaced.
    initializer, initargs : called in each process when it starts.
    maximum_process_uses : calls after which a process is replaced.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        timeout: float | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Sequence[Any] = (),
        maximum_process_uses: int | None = None,
    ) -> None:
        count = max_workers or max(usable_cores() // 2, 1)
        self._threads = ThreadPoolExecutor(count)
        self._timeout = timeout
        self._own = local()
        self._workers: list[PopenWorker] = []
        self._make = lambda: PopenWorker(initializer, initargs, maximum_process_uses)

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call; the future raises what `PopenWorker.recv` would."""
        return self._threads.submit(self._call, fn, args, kwargs)

    def map_with_error_catching(
        self, fn: Callable[[Any], Any], iterator: Iterable[Any]
    ) -> Iterator[MapResult]:
        """One result for each item, in their order; failures do not end the iteration."""
        for future in [self.submit(fn, item) for item in iterator]:
            try:
                yield MapResult(StatusKind.COMPLETE, future.result())
            except TimeoutError as error:
                yield MapResult(StatusKind.TIMEOUT, error)
            except Exception as error:
                yield MapResult(StatusKind.EXCEPTION, error)

    def _call(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        worker = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = self._make()
            self._workers.append(worker)
        worker.send(fn, args, kwargs, self._timeout)
        return worker.recv()

    def __del__(self) -> None:
        if hasattr(self, "_threads"):
            self._threads.shutdown(wait=False, cancel_futures=True)
            for worker in self._workers:
                worker.kill()
