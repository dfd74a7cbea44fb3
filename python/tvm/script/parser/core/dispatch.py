"""What reads each kind of node of a dialect in TVM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import error

__all__ = ["get", "register"]


def register(token: str, type_name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """There are no handlers of single nodes here.

    Raises
    ------
    NotImplementedError : always; the message says what programs use in their place.
    """
    raise error.NotImplementedError(
        f'dispatch.register("{token}", "{type_name}"): what a line of a program means is not open '
        "to programs here; use T.macro for forms of one's own, a function that the text calls, or "
        "a decorator that calls T.prim_func or R.function"
    )


def get(token: str, type_name: str, default: Any = None) -> Any:
    """The handler that was registered for a kind of node: none, so `default`."""
    return default
