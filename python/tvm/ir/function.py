"""Base of the functions a module holds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import tvm._ffi

from . import _ffi_api
from .expr import IntImm, RelayExpr
from .script_text import with_imports

__all__ = ["BaseFunc", "CallingConv", "attribute_value"]


def attribute_value(value: Any) -> Any:
    """What an attribute holds for `value`: a plain boolean or number for a constant of the types
    that these have in programs, bool and int32: both ways of writing it are one attribute."""
    if isinstance(value, IntImm) and str(value.dtype) in ("bool", "int32"):
        return bool(value.value) if str(value.dtype) == "bool" else int(value.value)
    return value


class CallingConv(IntEnum):
    """How a function is called: the value of its attribute ``calling_conv``."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


@tvm._ffi.register_object("BaseFunc")
class BaseFunc(RelayExpr):
    """A function with attributes; `attrs` is None when there are none."""

    def __str__(self) -> str:
        return with_imports(repr(self))

    def with_attr(self, key: str | Mapping[str, Any], value: Any = None) -> Any:
        """A copy with one attribute set, or with all of a mapping."""
        pairs = key.items() if isinstance(key, Mapping) else [(key, value)]
        result = self
        for name, item in pairs:
            result = _ffi_api.BaseFuncWithAttr(result, name, attribute_value(item))
        return result

    def with_attrs(self, attrs: Mapping[str, Any]) -> Any:
        """A copy with all attributes of a mapping set."""
        return self.with_attr(attrs)

    def without_attr(self, key: str) -> Any:
        """A copy without an attribute."""
        return _ffi_api.BaseFuncWithoutAttr(self, key)
