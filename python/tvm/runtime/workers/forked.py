"""Calls that may crash or take too long, in a process that costs milliseconds.

A worker takes a second to start, most of it imports. A copy of it is made at once, and can be
killed without losing the worker.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from tvm.runtime.exit_status import describe_exit

from .pool import Outcome
from .serve import die_with_parent
from .wire import pack_frame, take_frame

__all__ = ["Clock", "can_fork", "run_forked"]

_READ_BYTES = 1 << 16


def can_fork() -> bool:
    """Whether `run_forked` works on this system."""
    return sys.platform.startswith("linux")


class Clock:
    """What a forked function tells the process that waits for it."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def start(self) -> None:
        """From now on the time is limited."""
        self._tell("start")

    def stop(self) -> None:
        """From now on it is not."""
        self._tell("stop")

    def _tell(self, what: str) -> None:
        os.write(self._pipe, pack_frame({"clock": what}))


def run_forked(function: Callable[[Clock], Any], limit: float) -> Outcome:
    """Call a function in a copy of this process.

    This process must have no threads that the function needs, and no device open: a copy has
    neither. So it should not run itself what it has others run.

    Parameters
    ----------
    function : takes a clock, which it starts and stops around what `limit` is for, and returns what
        JSON can say.
    limit : seconds on the clock, ``math.inf`` for no limit.

    Returns
    -------
    Outcome with the status "done", "error" (it raised), "died" (its process ended) or "timeout" (it
    was killed); `seconds` are those on the clock.
    """
    read, write = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _serve(function, write, parent)
    os.close(write)
    try:
        return _watch(child, read, limit)
    finally:
        os.close(read)


def _serve(function: Callable[[Clock], Any], pipe: int, parent: int) -> None:
    """The copy's whole life; it never returns, as its stack is its parent's."""
    status = 1
    try:
        die_with_parent(parent)
        if callable(signal.getsignal(signal.SIGTERM)):
            # What the parent does about it is not for its copy to do.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            data = pack_frame({"result": function(Clock(pipe))})
        except Exception as error:  # the caller's to judge
            kind = type(error).__name__
            data = pack_frame({"error": f"{kind}: {error}", "kind": kind})
        while data:
            data = data[os.write(pipe, data) :]
        status = 0
    finally:
        os._exit(status)


def _watch(child: int, pipe: int, limit: float) -> Outcome:
    started: float | None = None
    seconds = 0.0
    buffer = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            left = None
            if started is not None and limit != float("inf"):
                left = max(0.0, started + limit - time.monotonic())
            if not selector.select(left):
                seconds = time.monotonic() - (started or 0.0)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                message = f"no result after {seconds:.3g} s; the process was killed"
                return Outcome("timeout", message=message, seconds=seconds)
            data = os.read(pipe, _READ_BYTES)
            buffer += data
            while (frame := take_frame(buffer)) is not None:
                message_, _ = frame
                if message_.get("clock") == "start":
                    started = time.monotonic()
                elif message_.get("clock") == "stop":
                    seconds, started = time.monotonic() - (started or time.monotonic()), None
                else:
                    os.waitpid(child, 0)
                    if "error" in message_:
                        return Outcome(
                            "error",
                            message=message_["error"],
                            kind=message_["kind"],
                            seconds=seconds,
                        )
                    return Outcome("done", message_["result"], seconds=seconds)
            if not data:
                _, status = os.waitpid(child, 0)
                reason = describe_exit(os.waitstatus_to_exitcode(status))
                return Outcome("died", message=f"the process {reason}", seconds=seconds)
