"""What workers tell their controller: results, failures, and that they are gone."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

from tvm import error

from .collectives import combine
from .meeting import Meeting
from .message import Failure

__all__ = ["Board"]


class Board:
    """The state that a session shares with the threads that serve its workers.

    Attributes
    ----------
    meeting : where the workers exchange data.
    """

    def __init__(self, num_workers: int) -> None:
        self.meeting = Meeting(num_workers, combine)
        self._lock = threading.Lock()
        self._failures: list[Failure] = []
        # Failures of commands up to this one belong to a batch whose failure was raised.
        self._settled = -1
        self._expected: dict[tuple[int, int], Future[Any]] = {}
        self._closed = False
        self._loss = ""
        self._loss_was_raised = False

    def check(self) -> None:
        """RuntimeError if the session cannot take commands."""
        with self._lock:
            if self._closed:
                raise error.RuntimeError("the session was shut down; start another one")
        loss = self.take_loss()
        if loss:
            raise error.RuntimeError(f"the session is over: {loss}; start another one")

    def close(self) -> None:
        """Take no more commands, because the user wants it so."""
        with self._lock:
            self._closed = True

    def take_loss(self, again: bool = True) -> str:
        """Which worker ended by itself and why, for an exception; empty if none did.

        Parameters
        ----------
        again : also if it was taken before.
        """
        with self._lock:
            loss = "" if self._loss_was_raised and not again else self._loss
            self._loss_was_raised = bool(self._loss)
            return loss

    def expect(self, worker: int, number: int) -> Future[Any]:
        """The reply of a worker to a command that is about to be sent."""
        future: Future[Any] = Future()
        with self._lock:
            self._expected[worker, number] = future
            # It may have been lost since the last check.
            if self._loss:
                future.set_result(None)
        return future

    def reply(self, worker: int, number: int, value: Any) -> None:
        """A worker's answer to a command that `expect` was called for."""
        with self._lock:
            future = self._expected.pop((worker, number), None)
            if future is not None and not future.done():
                future.set_result(value)

    def report(self, failure: Failure) -> None:
        """An exception in a worker, to be raised when the controller synchronises."""
        with self._lock:
            if failure.command > self._settled:
                self._failures.append(failure)

    def lose(self, worker: int, reason: str) -> None:
        """A worker ended by itself, and the session with it."""
        with self._lock:
            self._loss = self._loss or f"worker {worker} is gone, {reason}"
            lost = [key for key in self._expected if key[0] == worker]
            for key in lost:
                future = self._expected.pop(key)
                if not future.done():
                    future.set_result(None)
        self.meeting.lose(worker, reason)

    def take_failure(self, number: int) -> Failure | None:
        """The failure of the earliest command, if there is any.

        Failures of commands before `number` are not kept any longer, nor those still to come.
        """
        with self._lock:
            if not self._failures:
                return None
            self._settled = number
            first = min(self._failures, key=lambda failure: failure.command)
            self._failures.clear()
            return first
