"""How a command ends: one line for what went wrong, whatever it was and wherever it came from."""

from __future__ import annotations

import inspect
import logging
import os
import signal
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn

import tvm

__all__ = ["describe_error", "end_process", "run_command"]

logger = logging.getLogger(__name__)

# What shells take the end by a signal for.
_SIGNALLED = 128
# Raised by what was asked for. Any other kind may be a defect, so that its traceback is worth
# keeping in the log.
_EXPECTED = (ValueError, TypeError, KeyError, OSError, ModuleNotFoundError, MemoryError)


class _Terminated(BaseException):
    """SIGTERM came; what was begun is cleaned up on the way out, as after Ctrl-C."""


_RAISED_BY: dict[type[BaseException], signal.Signals] = {
    KeyboardInterrupt: signal.SIGINT,
    _Terminated: signal.SIGTERM,
}
_SECONDS_TO_SEND_AGAIN = 0.01


def run_command(action: Callable[[], object]) -> int:
    """Run a command; returns its exit status.

    Errors are one line on standard error and status 1, Ctrl-C and SIGTERM one line and the status
    that shells expect, 130 and 143. The traceback of an error that is not of an expected kind goes
    to the log. Errors inside of functions of the user's own, such as a network's `forward`, are
    raised on: their traceback is what the user needs.
    """
    try:
        with _signals_raise():
            action()
    except KeyboardInterrupt:
        return _ended(signal.SIGINT, "interrupted")
    except _Terminated:
        return _ended(signal.SIGTERM, "terminated")
    except Exception as error:
        program = Path(inspect.getfile(action)).resolve().parent
        if _is_users_own(error.__traceback__, program):
            raise
        if not isinstance(error, _EXPECTED):
            logger.debug("the command failed", exc_info=error)
        print(f"error: {describe_error(error)}", file=sys.stderr)
        return 1
    return 0


def end_process(status: int) -> NoReturn:
    """End this process; Ctrl-C does not interrupt what is left to be done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def describe_error(error: BaseException) -> str:
    """What went wrong, as text; that of foreign errors is cut to their first line.

    >>> describe_error(FileNotFoundError(2, "No such file or directory", "a.json"))
    'a.json: No such file or directory'
    """
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])  # its text has quotes around it
    text = str(error).strip()
    if isinstance(error, _EXPECTED) and text:
        return text
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _ended(number: signal.Signals, what: str) -> int:
    print(what, file=sys.stderr)
    return _SIGNALLED + number


@contextmanager
def _signals_raise() -> Iterator[None]:
    """SIGTERM raises as Ctrl-C does, and neither is lost where Python drops exceptions."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        # Whoever sends it twice does not hurry the cleaning up.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Terminated

    def unraisable(dropped: sys.UnraisableHookArgs) -> None:
        # Destructors and what runs around a fork print an exception and go on. The signal is sent
        # once more, from a thread: here the handler would raise into this function.
        number = _RAISED_BY.get(dropped.exc_type)
        if number is None:
            before_unraisable(dropped)
            return
        on_its_way = False
        while not on_its_way:
            # A busy machine may start the thread so late that the signal comes while it is waited
            # for here, where it would be dropped again.
            try:
                if number == signal.SIGTERM:
                    signal.signal(number, terminate)
                timer = threading.Timer(_SECONDS_TO_SEND_AGAIN, os.kill, (os.getpid(), number))
                timer.start()
                on_their_way.append(timer)
                on_its_way = True
            except (KeyboardInterrupt, _Terminated):
                continue

    on_their_way: list[threading.Timer] = []
    before = signal.signal(signal.SIGTERM, terminate)
    before_unraisable, sys.unraisablehook = sys.unraisablehook, unraisable
    try:
        yield
        for timer in on_their_way:
            timer.join()
    finally:
        sys.unraisablehook = before_unraisable
        signal.signal(signal.SIGTERM, before)


def _is_users_own(where: TracebackType | None, program: Path) -> bool:
    """Whether an error passed through code of neither this package nor an installed one.

    program : folder of the command's own code.
    """
    folders = (Path(tvm.__file__).parent, Path(sysconfig.get_path("stdlib")), program)
    ours = {folder.resolve() for folder in folders}
    for frame, _ in traceback.walk_tb(where):
        name = frame.f_code.co_filename
        if name.startswith("<") or "site-packages" in name or "dist-packages" in name:
            continue
        if ours.isdisjoint(Path(name).resolve().parents):
            return True
    return False
