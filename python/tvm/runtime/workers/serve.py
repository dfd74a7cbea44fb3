"""A process that runs functions for the process that started it, one at a time.

Started as ``python -m tvm.runtime.workers.serve PARENT_PID``. A request names a function
``module:name`` that takes ``(arguments, blob)`` and returns a result and a blob. What the function,
or a program it runs, prints goes to standard error, so that it cannot mix with the answers.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

from .lifetime import is_at_its_end
from .wire import pack_frame, read_frame

__all__ = ["die_with_parent", "main", "resolve"]

_PR_SET_PDEATHSIG = 1


def resolve(name: str) -> Callable[..., Any]:
    """The function called ``module:name``.

    Raises
    ------
    ValueError : the name has another form. ImportError, AttributeError : there is no such function.
    """
    module, separator, function = name.partition(":")
    if not separator or not module or not function:
        raise ValueError(f"worker function: expected 'module:name', got {name!r}")
    return getattr(importlib.import_module(module), function)


def die_with_parent(parent: int) -> None:
    """A hung program never reads that the pipe was closed, so the kernel has to end it."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended before the request took effect.
    if os.getppid() != parent:
        os._exit(1)


def _address_space() -> int:
    """Bytes of virtual memory in use, 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _limit_memory(extra_bytes: int) -> None:
    """Allow this much address space on top of what the interpreter and libraries take."""
    limit = _address_space() + extra_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _answer(request: dict[str, Any], blob: bytes) -> bytes:
    try:
        result, data = resolve(request["function"])(request["arguments"], blob)
        return pack_frame({"result": result, "last": is_at_its_end()}, data)
    except Exception as error:
        # Everything a candidate can raise is the caller's to judge; only exits leave the loop.
        text = "out of memory" if isinstance(error, MemoryError) else str(error)
        kind = type(error).__name__
        return pack_frame({"error": f"{kind}: {text}", "kind": kind})


def main(arguments: list[str]) -> int:
    """Serve requests until the input ends.

    Parameters
    ----------
    arguments : process id of the parent, bytes of memory allowed (0 for no limit), and modules to
        import before the first request.
    """
    parent, memory_bytes, *modules = arguments
    die_with_parent(int(parent))
    # A crash is an expected outcome here, and its core file would only fill the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Ctrl-C in a terminal reaches the whole process group; the parent decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with open(os.devnull, "rb") as null:
        os.dup2(null.fileno(), 0)
    for module in modules:
        importlib.import_module(module)
    if int(memory_bytes) > 0:
        _limit_memory(int(memory_bytes))
    sink.write(pack_frame({"result": "ready"}))
    sink.flush()
    while (frame := read_frame(source)) is not None:
        sink.write(_answer(*frame))
        sink.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
