"""Workload names and arguments in a form that JSON can hold."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te

__all__ = ["deserialize_args", "get_const_tuple", "get_func_name", "serialize_args"]

_TENSOR_TAG = "TENSOR"


def get_func_name(func: Callable[..., Any]) -> str:
    """Name under which a function is registered; the same in every process."""
    if isinstance(func, functools.partial):
        func = func.func
    name = getattr(func, "__qualname__", None) or type(func).__qualname__
    # A function defined inside another one is known by its own name.
    return name.rsplit(".", 1)[-1]


def get_const_tuple(shape: Sequence[Any]) -> tuple[int, ...]:
    """The literal extents of a shape.

    Raises
    ------
    ValueError : an extent is symbolic.
    """
    extents = []
    for extent in shape:
        value = getattr(extent, "value", extent)
        if not isinstance(value, int):
            raise ValueError(f"shape {list(shape)}: extent {extent} is not a number")
        extents.append(int(value))
    return tuple(extents)


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as nested tuples of numbers and strings; a tensor by shape and dtype.

    Raises
    ------
    ValueError : an argument is neither a number, a string, a tensor nor a sequence of these.
    """
    result: list[Any] = []
    for arg in args:
        if isinstance(arg, te.Tensor):
            result.append((_TENSOR_TAG, get_const_tuple(arg.shape), str(arg.dtype)))
        elif isinstance(arg, (list, tuple)):
            result.append(serialize_args(arg))
        elif arg is None or isinstance(arg, (bool, int, float, str)):
            result.append(arg)
        else:
            raise ValueError(
                f"workload argument {arg!r} of type {type(arg).__name__} cannot be written as "
                "JSON; use numbers, strings, tensors and tuples of these"
            )
    return tuple(result)


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """Inverse of `serialize_args`; tensors become new placeholders, tuples become lists."""
    result: list[Any] = []
    for arg in args:
        if isinstance(arg, (list, tuple)):
            if len(arg) == 3 and arg[0] == _TENSOR_TAG:
                result.append(te.placeholder(tuple(arg[1]), dtype=arg[2]))
            else:
                result.append(deserialize_args(arg))
        else:
            result.append(arg)
    return result
