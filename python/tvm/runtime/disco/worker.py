"""A worker: carries out commands one after the other, and keeps their results in registers."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from tvm import error
from tvm._ffi import get_global_func
from tvm.runtime.device import Device, cpu
from tvm.runtime.ndarray import NDArray

from .message import Command, Failure, Register, pack, unpack

__all__ = ["Port", "Worker", "copy_elements", "current_worker"]

_current = threading.local()
# In a register whose call failed or was not carried out.
_LOST = object()


class Port(Protocol):
    """A worker's connection to its session."""

    def next_command(self) -> Command: ...
    def report(self, failure: Failure) -> None:
        """An exception for the controller's next synchronisation."""

    def reply(self, number: int, value: Any) -> None:
        """The answer to a command that the controller waits for."""

    def end(self, number: int) -> None:
        """A call is over."""

    def meet(self, number: int, kind: str, part: Any) -> Any:
        """The worker's share in a collective operation, or a Failure."""


class Worker:
    """A worker of a session.

    Parameters
    ----------
    worker_id : from 0.
    num_workers : of the session.
    port : where commands come from and results go.

    Attributes
    ----------
    device : where arrays are made unless a device is named.
    """

    def __init__(self, worker_id: int, num_workers: int, port: Port) -> None:
        self.worker_id = worker_id
        self.num_workers = num_workers
        self.device: Device = cpu()
        self._port = port
        self._registers: dict[int, Any] = {}
        self._failed = False
        self._number = -1

    def serve(self) -> None:
        """Carry out commands on this thread until one says stop."""
        _current.worker = self
        while (command := self._port.next_command()).action != "stop":
            self._number = command.number
            if command.action == "call":
                self._call(command)
                self._port.end(command.number)
            elif command.action == "drop":
                for register in command.arguments:
                    self._registers.pop(register, None)
            elif command.action == "resume":
                self._failed = False
            else:
                self._port.reply(command.number, self._answer(command))

    def meet(self, kind: str, part: Any) -> Any:
        """Take part in a collective operation; returns this worker's share.

        Raises
        ------
        RuntimeError : another worker takes no part. ValueError : the parts do not fit.
        """
        share = self._port.meet(self._number, kind, part)
        if isinstance(share, Failure):
            raise share.exception(named=False)
        return share

    def _call(self, command: Command) -> None:
        # What follows a failure was written in the belief that there was none.
        self._registers[command.register] = _LOST
        if self._failed:
            return
        try:
            if isinstance(command.function, Register):
                function = self._value(command.function)
            else:
                function = get_global_func(command.function)
            if not callable(function):
                raise error.TypeError(f"a {type(function).__name__} was called as a function")
            arguments = [self._value(argument) for argument in command.arguments]
            self._registers[command.register] = function(*arguments)
        except BaseException as raised:
            # Also exits: a worker ends when its session says so.
            self._failed = True
            self._port.report(Failure.of(raised, self.worker_id, command.number))

    def _answer(self, command: Command) -> Any:
        try:
            if command.action == "sync":
                self.device.sync()
                return None
            if command.action == "get":
                return pack(self._value(Register(command.register)))
            self._set(command.register, unpack(command.arguments[0]))
            return None
        except Exception as raised:
            return Failure.of(raised, self.worker_id, command.number)

    def _set(self, register: int, value: Any) -> None:
        present = self._registers.get(register)
        if isinstance(present, NDArray) and isinstance(value, NDArray):
            copy_elements(value, present)
        else:
            self._registers[register] = value

    def _value(self, packed: Any) -> Any:
        if isinstance(packed, Register) and self._registers.get(packed.number) is _LOST:
            raise error.RuntimeError("the value does not exist, since the call for it failed")
        return unpack(packed, self._registers)


def copy_elements(source: NDArray, target: NDArray) -> None:
    """Overwrite an array, without converting."""
    if source.shape != target.shape or source.dtype != target.dtype:
        raise error.ValueError(
            f"cannot copy {source.dtype} of shape {source.shape} into {target.dtype} of shape "
            f"{target.shape}"
        )
    target.copyfrom(source)


def current_worker() -> Worker:
    """The worker that this thread is.

    Raises
    ------
    RuntimeError : it is none.
    """
    worker = getattr(_current, "worker", None)
    if worker is None:
        raise error.RuntimeError(
            "disco: this thread is no worker; call the function through a session"
        )
    return worker
