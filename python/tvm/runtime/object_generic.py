"""Conversion of Python values to objects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tvm._ffi.base import core

__all__ = ["ObjectGeneric", "ObjectTypes", "convert", "convert_to_object"]

# Classes whose instances cross the border as they are: objects, arrays, modules, functions.
ObjectTypes = (core.ObjectBase,)


class ObjectGeneric(ABC):
    """A Python value that stands for an object, such as a slice of a tensor."""

    @abstractmethod
    def asobject(self) -> Any:
        """The object this value stands for."""


def convert_to_object(value: Any) -> Any:
    """A Python value as C++ sees it: lists become Arrays, dicts Maps, callables functions.

    Raises
    ------
    TypeError : values of this type cannot cross.
    """
    found = core.convert_to_object(value)
    if found is value and callable(value) and not isinstance(value, ObjectTypes):
        # On its way back a Python function would be itself again.
        return core.convert_to_func(value)
    return found


convert = convert_to_object
