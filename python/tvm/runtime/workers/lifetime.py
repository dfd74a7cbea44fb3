"""Whether the pool is to end this worker with its next answer, and to start another one.

Not a part of `serve`, which a worker runs as ``__main__``: functions would import a second copy.
"""

from __future__ import annotations

__all__ = ["end_after_answer", "is_at_its_end"]

_at_its_end = False


def end_after_answer() -> None:
    """Have this worker ended once the function that it runs has been answered.

    For functions that find the process spoilt for those to come.
    """
    global _at_its_end
    _at_its_end = True


def is_at_its_end() -> bool:
    """Whether `end_after_answer` was called."""
    return _at_its_end
