"""Where workers exchange data: each brings a part, and gets its share once all parts are there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import error

from .message import Failure

__all__ = ["Arrival", "Meeting"]


@dataclass(frozen=True)
class Arrival:
    """A worker that waits for the others.

    Attributes
    ----------
    worker, command : who waits, inside which command.
    kind : name of the collective operation.
    part : what the worker brings.
    answer : called once, with the worker's share or a Failure.
    """

    worker: int
    command: int
    kind: str
    part: Any
    answer: Callable[[Any], None]


class Meeting:
    """Matches the parts of a collective operation; it lives in the controller's process.

    A worker that will not come, because its call ended or its process did, is told to those who
    wait for it as an error, so that no one waits for ever.

    Parameters
    ----------
    num_workers : all of them take part.
    combine : from the kind and the parts by worker, makes the shares by worker.
    """

    def __init__(
        self, num_workers: int, combine: Callable[[str, Sequence[Any]], Sequence[Any]]
    ) -> None:
        self._combine = combine
        self._lock = threading.Lock()
        self._waiting: dict[int, Arrival] = {}
        # By worker: the last command it is through with, and why it is gone.
        self._ended = [-1] * num_workers
        self._gone: dict[int, str] = {}

    def join(self, arrival: Arrival) -> None:
        """A worker brings its part; the last one to come pays for the combining."""
        with self._lock:
            self._waiting[arrival.worker] = arrival
        self._settle()

    def end(self, worker: int, command: int) -> None:
        """A worker is through with a command."""
        with self._lock:
            self._ended[worker] = command
            idle = not self._waiting
        if not idle:
            self._settle()

    def lose(self, worker: int, reason: str) -> None:
        """A worker will never come again."""
        with self._lock:
            self._gone[worker] = reason
            self._waiting.pop(worker, None)
        self._settle()

    def _settle(self) -> None:
        while ready := self._take_ready():
            arrivals, reason = ready
            for arrival, share in zip(arrivals, self._shares(arrivals, reason)):
                arrival.answer(share)

    def _take_ready(self) -> tuple[list[Arrival], str] | None:
        """The arrivals that can be answered now, and why in vain if so."""
        with self._lock:
            if not self._waiting:
                return None
            command = min(arrival.command for arrival in self._waiting.values())
            here = {w: a for w, a in self._waiting.items() if a.command == command}
            reason = ""
            for worker in range(len(self._ended)):
                if worker in here:
                    continue
                if worker in self._gone:
                    reason = f"worker {worker} is gone: {self._gone[worker]}"
                elif worker in self._waiting or self._ended[worker] >= command:
                    reason = f"worker {worker} takes no part: its call failed or ended before"
            if not reason and len(here) < len(self._ended):
                return None
            kinds = {arrival.kind for arrival in here.values()}
            if not reason and len(kinds) > 1:
                reason = f"workers meet in different operations: {', '.join(sorted(kinds))}"
            for worker in here:
                del self._waiting[worker]
            return [here[worker] for worker in sorted(here)], reason

    def _shares(self, arrivals: list[Arrival], reason: str) -> Sequence[Any]:
        try:
            if not reason:
                parts = [arrival.part for arrival in arrivals]
                return self._combine(arrivals[0].kind, parts)
            raise error.RuntimeError(f"{arrivals[0].kind}: {reason}")
        except Exception as raised:
            # Whatever it is, the workers have to hear it: they are waiting.
            return [Failure.of(raised, a.worker, a.command) for a in arrivals]
