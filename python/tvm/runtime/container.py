"""Sequences, mappings, texts and tuples that live in C++."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm._ffi.base import core

from . import _ffi_api
from .object import Object

__all__ = ["ADT", "Array", "Map", "ShapeTuple", "String", "tuple_object"]

# Strings cross the border as Python's own.
String = str


@tvm._ffi.register_object("Array")
class Array(Object):
    """An immutable sequence. ``==`` compares with any sequence, element by element."""

    __slots__ = ()

    def __init__(self, items: Sequence[Any] = ()) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Array, *items)

    def __len__(self) -> int:
        return _ffi_api.ArraySize(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return core.array_to_list(self)[index]
        position = index.__index__()
        size = len(self)
        if not -size <= position < size:
            raise IndexError(f"Array: index {position} is out of range for {size} elements")
        return _ffi_api.ArrayGetItem(self, position % size)

    def __iter__(self) -> Iterator[Any]:
        return iter(core.array_to_list(self))

    def __reversed__(self) -> Iterator[Any]:
        return reversed(core.array_to_list(self))

    def __contains__(self, item: Any) -> bool:
        return item in core.array_to_list(self)

    def index(self, item: Any) -> int:
        """Position of the first element equal to `item`; ValueError if there is none."""
        return core.array_to_list(self).index(item)

    def count(self, item: Any) -> int:
        """Number of elements equal to `item`."""
        return core.array_to_list(self).count(item)

    def __add__(self, other: Sequence[Any]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Sequence[Any]) -> list[Any]:
        return [*other, *self]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Array) and self.same_as(other):
            return True
        if not isinstance(other, (Array, list, tuple)):
            return NotImplemented
        return core.array_to_list(self) == list(other)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash(tuple(self))


@tvm._ffi.register_object("Map")
class Map(Object):
    """An immutable mapping in the order of insertion. Keys that are neither text nor numbers are
    found by identity."""

    __slots__ = ()

    def __init__(self, items: Mapping[Any, Any] | None = None) -> None:
        pairs = [part for item in (items or {}).items() for part in item]
        self.__init_handle_by_constructor__(_ffi_api.Map, *pairs)

    def __len__(self) -> int:
        return _ffi_api.MapSize(self)

    def __contains__(self, key: Any) -> bool:
        return _ffi_api.MapCount(self, key)

    def __getitem__(self, key: Any) -> Any:
        if key not in self:
            raise KeyError(key)
        return _ffi_api.MapGetItem(self, key)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return _ffi_api.MapGetItem(self, key) if key in self else default

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in core.map_to_list(self))

    def items(self) -> ItemsView[Any, Any] | list[tuple[Any, Any]]:
        return core.map_to_list(self)

    def keys(self) -> Iterator[Any]:
        return iter(self)

    def values(self) -> Iterator[Any]:
        return (value for _, value in core.map_to_list(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Map, Mapping)):
            return NotImplemented
        return dict(self.items()) == dict(other.items())

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = Object.__hash__


@tvm._ffi.register_object("runtime.ShapeTuple")
class ShapeTuple(Object):
    """The extents of a tensor."""

    __slots__ = ()

    def __init__(self, shape: Sequence[int]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ShapeTuple, *shape)

    def __len__(self) -> int:
        return _ffi_api.GetShapeTupleSize(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        return _ffi_api.GetShapeTupleElem(self, index)

    def __iter__(self) -> Iterator[int]:
        return (_ffi_api.GetShapeTupleElem(self, i) for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (ShapeTuple, tuple, list)):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"ShapeTuple({list(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ShapeTuple, (list(self),)


@tvm._ffi.register_object("runtime.ADT")
class ADT(Object):
    """A value of an algebraic data type: the tag of a constructor, and its fields."""

    __slots__ = ()

    def __init__(self, tag: int, fields: Sequence[Any]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ADT, tag, *fields)

    @property
    def tag(self) -> int:
        return _ffi_api.GetADTTag(self)

    def __len__(self) -> int:
        return _ffi_api.GetADTSize(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"ADT: index {index} is out of range for {size} fields")
        return _ffi_api.GetADTFields(self, index % size)

    def __repr__(self) -> str:
        return f"ADT({self.tag}, {list(self)})"


def tuple_object(fields: Sequence[Any] = ()) -> ADT:
    """A tuple as an ADT, whose tag is 0."""
    return _ffi_api.Tuple(*fields)


Sequence.register(Array)
Mapping.register(Map)
