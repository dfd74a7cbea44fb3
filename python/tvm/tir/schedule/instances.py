"""Which instances of a block the loops around it run: all, and no others."""

from __future__ import annotations

import math
from contextlib import ExitStack

from tvm.arith import Analyzer
from tvm.ir import PrimExpr

from ..stmt_functor import substitute
from .access import vars_of
from .facts import analyzer_at, as_int, find_given
from .regions import contiguous, linear
from .tree import BlockNode, Loop

__all__ = ["runs_all", "stays_inside"]


def _inside(block: BlockNode) -> list[PrimExpr]:
    """Conditions that say that the block's values are in their domains."""
    bounds: list[PrimExpr] = []
    for iv, value in zip(block.iter_vars, block.iter_values):
        bounds += [value >= iv.dom.min, value < iv.dom.min + iv.dom.extent]
    return bounds


def _follow(analyzer: Analyzer, facts: list[PrimExpr], claims: list[PrimExpr]) -> bool:
    with ExitStack() as stack:
        for fact in facts:
            stack.enter_context(analyzer.constraint_scope(fact))
        return all(analyzer.can_prove(claim) for claim in claims)


def stays_inside(block: BlockNode) -> bool:
    """Whether the values of a block are in the domains it declares, where its predicate holds."""
    return _follow(analyzer_at(block), block.predicate, _inside(block))


def runs_all(block: BlockNode) -> bool:
    """Whether it can be shown that the loops run every instance of `block`."""
    if not _follow(analyzer_at(block), _inside(block), block.predicate):
        # The predicate does more than to keep values in their domains.
        return False
    loops = [loop for loop in block.loops_above() if not loop.is_unit()]
    return _reaches_all_alone(block, loops) or _reaches_all_together(block, loops)


def _reaches_all_alone(block: BlockNode, loops: list[Loop]) -> bool:
    """Whether each value runs over its domain by loops of its own."""
    analyzer = Analyzer()
    units = {loop.var: loop.min for loop in block.loops_above() if loop.is_unit()}
    values = [substitute(value, units) for value in block.iter_values]
    used = [vars_of(value) for value in values]
    for i, (iv, value) in enumerate(zip(block.iter_vars, values)):
        if any(used[i] & other for k, other in enumerate(used) if k != i):
            return False
        mine = [loop for loop in loops if loop.var in used[i]]
        row = linear(value, mine)
        span = None if row is None else contiguous(row, mine, analyzer)
        if span is None:
            return False
        last = iv.dom.min + iv.dom.extent - 1
        if not (
            analyzer.can_prove(span.low <= iv.dom.min) and analyzer.can_prove(last <= span.high)
        ):
            return False
    return True


def _reaches_all_together(block: BlockNode, loops: list[Loop]) -> bool:
    """Whether as many different instances run as there are."""
    if block.predicate or find_given(block) - {loop.var for loop in _idle(block, loops)}:
        return False
    busy = [as_int(loop.extent) for loop in loops if loop not in _idle(block, loops)]
    wanted = [as_int(iv.dom.extent) for iv in block.iter_vars]
    if None in busy or None in wanted:
        return False
    return math.prod(n for n in busy if n) == math.prod(n for n in wanted if n)


def _idle(block: BlockNode, loops: list[Loop]) -> list[Loop]:
    used = {var for value in block.iter_values for var in vars_of(value)}
    return [loop for loop in loops if loop.var not in used]
