"""How a process ended, in words."""

from __future__ import annotations

import signal

__all__ = ["describe_exit"]


def describe_exit(code: int) -> str:
    """A process's return code, negative for a signal as `subprocess` has it, in words.

    >>> describe_exit(-9)
    'ended by signal SIGKILL'
    """
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"ended by signal {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
