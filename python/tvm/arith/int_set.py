"""Sets of integers with symbolic ends."""

from __future__ import annotations

from collections.abc import Sequence

import tvm._ffi
from tvm.ir import PrimExpr
from tvm.runtime import Object, convert

from . import _ffi_api
from .analyzer import Analyzer

__all__ = [
    "IntSet",
    "IntervalSet",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "eval_set",
    "intersect_sets",
    "neg_inf",
    "pos_inf",
    "union_lower_bound",
    "union_sets",
]


@tvm._ffi.register_object("arith.IntSet")
class IntSet(Object):
    """A set of integers."""

    def is_nothing(self) -> bool:
        """Whether the set is empty for sure."""
        return _ffi_api.IntSetIsNothing(self)

    def is_everything(self) -> bool:
        """Whether the set has no bound on either side."""
        return _ffi_api.IntSetIsEverything(self)

    @staticmethod
    def vector(vec) -> IntSet:
        """All lanes of an index vector."""
        return _ffi_api.EvalSet(vec, {})

    @staticmethod
    def single_point(point) -> IntSet:
        """The set of one value."""
        return IntervalSet(point, point)


@tvm._ffi.register_object("arith.IntervalSet")
class IntervalSet(IntSet):
    """All integers from `min_value` to `max_value`, both included."""

    def __init__(self, min_value, max_value) -> None:
        self.__init_handle_by_constructor__(_ffi_api.IntervalSet, min_value, max_value)

    @staticmethod
    def everything() -> IntSet:
        """All integers."""
        return _ffi_api.IntervalSet_everything()


def eval_set(expr, dom_map) -> IntSet:
    """Values of `expr` while the variables of `dom_map` run over their sets."""
    return _ffi_api.EvalSet(expr, dom_map)


def union_sets(sets: Sequence[IntSet]) -> IntSet:
    """The smallest interval that holds all of `sets`."""
    return _ffi_api.IntSetUnion(sets)


def union_lower_bound(sets: Sequence[IntervalSet]) -> IntSet:
    """An interval of integers that are in at least one of `sets`, for sure.

    The first set that is not empty is made longer by others that overlap it or go on where it ends;
    those of which that cannot be proved are left out.

    Parameters
    ----------
    sets : intervals.

    Returns
    -------
    The interval; an empty set if all of `sets` are.
    """
    analyzer = Analyzer()
    lowest, highest = neg_inf(), pos_inf()

    def is_at_most(a: PrimExpr, b: PrimExpr) -> bool:
        if a.same_as(lowest) or b.same_as(highest):
            return True
        if a.same_as(highest) or b.same_as(lowest):
            return False
        return analyzer.can_prove(a <= b)

    def lesser(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
        return a if is_at_most(a, b) else b if is_at_most(b, a) else None

    def goes_on(a: IntervalSet, b: IntervalSet) -> bool:
        end = a.max_value
        return end.same_as(highest) or is_at_most(b.min_value, end + 1)

    def joined(a: IntervalSet, b: IntervalSet) -> IntervalSet | None:
        if not goes_on(a, b) or not goes_on(b, a):
            return None
        least = lesser(a.min_value, b.min_value)
        below = lesser(a.max_value, b.max_value)
        if least is None or below is None:
            return None
        return IntervalSet(least, b.max_value if below.same_as(a.max_value) else a.max_value)

    left = [each for each in sets if not each.is_nothing()]
    if not left:
        return union_sets([])
    result = left.pop(0)
    changed = True
    while changed:
        changed = False
        for each in list(left):
            longer = joined(result, each)
            if longer is not None:
                result, changed = longer, True
                left.remove(each)
    return result


def intersect_sets(sets: Sequence[IntSet]) -> IntSet:
    """What all of `sets` share."""
    return _ffi_api.IntSetIntersect(sets)


def estimate_region_strict_bound(region, var_dom, predicate=True) -> list[IntSet] | None:
    """The sets whose product is touched, exactly.

    Parameters
    ----------
    region : one Range per dimension, what one iteration touches.
    var_dom : constant ranges of the loops.
    predicate : which iterations run.

    Returns
    -------
    One set per dimension; None if the region is no such product, or that cannot be told.
    """
    found = _ffi_api.EstimateRegionStrictBound(region, var_dom, convert(predicate))
    return None if found is None else list(found)


def estimate_region_lower_bound(region, var_dom, predicate=True) -> list[IntSet] | None:
    """Sets whose product is touched in any case: those of `estimate_region_strict_bound`."""
    return estimate_region_strict_bound(region, var_dom, predicate)


def estimate_region_upper_bound(region, var_dom, predicate=True) -> list[IntSet]:
    """Sets outside of whose product nothing is touched; arguments are as for the strict bound."""
    return list(_ffi_api.EstimateRegionUpperBound(region, var_dom, convert(predicate)))


def pos_inf():
    """The symbol for a missing upper end."""
    return _ffi_api.PosInf()


def neg_inf():
    """The symbol for a missing lower end."""
    return _ffi_api.NegInf()
