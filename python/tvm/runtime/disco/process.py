"""Workers that are processes, over a pair of pipes each.

The pipes carry messages of `runtime.workers`. Only a process and the child that it started hold
their ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from typing import Any, BinaryIO

from tvm import error
from tvm.runtime.exit_status import describe_exit
from tvm.runtime.workers import child_environment
from tvm.runtime.workers.wire import decode, encode, pack_frame, read_frame

from .board import Board
from .collectives import Part
from .meeting import Arrival
from .message import Command, Failure, Register, Shape
from .worker import Worker

__all__ = ["ProcessChannel", "serve_pipes"]

# What a message may hold besides plain values and arrays.
_RECORDS = {
    "command": Command,
    "failure": Failure,
    "part": Part,
    "register": Register,
    "shape": Shape,
}
# What a worker sent before it ended is there at once, unless a child of its own holds the pipe.
_DRAIN_SECONDS = 2.0


class _Pipe:
    """Messages in both directions; any thread may write, one reads."""

    def __init__(self, source: int, sink: int) -> None:
        self._source: BinaryIO = os.fdopen(source, "rb")
        self._sink: BinaryIO = os.fdopen(sink, "wb")
        self._lock = threading.Lock()

    def write(self, message: Any) -> None:
        """Send; OSError if the other side is gone."""
        data = pack_frame(*encode(message, _RECORDS))
        with self._lock:
            self._sink.write(data)
            self._sink.flush()

    def messages(self) -> Iterator[Any]:
        """What the other side sends, until it closes its end or is gone."""
        while (frame := read_frame(self._source)) is not None:
            yield decode(*frame, _RECORDS)

    def close_sink(self) -> None:
        """Let the other side know that nothing follows."""
        # Closing flushes what a dead reader will never take.
        with contextlib.suppress(OSError):
            self._sink.close()

    def close_source(self) -> None:
        self._source.close()


class ProcessChannel:
    """A worker that is a process of its own, ``python -m entrypoint``."""

    def __init__(self, worker_id: int, num_workers: int, entrypoint: str, board: Board) -> None:
        self._worker_id = worker_id
        self._board = board
        self._stopping = False
        to_worker, from_worker = os.pipe(), os.pipe()
        child_ends = (to_worker[0], from_worker[1])
        self._pipe = _Pipe(from_worker[0], to_worker[1])
        try:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    entrypoint,
                    str(worker_id),
                    str(num_workers),
                    *map(str, child_ends),
                ],
                pass_fds=child_ends,
                stdin=subprocess.DEVNULL,
                env=child_environment(),
            )
        finally:
            for end in child_ends:
                os.close(end)
        self._reader = threading.Thread(target=self._read, name="disco-reader", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="disco-watcher", daemon=True)
        self._reader.start()
        self._watcher.start()

    def send(self, command: Command) -> None:
        self._stopping |= command.action == "stop"
        self._write(("command", command))

    def wait(self) -> None:
        self._watcher.join()

    def abandon(self) -> None:
        """Close the pipe, at which the worker ends even in the middle of a call."""
        self._stopping = True
        self._pipe.close_sink()

    def kill(self) -> None:
        """End the process now."""
        self.process.kill()
        self.wait()

    def _write(self, message: tuple[Any, ...]) -> None:
        # The watcher reports a process that is gone. ValueError: the pipe was closed on this side.
        with contextlib.suppress(OSError, ValueError):
            self._pipe.write(message)

    def _read(self) -> None:
        try:
            for what, *content in self._pipe.messages():
                if what == "report":
                    self._board.report(*content)
                elif what == "reply":
                    self._board.reply(self._worker_id, *content)
                elif what == "end":
                    self._board.meeting.end(self._worker_id, *content)
                else:
                    number, kind, part = content
                    arrival = Arrival(self._worker_id, number, kind, part, self._answer)
                    self._board.meeting.join(arrival)
        finally:
            # Whether it closed the pipe or sent what cannot be read, it is of no use any more.
            if not self._stopping:
                self.process.kill()
            self._pipe.close_source()

    def _answer(self, share: Any) -> None:
        self._write(("answer", share))

    def _watch(self) -> None:
        status = self.process.wait()
        self._reader.join(_DRAIN_SECONDS)
        reason = f"its process {self.process.pid} {describe_exit(status)}"
        if status != 0 or not self._stopping:
            self._board.lose(self._worker_id, reason)
        else:
            self._board.meeting.lose(self._worker_id, reason)
        self._pipe.close_sink()


class _ProcessPort:
    """A worker's side of a ProcessChannel."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe = pipe
        self._commands: SimpleQueue[Command] = SimpleQueue()
        self._shares: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._read, name="disco-reader", daemon=True).start()

    def next_command(self) -> Command:
        return self._commands.get()

    def report(self, failure: Failure) -> None:
        self._pipe.write(("report", failure))

    def reply(self, number: int, value: Any) -> None:
        self._pipe.write(("reply", number, value))

    def end(self, number: int) -> None:
        self._pipe.write(("end", number))

    def meet(self, number: int, kind: str, part: Any) -> Any:
        self._pipe.write(("part", number, kind, part))
        return self._shares.get()

    def _read(self) -> None:
        try:
            for what, content in self._pipe.messages():
                (self._commands if what == "command" else self._shares).put(content)
        except BaseException:
            traceback.print_exc()
        # The controller is gone or wants no more. Nothing that still runs here is of use to anyone,
        # and it may never return.
        os._exit(0)


def serve_pipes(arguments: Sequence[str]) -> None:
    """Be the worker that a ProcessChannel started, until the session ends.

    Parameters
    ----------
    arguments : number of the worker, number of workers, and the two file descriptors of the pipes.

    Raises
    ------
    ValueError : other arguments.
    """
    if len(arguments) != 4 or not all(text.isdecimal() for text in arguments):
        raise error.ValueError(
            "disco_worker: expected WORKER_ID NUM_WORKERS READ_FD WRITE_FD, got "
            f"{' '.join(arguments) or 'nothing'}; a ProcessSession starts this program"
        )
    worker_id, num_workers, source, sink = map(int, arguments)
    # Ctrl-C in a terminal reaches every process of the group; the controller decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Programs that a call starts must not hold the pipes open.
    os.set_inheritable(source, False)
    os.set_inheritable(sink, False)
    try:
        Worker(worker_id, num_workers, _ProcessPort(_Pipe(source, sink))).serve()
    except BrokenPipeError:
        # The controller is gone, and so nobody waits for the result.
        os._exit(0)
