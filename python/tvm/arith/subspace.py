"""Indices of a loop nest divided between outer loops and the inner ones of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import tvm
from tvm.ir import PrimExpr, Range
from tvm.runtime import convert

from . import _ffi_api
from .analyzer import Analyzer
from .iter_affine_map import IterMapLevel, IterSplitExpr, IterSumExpr, detect_iter_map

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
    input_iters : ranges of the loop variables, with constant extents.
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
    try:
        pairs = [_divide_sum(total, list(sub_iters)) for total in found.indices]
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


def _divide_sum(total: IterSumExpr, inner: list[Any]) -> list[PrimExpr]:
    zero = tvm.tir.const(0, total.dtype)
    if len(total.args) == 0:
        return [_sum([], zero), total]
    outer_part, inner_part, _ = _divide(total.args[0], inner)
    if outer_part is not None and inner_part is not None and int(total.args[0].scale) != 1:
        raise _Mixed
    # What does not move with any loop goes with the inner ones, if there are any.
    bases = (total.base, zero) if inner_part is None else (zero, total.base)
    parts = (outer_part, inner_part)
    return [_sum([] if part is None else [part], base) for part, base in zip(parts, bases)]


def _sum(args: list[IterSplitExpr], base: PrimExpr) -> PrimExpr:
    return _ffi_api.IterSumExpr(args, base)


def _split(mark: Any, lower: int, extent: int, scale: int, dtype: str) -> IterSplitExpr:
    return _ffi_api.IterSplitExpr(mark, lower, extent, scale, dtype)


def _divide(
    split: IterSplitExpr, inner: list[Any]
) -> tuple[IterSplitExpr | None, IterSplitExpr | None, int]:
    """Outer digits and inner digits of a split, and how many values the inner ones have."""
    kinds = _kinds(_ffi_api.NormalizeIterMapToExpr(split), inner)
    lower, extent = int(split.lower_factor), int(split.extent)
    if len(kinds) < 2:
        return (None, split, extent) if True in kinds else (split, None, 1)
    outer_mark, inner_mark, below = _divide_mark(split.source, inner)
    dtype = str(split.dtype)
    scale = int(split.scale)
    # The iterator is outer * below + inner, and the split may begin and end on either side.
    if lower >= below:
        if lower % below:
            raise _Mixed
        return _split(outer_mark, lower // below, extent, scale, dtype), None, 1
    if below % lower:
        raise _Mixed
    if lower * extent <= below:
        if below % (lower * extent):
            raise _Mixed
        return None, _split(inner_mark, lower, extent, scale, dtype), extent
    inside = below // lower
    if extent % inside:
        raise _Mixed
    above = _split(outer_mark, 1, extent // inside, 1, dtype)
    return above, _split(inner_mark, lower, inside, scale, dtype), inside


def _divide_mark(mark: Any, inner: list[Any]) -> tuple[Any, Any, int]:
    """Iterators of the high digits, of outer loops, and of the low digits, of inner loops."""
    parts = sorted(mark.source.args, key=lambda split: int(split.scale))
    if prod(int(part.extent) for part in parts) != int(mark.extent):
        raise _Mixed  # A predicate leaves out the end.
    high: list[IterSplitExpr] = []
    low: list[IterSplitExpr] = []
    below = 1
    for part in parts:
        above, inside, count = _divide(part, inner)
        if inside is not None and high:
            raise _Mixed
        if inside is not None:
            low.append(_scaled(inside, int(part.scale)))
            below *= count
        if above is not None:
            high.append(_scaled(above, int(part.scale) * count // below))
    zero = tvm.tir.const(0, mark.source.dtype)
    total = int(mark.extent) // below
    outer = _ffi_api.IterMark(_sum(high, zero), total)
    return outer, _ffi_api.IterMark(_sum(low, zero), below), below


def _scaled(split: IterSplitExpr, scale: int) -> IterSplitExpr:
    lower, extent = int(split.lower_factor), int(split.extent)
    return _split(split.source, lower, extent, scale, str(split.dtype))
