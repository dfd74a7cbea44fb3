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
            if self._loss:
                self._loss_was_raised = True
                text = f"the session is over: {self._loss}; start another one"
                raise error.RuntimeError(text) from self._first_exception()

    def close(self) -> None:
        """Take no more commands, because the user wants it so."""
        with self._lock:
            self._closed = True

    def check_end(self) -> None:
        """Raise, after the workers ended, what has not been raised before."""
        with self._lock:
            if self._loss and not self._loss_was_raised:
                self._loss_was_raised = True
                text = f"the session ended early: {self._loss}"
                raise error.RuntimeError(text) from self._first_exception()
            # Failures that came with a loss were shown as its cause.
            first = None if self._loss else self._first_exception()
            self._failures.clear()
        if first is not None:
            raise first

    def loss(self) -> str:
        """Which worker ended by itself and why, for a message; empty if none did."""
        with self._lock:
            return self._loss

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

    def take_failure(self, number: int) -> Exception | None:
        """The exception of the earliest command that failed, if any did.

        Failures of commands before `number` are not kept any longer, nor those still to come.
        """
        with self._lock:
            first = self._first_exception()
            if first is not None:
                self._settled = number
                self._failures.clear()
            return first

    def _first_exception(self) -> Exception | None:
        if not self._failures:
            return None
        # Of one command, the failure that was reported first, since others may follow from it.
        return min(self._failures, key=lambda failure: failure.command).exception()
