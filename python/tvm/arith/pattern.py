"""Linear forms of expressions, and bounds that conditions put on variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import _ffi_api
from .int_set import IntSet

__all__ = [
    "deduce_bound",
    "detect_clip_bound",
    "detect_common_subexpr",
    "detect_linear_equation",
    "domain_touched",
    "narrow_predicate_expression",
]


def detect_common_subexpr(expr, threshold: int) -> Mapping:
    """Parts of an expression that occur at least `threshold` times.

    Returns
    -------
    From the first of equal parts to their number. Variables and constants are no parts; a part of
    one that occurs again counts with it.
    """
    return _ffi_api.DetectCommonSubExpr(expr, threshold)


def narrow_predicate_expression(predicate, ranges: Mapping):
    """A condition that implies `predicate` for all values that some variables have.

    Parameters
    ----------
    ranges : from the variables that the result does without to their ranges.

    >>> i, j = tvm.tir.Var("i", "int32"), tvm.tir.Var("j", "int32")
    >>> narrow_predicate_expression(i + j < 16, {j: tvm.ir.Range(0, 4)})
    i < 13
    """
    return _ffi_api.NarrowPredicateExpression(predicate, ranges)


def detect_linear_equation(expr, var_list: Sequence) -> list:
    """Coefficients of a sum of multiples of variables, then the rest, which has none of them.

    Returns
    -------
    A list one longer than `var_list`; empty if `expr` is not linear in the variables. Those of an
    unsigned expression are told in the signed type of its width, since they may be negative.
    """
    return _ffi_api.DetectLinearEquation(expr, var_list)


def detect_clip_bound(expr, var_list: Sequence) -> list:
    """Bounds ``[min0, max0, min1, max1, ...]`` that a conjunction puts on single variables.

    Returns
    -------
    Missing bounds are None. The list is empty if some part of `expr` is no such bound.
    """
    return _ffi_api.DetectClipBound(expr, var_list)


def deduce_bound(var, cond, hint_map: Mapping, relax_map: Mapping) -> IntSet:
    """Values of `var` for which `cond` holds for sure.

    Parameters
    ----------
    hint_map : sets of the other variables.
    relax_map : sets of variables for whose every value the condition must hold.

    Raises
    ------
    ValueError : `var` is no variable, or `cond` is not boolean.
    """
    return _ffi_api.DeduceBound(var, cond, hint_map, relax_map)


def domain_touched(stmt, buffer, consider_loads: bool = True, consider_stores: bool = True) -> list:
    """One Range per dimension that holds every element of `buffer` that `stmt` touches."""
    return _ffi_api.DomainTouched(stmt, buffer, consider_loads, consider_stores)
