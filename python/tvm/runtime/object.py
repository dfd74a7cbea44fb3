"""Base of the Python classes of objects."""

from __future__ import annotations

from typing import Any

import tvm._ffi
from tvm._ffi.base import core

from . import _ffi_node_api

__all__ = ["Object"]


@tvm._ffi.register_object("runtime.Object")
class Object(core.ObjectBase):
    """A reference to an object that lives in C++.

    Fields of the object are attributes and read-only. ``==`` and ``hash`` go by identity of the
    object; two references may stand for one object, which ``same_as`` tells. Structural comparison
    is `tvm.ir.structural_equal`.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), _ffi_node_api.SaveJSON(self))

    def __getstate__(self) -> dict[str, str]:
        return {"handle": _ffi_node_api.SaveJSON(self)}

    def __setstate__(self, state: dict[str, str]) -> None:
        """Refer to another object from here on, of which `state` is the text."""
        self._take_handle(_ffi_node_api.LoadJSON(state["handle"]))

    def __copy__(self) -> Object:
        return _ffi_node_api.CopyNode(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _ffi_node_api.LoadJSON(_ffi_node_api.SaveJSON(self))


def _restore(cls: type[Object], text: str) -> Any:
    restored = _ffi_node_api.LoadJSON(text)
    if type(restored) is cls:
        return restored
    # A Python subclass of the registered class keeps its own type.
    instance = cls.__new__(cls)
    instance._take_handle(restored)
    return instance
