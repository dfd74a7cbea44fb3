"""Primitives on reductions: decompose_reduction and rfactor."""

from __future__ import annotations

from tvm.error import ScheduleError
from tvm.ir import PrimExpr

from ..expr import IterVar, Var
from ..stmt import ForKind
from ..stmt_functor import substitute
from .access import BlockKind, access, kind_of, vars_of
from .facts import feeds, order_error
from .loops import nest, tidy
from .tree import BlockNode, FuncTree, Leaf, Loop, unique_name

__all__ = ["decompose_reduction", "fresh_iters", "require_reduction", "twin_loop"]


def require_reduction(tree: FuncTree, block: BlockNode) -> None:
    """Refuse a block that is no reduction with first values, run in an order that keeps them."""
    if kind_of(block) is not BlockKind.REDUCTION or any(
        buffer in tree.pinned for buffer in access(block).written()
    ):
        raise ScheduleError(
            f"block {block.name} is no reduction with an init, of which it is known that the order "
            "of its iterations does not matter"
        )
    why = order_error(block)
    if why is not None:
        raise ScheduleError(f"block {block.name}: {why}")


def twin_loop(loop: Loop, name: str, taken: set[str]) -> Loop:
    """A loop of the same range with another variable; of marks only the threads stay."""
    var = Var(unique_name(name, taken), loop.var.dtype)
    taken.add(str(var.name_hint))
    bound = loop.kind is ForKind.THREAD_BINDING
    kind = ForKind.THREAD_BINDING if bound else ForKind.SERIAL
    return Loop(var, loop.min, loop.extent, [], kind, loop.thread_binding)


def fresh_iters(iters: list[IterVar], suffix: str) -> tuple[list[IterVar], dict[Var, Var]]:
    """Variables of a new block, and what takes the place of which."""
    made = [
        IterVar(iv.dom, Var(f"{iv.var.name_hint}{suffix}", iv.var.dtype), iv.iter_type)
        for iv in iters
    ]
    return made, {old.var: new.var for old, new in zip(iters, made)}


def decompose_reduction(tree: FuncTree, block: BlockNode, loop: Loop) -> BlockNode:
    """Write the first values of a reduction in a block of their own, right before `loop`."""
    require_reduction(tree, block)
    path = block.loops_above()
    if loop not in path:
        raise ScheduleError(
            f"loop {loop.name} is not around block {block.name}; the loops around it are "
            f"{', '.join(item.name for item in path) or 'none'}"
        )
    inside = path[path.index(loop) :]
    fed = feeds(block)
    for outer in path[: path.index(loop)]:
        if outer.var in fed.reducing:
            raise ScheduleError(
                f"loop {outer.name} around {loop.name} feeds the reduction of block {block.name}, "
                f"so the first values would be written again; give loop {outer.name} or one around "
                "it"
            )
    repeated = {item.var for item in inside} & block.given
    if repeated:
        raise ScheduleError(
            f"loop {', '.join(var.name_hint for var in repeated)} inside of {loop.name} runs the "
            f"same elements of block {block.name} again; give a loop inside of it"
        )
    taken = tree.loop_names()
    kept = [item for item in inside if item.var in fed.spatial]
    twins = [twin_loop(item, f"{item.name}_init", taken) for item in kept]
    values: dict[Var, PrimExpr] = {old.var: new.var for old, new in zip(kept, twins)}
    # Unit loops of the reduction are not copied, but may be in an expression.
    values |= {item.var: item.min for item in inside if item not in kept}
    iters, names = fresh_iters(block.spatial(), "_init")
    first = BlockNode(
        unique_name(f"{block.name}_init", tree.block_names()),
        iters,
        [substitute(block.values[iv.var], values) for iv in block.spatial()],
        [Leaf(substitute(block.init, names))],
        None,
        [substitute(c, values) for c in block.predicate if not vars_of(c) & fed.reducing],
    )
    first.given, first.covers, first.total = block.given, block.covers, block.total
    first.find_regions()
    for item in [*twins]:
        item.extent = substitute(item.extent, values)
    parent = loop.parent
    assert parent is not None
    parent.insert(parent.index_of(loop), nest(twins, [first]) if twins else first)
    tidy(first)
    block.name = unique_name(f"{block.name}_update", tree.block_names())
    block.set_body(block.body())
    block.init_block = first
    return first
