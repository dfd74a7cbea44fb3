"""Attributes of operators and functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api

__all__ = ["Attrs", "DictAttrs"]


@tvm._ffi.register_object("Attrs")
class Attrs(Object):
    """Base of the attribute records of operators; their fields are attributes."""

    def keys(self) -> list[str]:
        """Names of the attributes."""
        return list(tvm.runtime._ffi_node_api.ListFieldNames(self))

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """An attribute that is a list of numbers, as those.

        Raises
        ------
        TypeError : an element is no number.
        """
        return tuple(_number(key, value) for value in self[key])

    def get_int(self, key: str) -> int:
        """An attribute that is a number.

        Raises
        ------
        TypeError : it is none.
        """
        return _number(key, self[key])

    def get_str(self, key: str) -> str:
        """An attribute that is a text."""
        return str(self[key])

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def _number(key: str, value: Any) -> int:
    """A number of Python or a constant expression."""
    found = getattr(value, "value", value)
    if not isinstance(found, int):
        raise TypeError(f"Attrs: {key} has {value}, which is no number")
    return found


_OPTIONAL: set[str] = set()


def declare_optional(*names: str) -> None:
    """Say which settings operators keep only where they are given; read by name, they are None."""
    _OPTIONAL.update(names)


@tvm._ffi.register_object("DictAttrs")
class DictAttrs(Attrs):
    """Attributes by name, read like a mapping."""

    def __init__(self, attrs: Mapping[str, Any] | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.DictAttrs, dict(attrs or {}))

    def keys(self) -> list[str]:
        return list(self.dict)

    def items(self) -> list[tuple[str, Any]]:
        return self.dict.items()

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute, or `default`."""
        return self.dict.get(name, default)

    def __getitem__(self, name: str) -> Any:
        return self.dict[name]

    def __getattr__(self, name: str) -> Any:
        # Only asked for what the class does not have, and for the field of an empty object.
        if name == "dict" or name.startswith("_"):
            raise AttributeError(f"DictAttrs: there is no attribute {name!r}")
        if name not in self.dict:
            if name in _OPTIONAL:
                return None
            raise AttributeError(
                f"DictAttrs: there is no attribute {name!r}; there are {self.keys()}"
            )
        return self.dict[name]

    def __contains__(self, name: str) -> bool:
        return name in self.dict

    def __len__(self) -> int:
        return len(self.dict)

    def __iter__(self) -> Iterator[str]:
        return iter(self.dict)
