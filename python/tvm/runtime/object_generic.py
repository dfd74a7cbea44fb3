"""Conversion of Python values to objects."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np

import tvm._ffi
from tvm._ffi.base import core

__all__ = ["ObjectGeneric", "ObjectTypes", "const", "convert", "convert_to_object"]

# Classes whose instances cross the border as they are: objects, arrays, modules, functions.
ObjectTypes = (core.ObjectBase,)


class ObjectGeneric(ABC):
    """A Python value that stands for an object, such as a slice of a tensor."""

    @abstractmethod
    def asobject(self) -> Any:
        """The object this value stands for."""


def const(value: Any, dtype: str | None = None) -> Any:
    """A number as a literal; without `dtype` an int is int32, a float float32, both of 64
    bits if that is too small, and a bool bool.

    Raises
    ------
    ValueError : the value does not fit the type, or there is only the runtime.
    """
    if dtype is None:
        dtype = str(value.dtype) if isinstance(value, np.generic) else _dtype_of(value)
    if hasattr(value, "__index__") or isinstance(value, bool | np.bool_):
        return tvm._ffi.get_global_func("tir._const_int")(int(value), dtype)
    return tvm._ffi.get_global_func("tir._const_float")(float(value), dtype)


def _dtype_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if hasattr(value, "__index__"):
        return "int32" if -(2**31) <= int(value) < 2**31 else "int64"
    too_large = math.isfinite(value) and abs(value) > float(np.finfo("float32").max)
    return "float64" if too_large else "float32"


def _literals(value: Any) -> Any:
    """A value whose numbers are literals, in lists and tables too."""
    if isinstance(value, ObjectTypes):
        return value
    if isinstance(value, Number | np.bool_):
        return const(value)
    if isinstance(value, list | tuple):
        return [_literals(item) for item in value]
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else _literals(key): _literals(item)
            for key, item in value.items()
        }
    return value


def convert_to_object(value: Any) -> Any:
    """A Python value as an object: numbers become literals, lists Arrays, dicts Maps, callables
    functions.

    Raises
    ------
    TypeError : values of this type cannot cross.
    """
    found = core.convert_to_object(_literals(value))
    if found is value and callable(value) and not isinstance(value, ObjectTypes):
        # On its way back a Python function would be itself again.
        return core.convert_to_func(value)
    return found


convert = convert_to_object
