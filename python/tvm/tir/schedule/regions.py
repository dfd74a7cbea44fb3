"""Boxes of elements that a block touches while some of the loops around it stand still."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

from tvm.arith import Analyzer, IntervalSet, detect_linear_equation, eval_set, neg_inf, pos_inf
from tvm.ir import PrimExpr

from ..buffer import Buffer
from ..expr import EQ, GE, GT, LE, LT, IterVar, Var, const
from ..stmt_functor import substitute
from .access import Touch, access, reads_memory, vars_of
from .facts import as_int, feeds
from .tree import BlockNode, Loop

__all__ = ["Box", "Span", "box_covers", "contiguous", "exact_box", "linear", "read_spans"]


@dataclass(frozen=True)
class Span:
    """The integers ``low .. low + extent - 1``; all of an axis if `whole`."""

    low: PrimExpr
    extent: PrimExpr
    whole: bool = False

    @property
    def high(self) -> PrimExpr:
        """The last of them."""
        return self.low + self.extent - 1


@dataclass
class Box:
    """Elements ``axes[d]`` with ``spans[d]`` for which `conditions` hold, and no others."""

    axes: list[Var]
    spans: list[Span]
    conditions: list[PrimExpr] = field(default_factory=list)


def _touches(block: BlockNode, buffer: Buffer, write: bool) -> list[Touch] | None:
    """Accesses of `buffer` in terms of loops; None if they are not all known."""
    found = access(block)
    if found.opaque or not block.is_leaf():
        return None
    values = block.values
    return [
        Touch(buffer, tuple(substitute(index, values) for index in touch.indices))
        for touch in (found.writes if write else found.reads)
        if touch.buffer == buffer
    ]


def _whole(buffer: Buffer) -> list[Span]:
    return [Span(const(0, extent.dtype), extent, True) for extent in buffer.shape]


def read_spans(block: BlockNode, buffer: Buffer, free: list[Loop], analyzer: Analyzer) -> list:
    """Boxes around all that `block` reads of `buffer` while the loops `free` run; one per read.

    `free` are loops around the block; others count as fixed. `analyzer` knows the fixed ones.
    """
    touches = _touches(block, buffer, write=False)
    if touches is None:
        return [_whole(buffer)]
    fixed = {loop.var for loop in block.loops_above()} - {loop.var for loop in free}
    moving = {loop.var: _values(loop) for loop in free}
    boxes = []
    for touch in touches:
        spans = []
        for index, extent in zip(touch.indices, buffer.shape):
            span = Span(const(0, extent.dtype), extent, True)
            known = vars_of(index) <= fixed | set(moving) and not reads_memory(index)
            found = eval_set(index, moving) if known else IntervalSet.everything()
            if isinstance(found, IntervalSet):
                ends = vars_of(found.min_value) | vars_of(found.max_value)
                infinite = {neg_inf(), pos_inf()} & ({found.min_value, found.max_value} | ends)
                if not infinite and ends <= fixed:
                    low = analyzer.simplify(found.min_value)
                    span = Span(low, analyzer.simplify(found.max_value - low + 1))
            spans.append(span)
        boxes.append(spans)
    return boxes


def _values(loop: Loop) -> IntervalSet:
    return IntervalSet(loop.min, loop.min + loop.extent - 1)


def exact_box(block: BlockNode, buffer: Buffer, free: list[Loop], analyzer: Analyzer) -> Box | None:
    """Exactly what `block` writes of `buffer` while the loops `free` run; None if not known."""
    touches = _touches(block, buffer, write=True)
    if not touches:
        return None
    # Loops of one iteration do not move.
    fixed = {loop.var: loop.min for loop in free if loop.is_unit()}
    place = [substitute(index, fixed) for index in touches[0].indices]
    free = [loop for loop in free if not loop.is_unit()]
    moving = {loop.var for loop in free}
    axes = [Var(f"x{d}", index.dtype) for d, index in enumerate(place)]
    rows = [linear(index, free) for index in place]
    by_axis = [vars_of(index) & moving for index in place]
    mingled = [
        any(mine & other for e, other in enumerate(by_axis) if e != d)
        for d, mine in enumerate(by_axis)
    ]
    spans: list[Span] = []
    full: set[Var] = set()
    for d, index in enumerate(place):
        row = rows[d]
        span = None if row is None or mingled[d] else contiguous(row, free, analyzer)
        if span is None:
            dom = _full_domain(block, buffer, d, moving)
            if dom is None:
                return None
            span = Span(dom.dom.min, dom.dom.extent)
            full |= vars_of(index)
        spans.append(span)
    box = Box(axes, spans)
    idle = moving & feeds(block).reducing
    for condition in (substitute(c, fixed) for c in block.predicate):
        used = vars_of(condition) & moving
        if not used:
            box.conditions.append(condition)
        elif used <= full or used <= idle:
            # All instances run: the condition is about how, not about which.
            continue
        else:
            found = _on_axis(condition, free, rows, axes)
            if found is None:
                return None
            box.conditions.append(analyzer.simplify(found))
    return box


def linear(expr: PrimExpr, loops: list[Loop]) -> list[PrimExpr] | None:
    """Coefficients of the loops, and the rest; None if there are none."""
    row = list(detect_linear_equation(expr, [loop.var for loop in loops])) if loops else [expr]
    return row or None


def contiguous(row: list[PrimExpr], loops: list[Loop], analyzer: Analyzer) -> Span | None:
    """The values of a linear expression, if these are all the integers of an interval."""
    low: Any = row[-1]
    parts: list[tuple[int, Loop]] = []
    for coefficient, loop in zip(row, loops):
        scale = as_int(analyzer.simplify(coefficient))
        if scale is None or scale < 0:
            return None
        if scale > 0:
            parts.append((scale, loop))
            low = low + loop.min * scale
    low = analyzer.simplify(low)
    parts.sort(key=lambda part: part[0])
    reach = 1
    for k, (scale, loop) in enumerate(parts):
        extent = as_int(loop.extent)
        if scale > reach or (extent is not None and extent < 1):
            return None
        if extent is not None:
            reach += scale * (extent - 1)
        elif k + 1 == len(parts):
            # Only the last may be of any length.
            return Span(low, analyzer.simplify(loop.extent * scale + (reach - scale)))
        else:
            return None
    return Span(low, const(reach, low.dtype))


def _full_domain(block: BlockNode, buffer: Buffer, d: int, moving: Set[Var]) -> IterVar | None:
    """The variable whose whole domain is on axis `d`, if the loops that move reach all of it."""
    if not block.covers:
        return None
    index = next(t for t in access(block).writes if t.buffer == buffer).indices[d]
    found = next((iv for iv in block.spatial() if iv.var.same_as(index)), None)
    if found is None:
        return None
    # Loops that share a variable of the block, or a condition, move together.
    group = vars_of(block.values[found.var])
    loops = {loop.var for loop in block.loops_above() if not loop.is_unit()}
    parts = [vars_of(e) & loops for e in [*block.iter_values, *block.predicate]]
    grown = True
    while grown:
        wider = group.union(*(part for part in parts if part & group))
        grown = wider != group
        group = wider
    return found if group & loops <= moving else None


def _on_axis(
    condition: PrimExpr, loops: list[Loop], rows: list[list[PrimExpr] | None], axes: list[Var]
) -> PrimExpr | None:
    """A condition on loops as one on the index of an axis; None if it is none."""
    if not isinstance(condition, LT | LE | GT | GE | EQ):
        return None
    wanted = linear(condition.a - condition.b, loops)
    if wanted is None:
        return None
    numbers = _integers(wanted[:-1])
    for row, axis in zip(rows, axes):
        scales = None if row is None else _integers(row[:-1])
        if row is None or scales is None or numbers is None or not any(scales):
            continue
        first = next(i for i, scale in enumerate(scales) if scale)
        factor, rest = divmod(numbers[first], scales[first])
        if rest or factor == 0 or any(n != factor * s for n, s in zip(numbers, scales)):
            continue
        # condition.a - condition.b = factor * (axis - the rest of its row) + the rest of wanted
        value = (axis - row[-1]) * factor + wanted[-1]
        return type(condition)(value, const(0, value.dtype))
    return None


def _integers(exprs: list[PrimExpr]) -> list[int] | None:
    values = [as_int(expr) for expr in exprs]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def box_covers(box: Box, spans: list[Span], shape: list[PrimExpr], analyzer: Analyzer) -> bool:
    """Whether elements that lie in `spans` and in the buffer are in `box`."""

    def holds(condition: Any) -> bool:
        return analyzer.can_prove(condition)

    for d, (axis, have, need) in enumerate(zip(box.axes, box.spans, spans)):
        end = const(0, axis.dtype) + shape[d] - 1
        if not (holds(have.low <= need.low) or holds(have.low <= 0)):
            return False
        if not (holds(need.high <= have.high) or holds(end <= have.high)):
            return False
        for condition in box.conditions:
            if axis not in vars_of(condition):
                continue
            for near, far in ((need.low, const(0, axis.dtype)), (need.high, end)):
                # Linear in the axis, so what holds at both ends holds between.
                if not any(holds(substitute(condition, {axis: at})) for at in (near, far)):
                    return False
    return all(holds(c) for c in box.conditions if not vars_of(c) & set(box.axes))
