"""Bases of expressions, literals, ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api
from .base import KeepsSpan, Span
from .script_text import Scriptable
from .type import Type

__all__ = ["BaseExpr", "FloatImm", "GlobalVar", "IntImm", "PrimExpr", "Range", "RelayExpr"]


@tvm._ffi.register_object("BaseExpr")
class BaseExpr(Object, KeepsSpan, Scriptable):
    """Base of all expressions."""


@tvm._ffi.register_object("PrimExpr")
class PrimExpr(BaseExpr):
    """Expression over scalars and short vectors; `dtype` is its type.

    `tvm.tir` gives it Python's operators.
    """


# By class: what is known about functions of other levels, which follows from their parameters.
_derived_struct_info: dict[type, Callable[[Any], Any]] = {}


def derive_struct_info(kind: type) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorator: objects of class `kind` have the struct info that the function gives for them."""

    def register(derive: Callable[[Any], Any]) -> Callable[[Any], Any]:
        _derived_struct_info[kind] = derive
        return derive

    return register


@tvm._ffi.register_object("RelayExpr")
class RelayExpr(BaseExpr):
    """Expression of a graph-level program."""

    @property
    def checked_type(self) -> Type:
        """The deduced type.

        Raises
        ------
        ValueError : it has not been deduced yet.
        """
        if self.checked_type_ is None:
            if self.struct_info_ is not None:
                return self.struct_info_.as_type()
            raise ValueError(f"{type(self).__name__}: its type has not been inferred yet")
        return self.checked_type_

    @property
    def _checked_type_(self) -> Any:
        """The deduced type, None before it has been deduced."""
        known = self.checked_type_ is not None or self.struct_info_ is not None
        return self.checked_type if known else None

    @property
    def struct_info(self) -> Any:
        """What is known about the value, a StructInfo; None before it has been inferred."""
        derive = _derived_struct_info.get(type(self))
        return self.struct_info_ if derive is None else derive(self)


class ConstExpr(PrimExpr):
    """Base of literals."""


@tvm._ffi.register_object("IntImm")
class IntImm(ConstExpr):
    """Integer literal.

    Raises
    ------
    ValueError : the value does not fit the type.
    """

    def __init__(self, dtype: str, value: int, span: Span | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.IntImm, dtype, value, span)

    def __hash__(self) -> int:
        return hash(self.value)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


@tvm._ffi.register_object("FloatImm")
class FloatImm(ConstExpr):
    """Floating-point literal, rounded to its type.

    Raises
    ------
    ValueError : the type is no scalar of floating point, or a finite value is too large for it.
    """

    def __init__(self, dtype: str, value: float, span: Span | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.FloatImm, dtype, value, span)
        if math.isfinite(value) and not math.isfinite(self.value):
            raise ValueError(
                f"FloatImm: {value} does not fit {dtype}; infinity is written float('inf')"
            )

    def __float__(self) -> float:
        return self.value


@tvm._ffi.register_object("Range")
class Range(Object, Scriptable):
    """The integers from `min` to ``min + extent - 1``.

    Parameters
    ----------
    begin : first integer; with `end` left out, the end of a range from 0.
    end : one past the last integer.
    """

    def __init__(self, begin: Any, end: Any = None, span: Span | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Range, begin, end, span)

    @staticmethod
    def from_min_extent(min_value: Any, extent: Any, span: Span | None = None) -> Range:
        """The `extent` integers from `min_value` on."""
        return _ffi_api.Range_from_min_extent(min_value, extent, span)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Range):
            return NotImplemented
        return tvm.ir.structural_equal(self, other)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return tvm.ir.structural_hash(self)


@tvm._ffi.register_object("GlobalVar")
class GlobalVar(RelayExpr):
    """Name of a function of a module."""

    def __init__(self, name_hint: str, type_annot: Type | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.GlobalVar, name_hint, type_annot)

    @property
    def name(self) -> str:
        return self.name_hint

    def __call__(self, *args: RelayExpr) -> RelayExpr:
        """The call of the function, in the language of its arguments: relax, or else relay."""
        if any(str(arg.type_key).startswith("relax.") for arg in args):
            return tvm.get_global_func("relax.Call")(self, list(args), None, [], None)
        return tvm.get_global_func("relay.Call")(self, list(args), None, [])
