"""Sessions: the controller's side, which sends commands and does not wait unless it must."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent import futures
from typing import Any, TypeVar

import numpy as np

from tvm import error
from tvm.runtime.device import Device, cpu
from tvm.runtime.ndarray import NDArray, array

from . import builtin  # noqa: F401 - registers what is called by name below
from .board import Board
from .channel import Channel, ThreadChannel
from .collectives import REDUCE_OPS
from .message import Command, Failure, HostArray, Register, pack, unpack
from .process import ProcessChannel
from .refs import DModule, DPackedFunc, DRef

__all__ = ["ProcessSession", "Session", "ThreadedSession"]

R = TypeVar("R", bound=DRef)

# Kinds of device that TVM's collective libraries go with; "host" is for workers on the cpu.
_CCL_DEVICES = {"nccl": "cuda", "rccl": "rocm", "host": "cpu"}
# Importing tvm takes half a second on an idle machine; a loaded one may need far longer.
_STARTUP_SECONDS = 120.0


class Session:
    """Workers that carry out the same calls; made by `ThreadedSession` or `ProcessSession`.

    Calls return at once with a `DRef`; the workers carry them out in order, each at its own pace.
    An exception in a worker makes it skip what follows, and is raised by the next method here that
    waits: `sync_worker_0`, `DRef.debug_get_from_remote`, `DRef.debug_copy_from` or `shutdown`. It
    has the type and message of the original and names the worker. After that the session can be
    used again: what was to be made by a skipped call is missed where it is used, and arrays that it
    was to fill are as they were. Several threads may use a session; then the one that waits first
    gets the exception.

    Arguments may be numbers, texts, bytes, types, devices, shapes, arrays, `DRef`, None, and lists
    and dictionaries of these. Arrays are copied: each worker gets its own.
    """

    def __init__(self, channels: Sequence[Channel], board: Board) -> None:
        self._channels = list(channels)
        self._board = board
        self._lock = threading.Lock()
        self._number = 0
        self._num_registers = 0
        self._free: list[int] = []
        self._released: deque[int] = deque()
        # The workers' threads know nothing of the session, and so do not keep it alive.
        self._finalizer = weakref.finalize(self, _abandon, self._channels)

    @property
    def num_workers(self) -> int:
        return len(self._channels)

    # ---------------------------------------------------------------- calls

    def get_global_func(self, name: str) -> DPackedFunc:
        """The global function of that name in each worker.

        A name that a worker does not have is a ValueError at the next synchronisation.
        """
        return self._call(DPackedFunc, "runtime.disco.get_global_func", name)

    def import_python_module(self, module_name: str) -> None:
        """Import a module in each worker, for the functions that it registers."""
        self._call(DRef, "runtime.disco.import_python_module", module_name)

    def call_packed(self, func: DRef, *args: Any) -> DRef:
        """Start a function in all workers; in arguments, a DRef stands for each worker's value.

        Raises
        ------
        TypeError : an argument cannot be sent. ValueError : a DRef of another session.
        RuntimeError : the session was shut down, or a worker is gone.
        """
        return self._call(DRef, self._register_of(func), *args)

    def load_vm_module(self, path: str, device: Device | None = None) -> DModule:
        """Load a network, exported by ``relax.Executable.export_library``, in each worker.

        Parameters
        ----------
        device : where it runs; each worker's own device if left out.
        """
        return self._call(DModule, "runtime.disco.load_vm_module", str(path), device)

    def init_ccl(self, ccl: str, *device_ids: int) -> None:
        """Give each worker a device of its own, on which its arrays and networks are by default.

        Data of collective operations goes through host memory on every kind of device; none needs
        this call.

        Parameters
        ----------
        ccl : "nccl" for cuda devices, "rccl" for rocm, "host" for the cpu.
        device_ids : number of the device of each worker.

        Raises
        ------
        ValueError : unknown `ccl`, or another number of devices than of workers.
        """
        if ccl not in _CCL_DEVICES:
            raise error.ValueError(f'init_ccl: unknown "{ccl}"; known: {", ".join(_CCL_DEVICES)}')
        if len(device_ids) != self.num_workers:
            raise error.ValueError(
                f"init_ccl: {len(device_ids)} devices for {self.num_workers} workers"
            )
        self._call(DRef, "runtime.disco.init_ccl", _CCL_DEVICES[ccl], device_ids)

    # --------------------------------------------------------------- arrays

    def empty(
        self,
        shape: Sequence[int],
        dtype: str,
        device: Device | None = None,
        worker0_only: bool = False,
    ) -> DRef:
        """An array with unspecified contents in each worker, or in worker 0 only."""
        extents = tuple(int(extent) for extent in shape)
        if any(extent < 0 for extent in extents):
            raise error.ValueError(f"empty: extents must be >= 0, got {extents}")
        return self._call(DRef, "runtime.disco.empty", extents, str(dtype), device, worker0_only)

    def copy_from_worker_0(self, host_array: NDArray, remote_array: DRef) -> None:
        """Start to copy worker 0's array into one of the controller, of the same shape and type.

        The elements are there after `sync_worker_0`.
        """
        if not isinstance(host_array, NDArray):
            raise error.TypeError(
                f"copy_from_worker_0: expected an NDArray, got a {type(host_array).__name__}"
            )
        source = self._register_of(remote_array)
        function = "runtime.disco.copy_from_worker_0"
        self._start(DRef, function, (HostArray(host_array), source), workers=(0,))

    def copy_to_worker_0(
        self, host_array: NDArray | np.ndarray, remote_array: DRef | None = None
    ) -> DRef:
        """Copy an array of the controller into worker 0's, which is made if left out.

        The controller may change its array right afterwards.

        Returns
        -------
        `remote_array`, or a DRef that has a value in worker 0 only.
        """
        snapshot = HostArray(array(host_array, cpu()))
        if remote_array is None:
            return self._start(DRef, "runtime.disco.place_on_worker_0", (snapshot,), workers=(0,))
        target = self._register_of(remote_array)
        self._start(DRef, "runtime.disco.copy_to_worker_0", (snapshot, target), workers=(0,))
        return remote_array

    def broadcast_from_worker0(self, src: DRef, dst: DRef) -> DRef:
        """Copy worker 0's `src` into every worker's `dst`, of the same shape and type."""
        self._call(DRef, "runtime.disco.broadcast_from_worker0", src, dst)
        return dst

    def scatter_from_worker0(self, src: DRef, dst: DRef) -> DRef:
        """Cut worker 0's `src` into one equal piece a worker, along the first axis.

        Worker 0's array has as many elements as all `dst` together.
        """
        self._call(DRef, "runtime.disco.scatter_from_worker0", src, dst)
        return dst

    def gather_to_worker0(self, src: DRef, dst: DRef) -> DRef:
        """Join the `src` of all workers in worker 0's `dst`, in the order of the workers."""
        self._call(DRef, "runtime.disco.gather_to_worker0", src, dst)
        return dst

    def allgather(self, src: DRef, dst: DRef) -> DRef:
        """Join the `src` of all workers in every worker's `dst`."""
        self._call(DRef, "runtime.disco.allgather", src, dst)
        return dst

    def allreduce(self, src: DRef, dst: DRef, op: str = "sum") -> DRef:
        """Combine the `src` of all workers element by element, into every worker's `dst`.

        Parameters
        ----------
        op : "sum", "prod", "min", "max" or "avg"; the last for floats only.

        Raises
        ------
        ValueError : unknown `op`.
        """
        if op not in REDUCE_OPS:
            raise error.ValueError(
                f'allreduce: unknown operation "{op}"; known: {", ".join(REDUCE_OPS)}'
            )
        self._call(DRef, "runtime.disco.allreduce", src, op, dst)
        return dst

    def broadcast(self, src: NDArray | np.ndarray, dst: DRef | None = None) -> DRef:
        """Copy an array of the controller into every worker's `dst`, which is made if left out."""
        host = _host_array(src)
        if dst is None:
            dst = self.empty(host.shape, host.dtype)
        return self.broadcast_from_worker0(self.copy_to_worker_0(host), dst)

    def scatter(self, src: NDArray | np.ndarray, dst: DRef | None = None) -> DRef:
        """Give each worker ``src[worker]`` in its `dst`, which is made if left out.

        Raises
        ------
        ValueError : the first axis of `src` is not as long as there are workers.
        """
        host = _host_array(src)
        if not host.shape or host.shape[0] != self.num_workers:
            raise error.ValueError(
                f"scatter: expected {self.num_workers} slices, one a worker, along the first axis; "
                f"got shape {host.shape}"
            )
        if dst is None:
            dst = self.empty(host.shape[1:], host.dtype)
        return self.scatter_from_worker0(self.copy_to_worker_0(host), dst)

    # -------------------------------------------------------------- waiting

    def sync_worker_0(self) -> None:
        """Wait until worker 0 is through with all that was sent, and raise what went wrong so far.

        Other workers may be behind; `DRef.debug_get_from_remote` waits for them.
        """
        self._sync_worker(0)

    def shutdown(self) -> None:
        """Let the workers finish what was sent, and end them; later calls do nothing.

        Raises
        ------
        Exception : what a worker raised, or RuntimeError that one is gone, if it was not raised
            before.
        """
        if not self._finalizer.detach():
            return
        with self._lock:
            self._board.close()
            for channel in self._channels:
                channel.send(Command(self._number + 1, "stop"))
        for channel in self._channels:
            channel.wait()
        self._board.check_end()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.num_workers})"

    # ------------------------------------------------------------- internal

    def _sync_worker(self, worker_id: int, timeout: float | None = None) -> None:
        self._ask("sync", worker_id, timeout=timeout)

    def _get(self, register: int, worker_id: int) -> Any:
        return self._ask("get", worker_id, register)

    def _set(self, register: int, worker_id: int, value: Any) -> None:
        self._ask("set", worker_id, register, (pack(value),))

    def _function_of(self, module: DModule, name: str) -> DPackedFunc:
        return self._call(DPackedFunc, "runtime.disco.function_of", module, name)

    def _release(self, register: int) -> None:
        """Forget a value; called by the garbage collector, at any time and on any thread."""
        self._released.append(register)
        # Whoever holds the lock may be this very thread. The next command makes up for it.
        if self._lock.acquire(blocking=False):
            try:
                self._drop_released()
            finally:
                self._lock.release()

    def _drop_released(self) -> None:
        registers = []
        while self._released:
            registers.append(self._released.popleft())
        if registers:
            self._send(Command(self._number, "drop", arguments=tuple(registers)))
            self._free += registers

    def _send(self, command: Command, workers: Iterable[int] | None = None) -> None:
        for worker in range(self.num_workers) if workers is None else workers:
            self._channels[worker].send(command)

    def _register_of(self, ref: DRef) -> Register:
        if not isinstance(ref, DRef):
            raise error.TypeError(f"expected a DRef, got a {type(ref).__name__}")
        if ref.session is not self:
            raise error.ValueError(f"{ref!r} belongs to another session")
        return Register(ref.reg_id)

    def _packed(self, value: Any) -> Any:
        if isinstance(value, DRef):
            return self._register_of(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self._packed(item) for item in value)
        if isinstance(value, dict):
            return {pack(key): self._packed(item) for key, item in value.items()}
        return pack(value)

    def _call(self, kind: type[R], function: Register | str, *args: Any) -> R:
        packed = []
        for position, value in enumerate(args):
            try:
                packed.append(self._packed(value))
            except error.TypeError as raised:
                raise error.TypeError(f"argument {position}: {raised}") from None
        return self._start(kind, function, tuple(packed))

    def _start(
        self,
        kind: type[R],
        function: Register | str,
        arguments: tuple[Any, ...],
        workers: Iterable[int] | None = None,
    ) -> R:
        with self._lock:
            self._board.check()
            self._drop_released()
            if self._free:
                register = self._free.pop()
            else:
                register = self._num_registers
                self._num_registers += 1
            self._number += 1
            self._send(Command(self._number, "call", register, function, arguments), workers)
        return kind(self, register)

    def _ask(
        self,
        action: str,
        worker_id: int,
        register: int = -1,
        arguments: tuple[Any, ...] = (),
        timeout: float | None = None,
    ) -> Any:
        """Send a command to one worker and wait, at most `timeout` seconds, for the reply."""
        if not 0 <= worker_id < self.num_workers:
            raise error.ValueError(
                f"there is no worker {worker_id}; the session has {self.num_workers}, from 0"
            )
        with self._lock:
            self._board.check()
            self._number += 1
            reply: futures.Future[Any] = self._board.expect(worker_id, self._number)
            self._send(Command(self._number, action, register, "", arguments), (worker_id,))
        answer = reply.result(timeout)
        self._raise_failure()
        if isinstance(answer, Failure):
            raise answer.exception()
        return unpack(answer)

    def _raise_failure(self) -> None:
        """Raise what the workers reported, and let them go on."""
        with self._lock:
            self._board.check()
            failure = self._board.take_failure(self._number)
            if failure is not None:
                self._number += 1
                self._send(Command(self._number, "resume"))
        if failure is not None:
            raise failure


class ThreadedSession(Session):
    """A session whose workers are threads of this process.

    Compiled code and NumPy release Python's lock, and so run side by side; Python functions take
    turns.

    Parameters
    ----------
    num_workers : at least 1.

    Raises
    ------
    ValueError : `num_workers` is less than 1.
    """

    def __init__(self, num_workers: int) -> None:
        _check_num_workers(num_workers)
        board = Board(num_workers)
        super().__init__([ThreadChannel(i, num_workers, board) for i in range(num_workers)], board)


class ProcessSession(Session):
    """A session whose worker 0 is a thread of this process, and the others processes.

    A worker process that ends by itself ends the session: whatever waits for it raises
    RuntimeError, with the reason. The processes end with this one.

    Parameters
    ----------
    num_workers : at least 1.
    entrypoint : module to run in the processes, which calls `tvm.exec.disco_worker.main`, for
        instance after importing modules that register functions.

    Raises
    ------
    ValueError : `num_workers` is less than 1. RuntimeError : a process does not start.
    """

    def __init__(self, num_workers: int, entrypoint: str = "tvm.exec.disco_worker") -> None:
        _check_num_workers(num_workers)
        board = Board(num_workers)
        processes: list[ProcessChannel] = []
        try:
            for worker in range(1, num_workers):
                processes.append(ProcessChannel(worker, num_workers, entrypoint, board))
            super().__init__([ThreadChannel(0, num_workers, board), *processes], board)
            self._wait_for_start(entrypoint)
        except BaseException:
            for process in processes:
                process.kill()
            raise

    @property
    def process_ids(self) -> list[int]:
        """Of workers 1, 2, ..."""
        return [c.process.pid for c in self._channels if isinstance(c, ProcessChannel)]

    def _wait_for_start(self, entrypoint: str) -> None:
        for worker in range(self.num_workers):
            try:
                self._sync_worker(worker, timeout=_STARTUP_SECONDS)
            except futures.TimeoutError:
                raise error.RuntimeError(
                    f"ProcessSession: worker {worker} does not answer after "
                    f'{_STARTUP_SECONDS:g} s; does the entry point "{entrypoint}" call '
                    "tvm.exec.disco_worker.main?"
                ) from None
            except error.RuntimeError as raised:
                raise error.RuntimeError(
                    f'ProcessSession: entry point "{entrypoint}" does not start: '
                    f"{self._board.loss()}; its standard error may say more"
                ) from raised


def _abandon(channels: Sequence[Channel]) -> None:
    for channel in channels:
        channel.abandon()


def _check_num_workers(num_workers: int) -> None:
    if num_workers < 1:
        raise error.ValueError(f"a session needs at least 1 worker, got {num_workers}")


def _host_array(values: NDArray | np.ndarray) -> NDArray:
    return values if isinstance(values, NDArray) else array(values)
