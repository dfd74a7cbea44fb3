"""Plain Python values as parts of tensor programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tvm import arith, error, ir, tir
from tvm.tir import _ffi_api

__all__ = [
    "annotations_of",
    "constant",
    "expression",
    "expressions",
    "extent_between",
    "fit",
    "interval",
    "is_number",
    "number",
]


def is_number(value: Any) -> bool:
    """Whether a value is a plain number of Python or NumPy."""
    return isinstance(value, bool | int | float) or (
        hasattr(value, "__index__") and not isinstance(value, ir.PrimExpr)
    )


def number(value: Any) -> tir.PrimExpr:
    """A literal of int32, or int64 where that is too small, float32 or bool."""
    if isinstance(value, bool | float):
        return tir.const(value)
    value = int(value)
    return tir.const(value, "int32" if -(2**31) <= value < 2**31 else "int64")


def constant(value: Any, dtype: str) -> tir.PrimExpr:
    """A literal of a type; an error if the value does not fit."""
    if isinstance(value, float):
        return _ffi_api._const_float(value, dtype)
    return tir.const(int(value), dtype)


def fit(value: Any, like: tir.PrimExpr) -> tir.PrimExpr:
    """A plain number next to an expression: it takes that type unless it would lose its value."""
    dtype = str(like.dtype)
    if isinstance(value, bool) or dtype.startswith(("bool", "handle")):
        return number(value)
    if isinstance(value, float) and dtype.startswith(("int", "uint")):
        return number(value)
    # A vector next to a number brings the number to its lanes by itself.
    return constant(value, dtype.split("x")[0])


def expression(value: Any, like: tir.PrimExpr | None = None) -> tir.PrimExpr:
    """A value as an expression; a plain number takes the type of `like`.

    Raises
    ------
    TypeError : the value is no expression, for instance a buffer.
    """
    if isinstance(value, ir.PrimExpr):
        return value
    if is_number(value):
        return number(value) if like is None else fit(value, like)
    if isinstance(value, str):
        return tir.StringImm(value)
    if isinstance(value, tir.IterVar):
        return value.var
    if isinstance(value, tir.Buffer):
        raise error.TypeError(
            f"the buffer `{value.name}` is not a value; index it for an element, or use "
            f"`{value.name}.data` for its pointer"
        )
    if hasattr(value, "asobject"):
        return expression(value.asobject())
    raise error.TypeError(f"{value!r} of {type(value).__name__} is not an expression")


def expressions(values: Any) -> list[tir.PrimExpr]:
    """Several expressions; a single one may stand without a list."""
    if isinstance(values, ir.PrimExpr | int | tir.IterVar) or not isinstance(values, Iterable):
        values = [values]
    return [expression(value) for value in values]


def extent_between(low: tir.PrimExpr, high: tir.PrimExpr) -> tir.PrimExpr:
    """``high - low``, such that what a printer wrote as ``low + extent`` gives the extent back."""
    if isinstance(low, tir.IntImm) and int(low) == 0:
        return high
    if isinstance(low, tir.IntImm) and isinstance(high, tir.IntImm):
        return tir.const(int(high) - int(low), str(high.dtype))
    if isinstance(high, tir.Add) and ir.structural_equal(high.a, low):
        return high.b
    return arith.Analyzer().simplify(high - low)


def interval(begin: Any, end: Any) -> ir.Range:
    """The range of two ends; plain numbers take the type of the other end."""
    if isinstance(begin, ir.PrimExpr):
        low = begin
        high = expression(end, low)
    else:
        high = expression(end)
        low = expression(begin, high)
    return ir.Range.from_min_extent(low, extent_between(low, high))


def annotations_of(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Annotations of statements, whose values are objects."""
    return {key: _annotation(value) for key, value in (values or {}).items()}


def _annotation(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_annotation(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _annotation(item) for key, item in value.items()}
    return number(value) if is_number(value) else value
