"""The connection of a session to a worker, and the worker that is a thread."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any, Protocol

from .board import Board
from .meeting import Arrival
from .message import Command, Failure
from .worker import Worker

__all__ = ["Channel", "ThreadChannel"]


class Channel(Protocol):
    """How a session reaches one worker."""

    def send(self, command: Command) -> None:
        """Queue a command; a worker that is gone shows when it does not answer."""

    def wait(self) -> None:
        """Until the worker has ended, having been told to stop."""

    def abandon(self) -> None:
        """Let the worker end as soon as it can, without waiting for it."""


class ThreadChannel:
    """A worker that is a thread of this process.

    The thread is a daemon: one that never returns from a call does not keep the program alive.
    """

    def __init__(self, worker_id: int, num_workers: int, board: Board) -> None:
        self._commands: SimpleQueue[Command] = SimpleQueue()
        worker = Worker(worker_id, num_workers, _ThreadPort(worker_id, self._commands, board))
        self._thread = threading.Thread(
            target=worker.serve, name=f"disco-worker-{worker_id}", daemon=True
        )
        self._thread.start()

    def send(self, command: Command) -> None:
        self._commands.put(command)

    def wait(self) -> None:
        self._thread.join()

    def abandon(self) -> None:
        # Numbers matter to those who wait for others, and nobody does any more.
        self._commands.put(Command(-1, "stop"))


class _ThreadPort:
    """A worker's side of a ThreadChannel."""

    def __init__(self, worker_id: int, commands: SimpleQueue[Command], board: Board) -> None:
        self._worker_id = worker_id
        self._commands = commands
        self._board = board

    def next_command(self) -> Command:
        return self._commands.get()

    def report(self, failure: Failure) -> None:
        self._board.report(failure)

    def reply(self, number: int, value: Any) -> None:
        self._board.reply(self._worker_id, number, value)

    def end(self, number: int) -> None:
        self._board.meeting.end(self._worker_id, number)

    def meet(self, number: int, kind: str, part: Any) -> Any:
        shares: SimpleQueue[Any] = SimpleQueue()
        self._board.meeting.join(Arrival(self._worker_id, number, kind, part, shares.put))
        return shares.get()
