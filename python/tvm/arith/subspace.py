"""Indices of a loop nest divided between outer loops and the inner ones of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import mul
from typing import Any

import tvm
from tvm.ir import PrimExpr, Range
from tvm.runtime import convert

from . import _ffi_api
from .analyzer import Analyzer
from .iter_affine_map import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, detect_iter_map

__all__ = ["subspace_divide"]


class _Mixed(Exception):
    """An index whose outer and inner digits cannot be told apart."""


def subspace_divide(
    bindings: Sequence[Any],
    input_iters: Mapping[Any, Range],
    sub_iters: Sequence[Any],
    predicate: Any = True,
    check_level: IterMapLevel | int | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[list[PrimExpr]]:
    """Write each index as ``outer * extent_of_inner + inner``.

    Parameters
    ----------
    bindings : indices, expressions of the loops.
    input_iters : ranges of the loop variables.
    sub_iters : the loops that `inner` may use; `outer` uses the others.
    predicate : which iterations run; each of its conditions is on loops of one of the two kinds.
    check_level, simplify_trivial_iterators : as in `detect_iter_map`.

    Returns
    -------
    A pair of outer and inner IterSumExpr for each index, and then the conditions on outer and on
    inner loops. Empty if the indices cannot be divided.

    >>> i, j = tvm.tir.Var("i", "int32"), tvm.tir.Var("j", "int32")
    >>> ranges = {i: tvm.ir.Range(0, 8), j: tvm.ir.Range(0, 16)}
    >>> divided = tvm.arith.subspace_divide([i * 16 + j], ranges, [j])
    >>> [str(part) for part in divided[0]]
    ['i', 'j']
    """
    level = IterMapLevel.from_str(check_level) if isinstance(check_level, str) else check_level
    conditions = _conditions(predicate, list(sub_iters))
    found = detect_iter_map(bindings, input_iters, True, level, simplify_trivial_iterators)
    if conditions is None or len(found.errors):
        return []
    divider = _Divider(list(sub_iters))
    try:
        pairs = [divider.sum(total) for total in found.indices]
    except _Mixed:
        return []
    return [*pairs, conditions]


def _loops_in(expr: Any) -> list[Any]:
    found: list[Any] = []
    tvm.tir.stmt_functor.post_order_visit(
        expr, lambda node: found.append(node) if isinstance(node, tvm.tir.Var) else None
    )
    return found


def _kinds(expr: Any, inner: list[Any]) -> set[bool]:
    """Whether loops in an expression are inner ones: of both kinds, of one or of none."""
    return {any(loop.same_as(own) for own in inner) for loop in _loops_in(expr)}


def _conditions(predicate: Any, inner: list[Any]) -> list[PrimExpr] | None:
    """Conditions on outer and on inner loops; None if one is on both."""
    parts: dict[bool, list[PrimExpr]] = {False: [], True: []}
    todo = [Analyzer().simplify(convert(predicate))]
    while todo:
        part = todo.pop()
        if isinstance(part, tvm.tir.And):
            todo += [part.b, part.a]
            continue
        kinds = _kinds(part, inner)
        if len(kinds) > 1:
            return None
        parts[True in kinds].append(part)
    true = tvm.tir.const(True, "bool")
    return [tvm.tir.all(*parts[kind]) if parts[kind] else true for kind in (False, True)]


class _Divider:
    """Divides sums between outer and inner loops; sizes may be expressions."""

    def __init__(self, inner: list[Any]) -> None:
        self.inner = inner
        self.analyzer = Analyzer()

    def divides(self, d: PrimExpr, n: PrimExpr) -> bool:
        return self.analyzer.can_prove_equal(tvm.tir.floormod(n, d), 0)

    def quotient(self, n: PrimExpr, d: PrimExpr) -> PrimExpr:
        if not self.divides(d, n):
            raise _Mixed
        return self.analyzer.simplify(tvm.tir.floordiv(n, d))

    def product(self, *factors: PrimExpr) -> PrimExpr:
        return self.analyzer.simplify(reduce(mul, factors))

    def sum(self, total: IterSumExpr) -> list[PrimExpr]:
        zero = tvm.tir.const(0, total.dtype)
        if len(total.args) == 0:
            return [IterSumExpr([], zero), total]
        outer_part, inner_part, _ = self.split(total.args[0])
        both = outer_part is not None and inner_part is not None
        if both and not self.analyzer.can_prove_equal(total.args[0].scale, 1):
            raise _Mixed
        # What does not move with any loop goes with the inner ones, if there are any.
        bases = (total.base, zero) if inner_part is None else (zero, total.base)
        parts = (outer_part, inner_part)
        return [
            IterSumExpr([] if part is None else [part], base) for part, base in zip(parts, bases)
        ]

    def split(
        self, split: IterSplitExpr
    ) -> tuple[IterSplitExpr | None, IterSplitExpr | None, PrimExpr]:
        """Outer digits and inner digits of a split, and how many values the inner ones have."""
        one = tvm.tir.const(1, split.dtype)
        kinds = _kinds(_ffi_api.NormalizeIterMapToExpr(split), self.inner)
        lower, extent, scale = split.lower_factor, split.extent, split.scale
        if len(kinds) < 2:
            return (None, split, extent) if True in kinds else (split, None, one)
        outer_mark, inner_mark, below = self.mark(split.source)
        # The iterator is outer * below + inner, and the split may begin and end on either side.
        if self.divides(below, lower):
            return IterSplitExpr(outer_mark, self.quotient(lower, below), extent, scale), None, one
        inside = self.quotient(below, lower)
        if self.divides(extent, inside):
            return None, IterSplitExpr(inner_mark, lower, extent, scale), extent
        above = IterSplitExpr(outer_mark, one, self.quotient(extent, inside), one)
        return above, IterSplitExpr(inner_mark, lower, inside, scale), inside

    def mark(self, mark: IterMark) -> tuple[IterMark, IterMark, PrimExpr]:
        """Iterators of the high digits, of outer loops, and of the low digits, of inner loops."""
        one = tvm.tir.const(1, mark.source.dtype)
        # The source of a fused iterator has its highest digit first.
        parts = list(reversed(mark.source.args))
        whole = self.product(one, *(part.extent for part in parts))
        moved = not self.analyzer.can_prove_equal(mark.source.base, 0)
        if moved or not self.analyzer.can_prove_equal(whole, mark.extent):
            raise _Mixed  # A predicate leaves out an end, or it is longer than what runs.
        high: list[IterSplitExpr] = []
        low: list[IterSplitExpr] = []
        below = one
        for part in parts:
            above, inside, count = self.split(part)
            if inside is not None and high:
                raise _Mixed
            if inside is not None:
                low.append(_scaled(inside, part.scale))
                below = self.product(below, count)
            if above is not None:
                high.append(_scaled(above, self.quotient(self.product(part.scale, count), below)))
        outer = IterMark(_fused(high, mark), self.quotient(mark.extent, below))
        return outer, IterMark(_fused(low, mark), below), below


def _fused(parts: list[IterSplitExpr], mark: IterMark) -> IterSumExpr:
    return IterSumExpr(parts[::-1], tvm.tir.const(0, mark.source.dtype))


def _scaled(split: IterSplitExpr, scale: PrimExpr) -> IterSplitExpr:
    return IterSplitExpr(split.source, split.lower_factor, split.extent, scale)
