"""The primitive that reduces in two steps: first beside each other, then what that gave."""

from __future__ import annotations

from typing import Any

from tvm.error import ScheduleError
from tvm.ir import PrimExpr, Range

from ..analysis import expr_deep_equal
from ..buffer import decl_buffer
from ..expr import (
    Add,
    BufferLoad,
    FloatImm,
    IntImm,
    IterVar,
    Max,
    Min,
    Mul,
    Var,
    const,
)
from ..op import all as all_of
from ..op import max_value, min_value
from ..stmt import BufferStore, IfThenElse, Stmt
from ..stmt_functor import substitute
from .access import vars_of
from .compute_at import require_sole_writer
from .dataflow import flow_of
from .facts import feeds
from .loops import nest, tidy
from .reduction import fresh_iters, require_reduction, twin_loop
from .tree import BlockNode, FuncTree, Leaf, Loop, unique_name

__all__ = ["rfactor"]


def _unwrap(block: BlockNode) -> tuple[BufferStore, list[PrimExpr]]:
    """The update of a reduction of one result, and the conditions around it."""
    stmt = block.body()
    conditions: list[PrimExpr] = []
    while isinstance(stmt, IfThenElse) and stmt.else_case is None:
        conditions.append(stmt.condition)
        stmt = stmt.then_case
    if not isinstance(stmt, BufferStore):
        raise ScheduleError(
            f"block {block.name} has several results or computes them in several statements, of "
            "which rfactor does not know how to combine them; reduce one result"
        )
    return stmt, conditions


def _combined(block: BlockNode, store: BufferStore) -> tuple[type, PrimExpr]:
    """The operator of a reduction, and what it combines into the result so far."""
    value: Any = store.value
    if isinstance(value, Add | Mul | Max | Min):
        for so_far, other in ((value.a, value.b), (value.b, value.a)):
            if (
                isinstance(so_far, BufferLoad)
                and so_far.buffer == store.buffer
                and all(expr_deep_equal(x, y) for x, y in zip(so_far.indices, store.indices))
            ):
                return type(value), other
    raise ScheduleError(
        f"block {block.name} combines by {value}; rfactor knows sums, products, maxima and minima"
    )


def _is_identity(operator: type, first: PrimExpr) -> bool:
    """Whether starting from a value twice is the same as once."""
    if operator in (Max, Min):
        return True
    literal = first.value if isinstance(first, IntImm | FloatImm) else None
    return literal is not None and float(literal) == (0.0 if operator is Add else 1.0)


def _identity(operator: type, dtype: str) -> PrimExpr:
    if operator is Add:
        return const(0, dtype)
    if operator is Mul:
        return const(1, dtype)
    return min_value(dtype) if operator is Max else max_value(dtype)


def rfactor(tree: FuncTree, loop: Loop, factor_axis: int) -> BlockNode:
    """Keep one partial result for each iteration of `loop`, and combine them afterwards."""
    blocks = list(loop.blocks())
    if len(blocks) != 1:
        raise ScheduleError(
            f"loop {loop.name} is around {len(blocks)} blocks; rfactor needs a loop around one"
        )
    block = blocks[0]
    require_reduction(tree, block)
    require_sole_writer(tree, block, flow_of(tree))
    fed = feeds(block)
    if loop.var not in fed.reducing:
        raise ScheduleError(
            f"loop {loop.name} does not feed the reduction of block {block.name}; those that do "
            f"are {', '.join(sorted(str(v.name_hint) for v in fed.reducing)) or 'none'}"
        )
    store, guards = _unwrap(block)
    operator, source = _combined(block, store)
    init = block.init
    if not isinstance(init, BufferStore) or not _is_identity(operator, init.value):
        raise ScheduleError(
            f"the first value of block {block.name} is not neutral, so it cannot start several "
            "partial results"
        )
    rank = len(store.indices)
    if not -rank - 1 <= factor_axis <= rank:
        raise ScheduleError(
            f"{store.buffer.name} has {rank} axes, so factor_axis is from {-rank - 1} to {rank}, "
            f"got {factor_axis}"
        )
    axis = factor_axis + rank + 1 if factor_axis < 0 else factor_axis
    path = block.loops_above()
    top = _top_of_nest(loop)
    inside = path[path.index(top) :]
    if not fed.reducing <= {item.var for item in inside}:
        raise ScheduleError(
            f"a loop of the reduction of block {block.name} is around other blocks too, in each "
            "iteration of which its result would start anew"
        )
    if any(item.var in block.given for item in inside):
        raise ScheduleError(
            f"a loop around block {block.name} runs its elements again; rfactor needs each once"
        )

    # Partial results: every loop of the reduction but `loop` is a variable of its own.
    taken = {str(b.name) for owner in tree.root.blocks() for b in owner.alloc_buffers}
    taken |= {str(b.name) for b in tree.params()}
    shape = list(store.buffer.shape)
    shape.insert(axis, loop.extent)
    name = unique_name(f"{store.buffer.name}_rf", taken)
    partial = decl_buffer(shape, str(store.buffer.dtype), name, scope=str(store.buffer.scope or ""))
    kept, kept_names = fresh_iters(block.spatial(), "")
    lane = IterVar(loop.range, Var(f"v{loop.name}", loop.var.dtype), IterVar.DataPar)
    rest = [item for item in path if item.var in fed.reducing and item is not loop]
    steps = [
        IterVar(item.range, Var(f"v{item.name}", item.var.dtype), IterVar.CommReduce)
        for item in rest
    ]
    inner = {item.var: iv.var for item, iv in zip(rest, steps)} | {loop.var: lane.var}
    units = {item.var: item.min for item in path if item.is_unit() and item.var not in inner}
    values: dict[Var, PrimExpr] = dict(kept_names)
    for iv in block.reducing():
        values[iv.var] = substitute(substitute(block.values[iv.var], units), inner)
    guards = [substitute(guard, values) for guard in guards]
    guards += [substitute(c, inner) for c in block.predicate if vars_of(c) & fed.reducing]
    place = [substitute(index, values) for index in store.indices]
    place.insert(axis, lane.var - loop.min)
    update: Stmt = BufferStore(
        partial, operator(BufferLoad(partial, place), substitute(source, values)), place
    )
    if guards:
        update = IfThenElse(all_of(*guards), update)
    outer = [c for c in block.predicate if not vars_of(c) & fed.reducing]
    first = BlockNode(
        unique_name(f"{block.name}_rf", tree.block_names()),
        [*kept, lane, *steps],
        [block.values[iv.var] for iv in block.spatial()] + [loop.var] + [item.var for item in rest],
        [Leaf(update)],
        BufferStore(partial, _identity(operator, str(partial.dtype)), place),
        outer,
    )
    first.given, first.covers, first.total = block.given, block.covers, block.total
    first.find_regions()

    # Their combination: the block itself, with loops of its own behind the nest.
    names = tree.loop_names()
    spatial = [item for item in inside if item.var in fed.spatial]
    twins = [twin_loop(item, item.name, names) for item in spatial]
    again = twin_loop(loop, loop.name, names)
    moved: dict[Var, PrimExpr] = {old.var: new.var for old, new in zip(spatial, twins)}
    moved |= {item.var: item.min for item in inside if item not in spatial and item is not loop}
    own, own_names = fresh_iters(block.spatial(), "")
    step = IterVar(
        Range.from_min_extent(loop.min, loop.extent),
        Var(f"v{loop.name}", loop.var.dtype),
        IterVar.CommReduce,
    )
    at = [substitute(index, own_names) for index in store.indices]
    read = list(at)
    read.insert(axis, step.var - loop.min)
    block.parent.replace(block, first)  # type: ignore[union-attr]
    block.parent = None
    block.iter_values = [substitute(block.values[iv.var], moved) for iv in block.spatial()] + [
        again.var
    ]
    block.iter_vars = [*own, step]
    block.predicate = [substitute(c, moved) for c in outer]
    for item in twins:
        item.extent = substitute(item.extent, moved)
    start = substitute(init, own_names)
    block.set_body(
        BufferStore(
            store.buffer, operator(BufferLoad(store.buffer, at), BufferLoad(partial, read)), at
        ),
        start,
    )
    behind = nest([*twins, again], [block])
    parent = top.parent
    assert parent is not None
    parent.insert(parent.index_of(top) + 1, behind)
    tree.allocate(partial)
    tidy(first)
    tidy(block)
    return first


def _top_of_nest(loop: Loop) -> Loop:
    """The outermost loop that holds nothing but the nest of `loop`."""
    while isinstance(loop.parent, Loop) and len(loop.parent.children) == 1:
        loop = loop.parent
    return loop
