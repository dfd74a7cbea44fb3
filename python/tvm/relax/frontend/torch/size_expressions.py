"""Sizes that PyTorch's export computes with, as expressions of extents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import sympy

from tvm import tir
from tvm.ir import PrimExpr

__all__ = ["extent_of", "number_of"]

Variables = Mapping[sympy.Symbol, PrimExpr]


def extent_of(expression: sympy.Expr, variables: Variables) -> PrimExpr:
    """An integer expression of symbols as one of int64 over variables.

    Raises
    ------
    KeyError : it has a function of numbers that sizes are not made of.
    """
    return _translated(expression, variables, "int64")


def number_of(expression: sympy.Basic, variables: Variables) -> PrimExpr:
    """A real number (float64), or a condition (bool), of symbols as an expression over variables.

    Raises
    ------
    KeyError : it has a function of numbers that sizes are not made of.
    """
    is_condition = isinstance(expression, sympy.logic.boolalg.Boolean)
    return _translated(expression, variables, "bool" if is_condition else "float64")


def _translated(expression: sympy.Basic, variables: Variables, dtype: str) -> PrimExpr:
    def inner(part: sympy.Basic, wanted: str = dtype) -> PrimExpr:
        return _translated(part, variables, wanted)

    if isinstance(expression, sympy.Symbol):
        value = variables[expression]
        return value if dtype == "int64" else value.astype(dtype)
    if isinstance(expression, sympy.Integer):
        return tir.const(int(expression), dtype)
    if isinstance(expression, sympy.Number):
        return tir.const(float(expression), dtype)
    name = type(expression).__name__
    if isinstance(expression, sympy.Pow) or name in ("PowByNatural", "FloatPow"):
        return _power(expression, inner, dtype)
    if name in _FOLDED:
        return functools.reduce(_FOLDED[name], (inner(part) for part in expression.args))
    if name in _OF_INTEGERS:
        value = _OF_INTEGERS[name](*(inner(part, "int64") for part in expression.args))
        return value if dtype in ("int64", "bool") else value.astype(dtype)
    if name in _OF_REALS:
        value = _OF_REALS[name](*(inner(part, "float64") for part in expression.args))
        return value.astype(dtype)
    if name in ("ToFloat", "Identity"):
        (part,) = expression.args
        return inner(part, "int64" if name == "ToFloat" else dtype).astype(dtype)
    if name == "Not":
        return tir.Not(inner(expression.args[0], "bool"))
    if name == "Where":
        condition, first, second = expression.args
        return tir.Select(inner(condition, "bool"), inner(first), inner(second))
    raise KeyError(f"{expression}: {name} is no function that sizes are computed by")


def _power(expression: sympy.Basic, inner: Callable[..., PrimExpr], dtype: str) -> PrimExpr:
    base, exponent = expression.args
    if isinstance(exponent, sympy.Integer) and 0 < int(exponent) <= _LARGEST_PRODUCT:
        return functools.reduce(lambda a, b: a * b, [inner(base)] * int(exponent))
    if dtype == "int64":
        raise KeyError(f"{expression}: a size is no power with this exponent")
    return tir.power(inner(base), inner(exponent))


_LARGEST_PRODUCT = 8


def _ceil_div(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return tir.floordiv(a + b - 1, b)


def _modular_index(value: PrimExpr, step: PrimExpr, count: PrimExpr) -> PrimExpr:
    return tir.floormod(tir.floordiv(value, step), count)


_FOLDED: dict[str, Callable[[Any, Any], PrimExpr]] = {
    "Add": lambda a, b: a + b,
    "Mul": lambda a, b: a * b,
    "Max": tir.max,
    "Min": tir.min,
    "And": tir.all,
    "Or": tir.any,
}
# Divisions of sizes round down, and so do those of integers here.
_OF_INTEGERS: dict[str, Callable[..., PrimExpr]] = {
    "FloorDiv": tir.floordiv,
    "CleanDiv": tir.floordiv,
    "CeilDiv": _ceil_div,
    "Mod": tir.floormod,
    "PythonMod": tir.floormod,
    "ModularIndexing": _modular_index,
    "LShift": lambda a, b: a << b,
    "RShift": lambda a, b: a >> b,
    "Equality": tir.EQ,
    "Unequality": tir.NE,
    "StrictLessThan": tir.LT,
    "LessThan": tir.LE,
    "StrictGreaterThan": tir.GT,
    "GreaterThan": tir.GE,
}
_OF_REALS: dict[str, Callable[..., PrimExpr]] = {
    "IntTrueDiv": tir.div,
    "FloatTrueDiv": tir.div,
    "FloorToInt": tir.floor,
    "CeilToInt": tir.ceil,
    "TruncToInt": tir.trunc,
    "TruncToFloat": tir.trunc,
    "RoundToInt": tir.round,
    "OpaqueUnaryFn_sqrt": tir.sqrt,
    "OpaqueUnaryFn_exp": tir.exp,
    "OpaqueUnaryFn_log": tir.log,
}
