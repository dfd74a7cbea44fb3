"""Places in object graphs, such as ``<root>.body.seq[2]``."""

from __future__ import annotations

from typing import Any

import tvm._ffi

from . import _ffi_node_api
from .object import Object

__all__ = [
    "ArrayIndexPath",
    "AttributeAccessPath",
    "MapValuePath",
    "MissingArrayElementPath",
    "MissingMapEntryPath",
    "ObjectPath",
    "RootPath",
    "UnknownAttributeAccessPath",
]


@tvm._ffi.register_object("ObjectPath")
class ObjectPath(Object):
    """The steps from a root to a part of an object graph; paths of equal steps are equal.

    >>> ObjectPath.root().attr("body").array_index(2)
    <root>.body[2]
    """

    @staticmethod
    def root(root_name: str | None = None) -> ObjectPath:
        """The path to the root itself, which may have a name."""
        return _ffi_node_api.ObjectPathRoot(root_name)

    def attr(self, attr_key: str | None) -> ObjectPath:
        """The place of a field; None when it is not known which."""
        return _ffi_node_api.ObjectPathAttr(self, attr_key)

    def array_index(self, index: int) -> ObjectPath:
        """The place of an element."""
        return _ffi_node_api.ObjectPathArrayIndex(self, index)

    def missing_array_element(self, index: int) -> ObjectPath:
        """The place of an element that another array has there and this one has not."""
        return _ffi_node_api.ObjectPathMissingArrayElement(self, index)

    def map_value(self, key: Any) -> ObjectPath:
        """The place of the value of a key."""
        return _ffi_node_api.ObjectPathMapValue(self, key)

    def missing_map_entry(self) -> ObjectPath:
        """The place of an entry that another map has and this one has not."""
        return _ffi_node_api.ObjectPathMissingMapEntry(self)

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Whether the other path begins with the steps of this one."""
        return _ffi_node_api.ObjectPathIsPrefixOf(self, other)

    def get_prefix(self, length: int) -> ObjectPath:
        """The path of the first steps, the root being one.

        Raises
        ------
        IndexError : `length` is below one, or above that of the path.
        """
        return _ffi_node_api.ObjectPathGetPrefix(self, length)

    def __len__(self) -> int:
        return self.length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectPath):
            return NotImplemented
        return _ffi_node_api.ObjectPathEqual(self, other)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash(str(self))


@tvm._ffi.register_object("RootPath")
class RootPath(ObjectPath):
    """The root."""


@tvm._ffi.register_object("AttributeAccessPath")
class AttributeAccessPath(ObjectPath):
    """A field, `attr_key`, of what the parent leads to."""


@tvm._ffi.register_object("UnknownAttributeAccessPath")
class UnknownAttributeAccessPath(ObjectPath):
    """Some field."""


@tvm._ffi.register_object("ArrayIndexPath")
class ArrayIndexPath(ObjectPath):
    """An element, `index`."""


@tvm._ffi.register_object("MissingArrayElementPath")
class MissingArrayElementPath(ObjectPath):
    """An element, `index`, that is not there."""


@tvm._ffi.register_object("MapValuePath")
class MapValuePath(ObjectPath):
    """The value of `key`."""


@tvm._ffi.register_object("MissingMapEntryPath")
class MissingMapEntryPath(ObjectPath):
    """An entry that is not there."""
