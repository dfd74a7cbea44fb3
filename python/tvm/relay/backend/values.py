"""What interpreted programs give: values of defined types, and cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm._ffi import register_object
from tvm.ir import Constructor
from tvm.runtime import Object

from .. import _ffi_api

__all__ = ["ConstructorValue", "RefValue"]


@register_object("relay.ConstructorValue")
class ConstructorValue(Object):
    """A value of a defined type.

    Parameters
    ----------
    tag : that of the constructor it was made by.
    fields : what it was made of.
    constructor : None where only the tag is known.
    """

    def __init__(
        self, tag: int, fields: Sequence[Any], constructor: Constructor | None = None
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.ConstructorValue, tag, list(fields), constructor
        )


@register_object("relay.RefValue")
class RefValue(Object):
    """A cell, which may be written: ``cell.value = array``."""

    def __init__(self, value: Any) -> None:
        self.__init_handle_by_constructor__(_ffi_api.RefValue, value)

    @property
    def value(self) -> Any:
        """What the cell holds."""
        return Object.__getattr__(self, "value")

    @value.setter
    def value(self, value: Any) -> None:
        _ffi_api.SetRefValue(self, value)
