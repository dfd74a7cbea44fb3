"""What loops do for a block: which of its variables they feed, and whether instances repeat."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from tvm.arith import Analyzer, IterMapLevel, detect_iter_map, detect_linear_equation
from tvm.ir import PrimExpr

from ..expr import IntImm, Var
from ..op import all as all_of
from ..stmt_functor import substitute
from .access import vars_of
from .tree import BlockNode, Loop, Node

__all__ = [
    "Feeds",
    "analyzer_at",
    "as_int",
    "feeds",
    "find_given",
    "order_error",
    "starts_at_first",
]


def as_int(expr: PrimExpr) -> int | None:
    """The value of an integer literal."""
    return int(expr.value) if isinstance(expr, IntImm) else None


def analyzer_at(node: Node, fold_unit_loops: bool = True) -> Analyzer:
    """An analyzer that knows the ranges of the loops around `node` (and of `node` itself)."""
    analyzer = Analyzer()
    loops = node.loops_above() + ([node] if isinstance(node, Loop) else [])
    for loop in loops:
        if fold_unit_loops or not loop.is_unit():
            analyzer.bind(loop.var, loop.range)
    return analyzer


@dataclass(frozen=True)
class Feeds:
    """Loop variables by what they feed; `mixed` if that cannot be told apart."""

    spatial: frozenset[Var]
    reducing: frozenset[Var]
    mixed: bool


def feeds(block: BlockNode) -> Feeds:
    """Loops that the spatial and those that the reducing variables of a block depend on."""
    loops = {loop.var for loop in block.loops_above() if not loop.is_unit()}
    values = block.values

    def users(iters: list) -> frozenset[Var]:
        return frozenset(var for iv in iters for var in vars_of(values[iv.var]) if var in loops)

    spatial, reducing = users(block.spatial()), users(block.reducing())
    mixed = bool(spatial & reducing)
    for condition in block.predicate:
        used = vars_of(condition) & loops
        mixed |= bool(used & reducing) and not used <= reducing
        mixed |= not used <= spatial | reducing
    return Feeds(spatial, reducing, mixed)


def find_given(block: BlockNode, own: Set[Var] = frozenset()) -> frozenset[Var]:
    """Loops that must be fixed for no instance of `block` to run twice.

    `own` are loops that feed one variable each, one by one, while all others are fixed.
    """
    loops = [loop for loop in block.loops_above() if not loop.is_unit()]
    names = {loop.var for loop in loops}
    used = [vars_of(value) & names for value in block.iter_values]
    idle = names.difference(*used)
    left: list[PrimExpr] = []
    busy: set[Var] = set()
    for i, value in enumerate(block.iter_values):
        alone = not any(used[i] & other for k, other in enumerate(used) if k != i)
        if used[i] and not (alone and _is_injective(value, [x for x in loops if x.var in used[i]])):
            left.append(value)
            busy |= used[i]
    ranges = {loop.var: loop.range for loop in loops if loop.var in busy}
    if left and all(as_int(r.min) is not None and as_int(r.extent) for r in ranges.values()):
        result = detect_iter_map(left, ranges, IterMapLevel.Bijective)
        if not result.errors:
            busy.clear()
    return frozenset(idle | (busy - own))


def _is_injective(value: PrimExpr, loops: list[Loop]) -> bool:
    """Whether `value` is a sum of multiples of loops that reach further than those before."""
    row = list(detect_linear_equation(value, [loop.var for loop in loops]))
    scales = [as_int(scale) for scale in row[:-1]]
    if not row or any(not scale for scale in scales):
        return False
    parts = sorted(zip([abs(s) for s in scales if s], loops), key=lambda part: part[0])
    reach = 1
    for k, (scale, loop) in enumerate(parts):
        extent = as_int(loop.extent)
        # Only the last may be of any length.
        if scale < reach or (extent is None and k + 1 < len(parts)):
            return False
        reach += scale * ((extent or 1) - 1)
    return True


def order_error(block: BlockNode) -> str | None:
    """Why the loops do not run a reduction from its first values on, once; None if they do.

    The init of a block runs where all reducing variables have their first values. That comes before
    all other contributions to an element, and once, if no loop feeds spatial and reducing variables
    alike, and below the first loop that feeds a reducing one no instance repeats.
    """
    fed = feeds(block)
    if fed.mixed:
        return "a loop around it feeds spatial and reducing variables alike"
    below = False
    inside: set[Var] = set()
    for loop in block.loops_above():
        below = below or loop.var in fed.reducing
        if below:
            inside.add(loop.var)
    if inside & block.given:
        names = ", ".join(var.name_hint for var in inside & block.given)
        return f"inside of its reduction, loop {names} would add the same elements again"
    return None


def starts_at_first(block: BlockNode) -> bool:
    """Whether the first iteration of the loops gives reducing variables their first values."""
    first = {loop.var: loop.min for loop in block.loops_above()}
    analyzer = Analyzer()
    values = block.values
    reducing = feeds(block).reducing
    conditions = [c for c in block.predicate if vars_of(c) & reducing]
    return all(
        analyzer.can_prove_equal(substitute(values[iv.var], first), iv.dom.min)
        for iv in block.reducing()
    ) and (not conditions or analyzer.can_prove(substitute(all_of(*conditions), first)))
