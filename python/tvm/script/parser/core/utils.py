"""What the names in the text of a function or class mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from tvm.script.decorate import is_in_class

__all__ = [
    "get_func_nonlocals",
    "inspect_class_capture",
    "inspect_function_capture",
    "is_defined_in_class",
]


def get_func_nonlocals(func: Callable[..., Any]) -> dict[str, Any]:
    """Variables of the functions around that a function uses, with their values."""
    return dict(inspect.getclosurevars(func).nonlocals)


def inspect_function_capture(func: Callable[..., Any]) -> dict[str, Any]:
    """All names that a function knows, with their values: those of its module and those around."""
    return {**func.__globals__, **get_func_nonlocals(func)}


def inspect_class_capture(cls: type) -> dict[str, Any]:
    """All names that the functions of a class know, with their values."""
    known: dict[str, Any] = {}
    for member in vars(cls).values():
        if inspect.isfunction(member):
            known |= inspect_function_capture(member)
    return known


def is_defined_in_class(frames: Sequence[Any], obj: Any) -> bool:
    """Whether a function is defined in the body of a class whose decorator reads all of it.

    Parameters
    ----------
    frames : those of ``inspect.stack()``, the innermost first.
    """
    for each in frames:
        frame: FrameType = getattr(each, "frame", each)
        if frame.f_globals is obj.__globals__:
            return is_in_class(frame)
    return False
