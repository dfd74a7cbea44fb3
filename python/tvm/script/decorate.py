"""Decorators: from the Python function or class under them to its text and what surrounds it."""

from __future__ import annotations

import inspect
import sys
from collections import ChainMap
from collections.abc import Callable
from types import FrameType
from typing import Any

from tvm import error

from .module import read_definition
from .reader import DIALECTS, Surroundings
from .source import Source

__all__ = ["function_decorator", "read_object"]


def read_object(thing: Any, frame: FrameType) -> Any:
    """The program that the text of a Python function or class describes.

    Parameters
    ----------
    frame : where it is defined; the names known there are constants of the program.

    Raises
    ------
    ValueError : the text is not to be found.
    """
    try:
        lines, first_line = inspect.getsourcelines(thing)
        name = inspect.getsourcefile(thing) or "<str>"
    except (OSError, TypeError):
        raise error.ValueError(
            f"tvm.script: the text of {thing.__name__} is not in a file that can be read; give the "
            "text itself to tvm.script.from_source"
        ) from None
    known: ChainMap[str, Any] = ChainMap(frame.f_locals, frame.f_globals)
    if inspect.isfunction(thing):
        # What an inner function uses stays known after the outer one has returned.
        known = known.new_child(dict(inspect.getclosurevars(thing).nonlocals))
    by_module = {path: dialect for dialect, path in DIALECTS.items()}
    dialects = {
        alias: by_module[value.__name__]
        for alias, value in known.items()
        if inspect.ismodule(value) and value.__name__ in by_module
    }
    return read_definition(
        Source("".join(lines), name, first_line), Surroundings(known, dialects, exact=False)
    )


def function_decorator(name: str) -> Callable[..., Any]:
    """A decorator of functions, with and without options in parentheses.

    In the body of a class it leaves the function alone: the decorator of the class reads all.
    """

    def decorator(func: Callable[..., Any] | None = None, **options: Any) -> Any:
        frame = sys._getframe(1)
        if func is None:
            # The options are in the text, which is read with the function.
            return lambda inner: _read(inner, frame)
        if not inspect.isfunction(func):
            raise error.TypeError(f"{name} decorates a function, got {type(func).__name__}")
        return _read(func, frame)

    decorator.__name__ = decorator.__qualname__ = name.rsplit(".", 1)[-1]
    return decorator


def _read(func: Callable[..., Any], frame: FrameType) -> Any:
    if "__qualname__" in frame.f_locals and frame.f_code.co_name != "<module>":
        return func
    return read_object(func, frame)
