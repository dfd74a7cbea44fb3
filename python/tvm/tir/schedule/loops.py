"""Primitives that change the loops around blocks: split, fuse, reorder."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir import PrimExpr

from ..expr import Var, const
from ..stmt import ForKind
from .access import BlockKind, access, kind_of, vars_of
from .facts import analyzer_at, as_int, order_error
from .tree import BlockNode, FuncTree, Leaf, Loop, is_const, replace_vars, unique_name

__all__ = ["constant_extent", "fuse", "nest", "new_loop", "reorder", "split", "tidy"]


def new_loop(taken: set[str], name: str, like: PrimExpr, extent: PrimExpr | int) -> Loop:
    """A serial loop from zero on, with nothing in it; its name is `taken` from now on."""
    var = Var(unique_name(name, taken), like.dtype)
    taken.add(str(var.name_hint))
    size = const(extent, var.dtype) if isinstance(extent, int) else extent
    return Loop(var, const(0, var.dtype), size, [])


def nest(loops: Sequence[Loop], inner: list) -> Loop:
    """The loops around `inner`, outermost first; what they hold is replaced."""
    for loop, body in zip(loops, [[loop] for loop in loops[1:]] + [inner]):
        loop.children = []
        for child in body:
            loop.insert(len(loop.children), child)
    return loops[0]


def split(
    tree: FuncTree,
    loop: Loop,
    factors: Sequence[int | PrimExpr | None],
    preserve_unit_iters: bool,
    disable_predication: bool,
) -> list[Loop]:
    """Loops of the given extents in the place of one; None stands for what is left."""
    if loop.kind is not ForKind.SERIAL or loop.annotations:
        raise ScheduleError(
            f"loop {loop.name} has a kind or annotations already, which its parts cannot all have; "
            "split first, then mark the parts"
        )
    analyzer = analyzer_at(loop)
    extents, exact = _extents(loop, factors, analyzer)
    if not exact and disable_predication:
        raise ScheduleError(
            f"factors {list(factors)} do not provably multiply to the extent {loop.extent} of loop "
            f"{loop.name}, so the parts need a predicate; leave disable_predication=False"
        )
    parts: list[Loop] = []
    taken = tree.loop_names()
    for i, extent in enumerate(extents):
        parts.append(new_loop(taken, f"{loop.name}_{i}", loop.var, extent))
    value: PrimExpr = const(0, loop.var.dtype)
    for part in parts:
        skipped = part.is_unit() and not preserve_unit_iters
        value = value * part.extent + (0 if skipped else part.var)
    assert loop.parent is not None
    _retarget(tree, {loop.var: frozenset(part.var for part in parts)})
    loop.parent.replace(loop, nest(parts, loop.children))
    bound = [] if exact else [value < loop.extent]
    _substitute(parts[-1], {loop.var: loop.min + value}, bound)
    return parts


def _extents(
    loop: Loop, factors: Sequence[int | PrimExpr | None], analyzer: Analyzer
) -> tuple[list[PrimExpr], bool]:
    """Extents of the parts, and whether they multiply to that of the loop for sure."""
    if not factors:
        raise ScheduleError(f"no factors for loop {loop.name}; give at least one")
    sizes: list[PrimExpr | None] = []
    for factor in factors:
        size = const(factor, loop.var.dtype) if isinstance(factor, int) else factor
        if size is not None and not analyzer.can_prove(size >= 1):
            raise ScheduleError(f"factor {factor} for loop {loop.name}: extents are at least 1")
        sizes.append(size)
    if sizes.count(None) > 1:
        raise ScheduleError(
            f"factors {list(factors)} for loop {loop.name}: at most one can be left to be inferred"
        )
    _require_fit(loop, [size for size in sizes if size is not None])
    product = const(1, loop.var.dtype)
    for size in sizes:
        product = product if size is None else analyzer.simplify(product * size)
    if None in sizes:
        rest = analyzer.simplify((loop.extent + product - 1) // product)
        sizes[sizes.index(None)] = rest
        product = analyzer.simplify(product * rest)
    elif not analyzer.can_prove(product >= loop.extent):
        raise ScheduleError(
            f"factors {list(factors)} multiply to {product}, which is less than the extent "
            f"{loop.extent} of loop {loop.name}; give None for one of them to have it inferred"
        )
    done = [size for size in sizes if size is not None]
    return done, analyzer.can_prove_equal(product, loop.extent)


def _require_fit(loop: Loop, extents: Sequence[PrimExpr]) -> None:
    """Refuse extents whose product is no number of the type of the loop's variable."""
    bits = int(str(loop.var.dtype).removeprefix("u").removeprefix("int"))
    product = math.prod(as_int(extent) or 1 for extent in extents)
    if product >= 1 << (bits - 1):
        raise ScheduleError(
            f"the extents {list(extents)} multiply to {product}, which {loop.var.dtype} cannot "
            "hold; declare sizes of int64"
        )


def _retarget(tree: FuncTree, parts: dict[Var, frozenset[Var]]) -> None:
    """Where a loop had to stand still, those in its place have to."""
    for block in tree.root.blocks():
        old = block.given & set(parts)
        if old:
            block.given = (block.given - old).union(*(parts[var] for var in old))


def _substitute(top: Loop, values: dict[Var, PrimExpr], conditions: list[PrimExpr]) -> None:
    """Put `values` in below `top`, and run the blocks there only if `conditions` hold."""
    replace_vars(top, values)
    for child in units_below(top):
        if not conditions and not isinstance(child, BlockNode):
            continue
        if not isinstance(child, BlockNode):
            raise ScheduleError(
                f"below loop {top.name} is a statement outside of blocks, which cannot have a "
                "predicate; split by factors that multiply to the extent"
            )
        child.predicate = child.predicate + conditions
        tidy(child)


def tidy(block: BlockNode) -> None:
    """Simplify the values and the predicate of a block; loops of one iteration stay in them."""
    analyzer = analyzer_at(block, fold_unit_loops=False)
    block.iter_values = [analyzer.simplify(value) for value in block.iter_values]
    conditions = [analyzer.simplify(condition) for condition in block.predicate]
    # Several steps may have asked for the same.
    by_text = {str(c): c for c in conditions if not is_const(c, 1)}
    block.predicate = list(by_text.values())


def units_below(node: Loop) -> list[BlockNode | Leaf]:
    """Blocks and statements with only loops between them and `node`."""
    found: list[BlockNode | Leaf] = []
    for child in node.children:
        if isinstance(child, Loop):
            found += units_below(child)
        elif isinstance(child, BlockNode | Leaf):
            found.append(child)
    return found


def _check_chain(loops: Sequence[Loop]) -> list[Loop]:
    """All loops from the outermost to the innermost of those given, if each holds only the next."""
    if len(set(loops)) != len(loops):
        raise ScheduleError("a loop is given twice; name each loop once")
    deepest = max(loops, key=lambda loop: len(loop.loops_above()))
    chain = [*deepest.loops_above(), deepest]
    for loop in loops:
        if loop not in chain:
            raise ScheduleError(
                f"loop {loop.name} is not around {deepest.name}; the loops must be nested in each "
                "other, with nothing beside them"
            )
    chain = chain[min(chain.index(loop) for loop in loops) :]
    for outer in chain[:-1]:
        if len(outer.children) != 1:
            raise ScheduleError(
                f"loop {outer.name} holds more than the next loop, so the loops given are not one "
                "nest; give loops that have nothing beside them"
            )
    return chain


def fuse(tree: FuncTree, loops: Sequence[Loop], preserve_unit_iters: bool) -> Loop:
    """One loop in the place of several directly nested ones."""
    if not loops:
        raise ScheduleError("no loops to fuse; give at least one")
    chain = _check_chain(loops)
    if chain != list(loops):
        names = ", ".join(loop.name for loop in chain)
        raise ScheduleError(
            f"only loops directly inside of each other, given from outermost to innermost, can be "
            f"fused; the nest is {names}. Reorder first"
        )
    for loop in loops:
        if loop.kind is not ForKind.SERIAL or loop.annotations:
            raise ScheduleError(
                f"loop {loop.name} has a kind or annotations already; fuse first, then mark"
            )
        if vars_of(loop.extent) & {other.var for other in loops}:
            raise ScheduleError(
                f"the extent {loop.extent} of loop {loop.name} depends on a loop it is to be fused "
                "with"
            )
        if not is_const(loop.min, 0):
            raise ScheduleError(
                f"loop {loop.name} starts at {loop.min}; only loops from zero on can be fused"
            )
    _require_fit(loops[0], [loop.extent for loop in loops])
    analyzer = analyzer_at(loops[0])
    total = analyzer.simplify(math.prod((loop.extent for loop in loops[1:]), start=loops[0].extent))
    name = "_".join(loop.name for loop in loops) + "_fused"
    fused = new_loop(tree.loop_names(), name, loops[0].var, total)
    values: dict[Var, PrimExpr] = {}
    rest: PrimExpr = fused.var
    for index, loop in reversed(list(enumerate(loops))):
        if loop.is_unit() and not preserve_unit_iters:
            values[loop.var] = loop.min
            continue
        values[loop.var] = rest if index == 0 else rest % loop.extent
        rest = rest // loop.extent
    parent = loops[0].parent
    assert parent is not None
    _retarget(tree, {loop.var: frozenset([fused.var]) for loop in loops})
    inner = loops[-1].children
    parent.replace(loops[0], fused)
    nest([fused], inner)
    _substitute(fused, values, [])
    return fused


def reorder(tree: FuncTree, loops: Sequence[Loop]) -> None:
    """Put nested loops into another order; others between them stay where they are."""
    if not loops:
        raise ScheduleError("no loops to reorder; give at least one")
    chain = _check_chain(loops)
    for loop in chain:
        if (vars_of(loop.extent) | vars_of(loop.min)) & {other.var for other in chain}:
            raise ScheduleError(
                f"the range of loop {loop.name} depends on a loop it is to be reordered with"
            )
    for unit in units_below(chain[-1]):
        _check_reorderable(tree, unit)
    parent, inner = chain[0].parent, chain[-1].children
    assert parent is not None
    wanted = iter(loops)
    order = [next(wanted) if loop in loops else loop for loop in chain]
    slot = parent.index_of(chain[0])
    del parent.children[slot]
    parent.insert(slot, nest(order, inner))
    for block in units_below(order[-1]):
        if isinstance(block, BlockNode) and kind_of(block) is BlockKind.REDUCTION:
            why = order_error(block)
            if why is not None:
                raise ScheduleError(f"block {block.name} would lose its first values: {why}")


def _check_reorderable(tree: FuncTree, unit: BlockNode | Leaf) -> None:
    if isinstance(unit, Leaf):
        raise ScheduleError("below the loops is a statement outside of blocks, whose order counts")
    pinned = [buffer.name for buffer in access(unit).written() if buffer in tree.pinned]
    if pinned or kind_of(unit) is BlockKind.OPAQUE:
        raise ScheduleError(
            f"what block {unit.name} writes depends on the order of its iterations; only blocks "
            "that compute each element from others, or reduce, can be reordered"
        )
    why = order_error(unit) if kind_of(unit) is BlockKind.REDUCTION else None
    if why is not None:
        raise ScheduleError(f"the order of block {unit.name} counts: {why}")


def constant_extent(loop: Loop) -> int:
    """The extent of a loop, which must be a number."""
    extent = as_int(loop.extent)
    if extent is None:
        raise ScheduleError(
            f"the extent {loop.extent} of loop {loop.name} is no constant; bind the size of the "
            "function first"
        )
    return extent
