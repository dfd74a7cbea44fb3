"""Plain numbers as literals of tensor programs."""

from __future__ import annotations

from tvm import tir
from tvm.tir import _ffi_api

__all__ = ["constant", "fit", "number"]


def number(value: bool | int | float) -> tir.PrimExpr:
    """A literal of int32, or int64 where that is too small, float32 or bool."""
    if isinstance(value, bool | float):
        return tir.const(value)
    return tir.const(value, "int32" if -(2**31) <= value < 2**31 else "int64")


def constant(value: bool | int | float, dtype: str) -> tir.PrimExpr:
    """A literal of a type; an error if the value does not fit."""
    if isinstance(value, float):
        return _ffi_api._const_float(value, dtype)
    return _ffi_api._const_int(int(value), dtype)


def fit(value: bool | int | float, like: tir.PrimExpr) -> tir.PrimExpr:
    """A plain number next to an expression: it takes that type unless it would lose its value."""
    dtype = str(like.dtype)
    if isinstance(value, bool) or dtype.startswith(("bool", "handle")):
        return number(value)
    if isinstance(value, float) and not dtype.startswith(("float", "bfloat", "custom")):
        return number(value)
    # A vector next to a number brings the number to its lanes by itself.
    return constant(value, dtype.split("x")[0])
