"""Primitives that make one block of two by putting an expression in the place of a buffer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.error import ScheduleError
from tvm.ir import PrimExpr

from ..analysis import expr_deep_equal
from ..buffer import Buffer
from ..expr import IterVar, Var
from ..stmt import BufferStore, Stmt
from ..stmt_functor import ir_transform, substitute
from .access import BlockKind, access, kind_of
from .compute_at import (
    chooses,
    detach,
    require_all_instances,
    require_own_variables,
    require_sole_writer,
)
from .dataflow import flow_of, position, sees_finished
from .tree import BlockNode, FuncTree, is_const

__all__ = ["compute_inline", "map_loads", "reverse_compute_inline"]


def map_loads(stmt: Stmt, buffer: Buffer, new: Callable[[list[PrimExpr]], Any]) -> Stmt:
    """`stmt` with each load of `buffer` replaced by what `new` gives for its indices."""

    def exchange(load: Any) -> Any:
        return new(list(load.indices)) if load.buffer == buffer else None

    return ir_transform(stmt, None, exchange, ["tir.BufferLoad"])


def _only_store(block: BlockNode) -> BufferStore:
    require_own_variables(block)
    stmt = block.body()
    if kind_of(block) is not BlockKind.COMPLETE or not isinstance(stmt, BufferStore):
        raise ScheduleError(
            f"block {block.name} is not a single store whose value is computed from others; only "
            "such blocks can be inlined"
        )
    return stmt


def _at_own_place(block: BlockNode, indices: list[PrimExpr], buffer: Buffer) -> list[Var | None]:
    """Variables of the block by axis, if `indices` run over the whole buffer one by one."""
    domains: dict[Any, IterVar] = {iv.var: iv for iv in block.spatial()}
    found: list[Var | None] = []
    for index, extent in zip(indices, buffer.shape):
        iv = domains.get(index) if isinstance(index, Var) else None
        if iv is None and is_const(index, 0) and is_const(extent, 1):
            found.append(None)
            continue
        if (
            iv is None
            or iv.var in found
            or not is_const(iv.dom.min, 0)
            or not expr_deep_equal(iv.dom.extent, extent)
        ):
            raise ScheduleError(
                f"block {block.name} accesses {buffer.name} at {index}, which is no variable of "
                "the block that runs over the whole axis"
            )
        found.append(iv.var)
    return found


def _require_final(tree: FuncTree, block: BlockNode) -> None:
    for read in access(block).read():
        if read in tree.pinned:
            raise ScheduleError(
                f"{read.name}, which block {block.name} reads, does not have one final value, so "
                "the block must read it where it does"
            )


def _require_own(tree: FuncTree, block: BlockNode, buffer: Buffer) -> None:
    if tree.is_param(buffer):
        raise ScheduleError(
            f"block {block.name} writes {buffer.name}, a result of the function, which has to be "
            "written"
        )


def _forget(tree: FuncTree, buffer: Buffer) -> None:
    for block in tree.root.blocks():
        block.alloc_buffers = [other for other in block.alloc_buffers if other != buffer]


def compute_inline(tree: FuncTree, block: BlockNode) -> None:
    """Put what `block` computes into all blocks that read it."""
    store = _only_store(block)
    buffer = store.buffer
    _require_own(tree, block, buffer)
    flows = flow_of(tree)
    require_sole_writer(tree, block, flows)
    require_all_instances(tree, block)
    _require_final(tree, block)
    place = _at_own_place(block, list(store.indices), buffer)
    consumers = [c for c in flows[buffer].readers if isinstance(c, BlockNode)]
    if not consumers:
        raise ScheduleError(f"nothing reads what block {block.name} writes")
    for consumer in consumers:
        if access(consumer).opaque or not consumer.is_leaf():
            raise ScheduleError(
                f"block {consumer.name} reads {buffer.name} in ways that are not all known"
            )

    def value(indices: list[PrimExpr]) -> Any:
        at = {var: index for var, index in zip(place, indices) if var is not None}
        # A variable that is on no axis has one value.
        rest = {iv.var: iv.dom.min for iv in block.iter_vars if iv.var not in at}
        return substitute(store.value, {**at, **rest})

    for consumer in consumers:
        init = None if consumer.init is None else map_loads(consumer.init, buffer, value)
        consumer.set_body(map_loads(consumer.body(), buffer, value), init)
    detach(block)
    _forget(tree, buffer)


def reverse_compute_inline(tree: FuncTree, block: BlockNode) -> None:
    """Let the producer of what `block` reads compute what `block` does, on the spot."""
    store = _only_store(block)
    flows, order = flow_of(tree), position(tree)
    require_sole_writer(tree, block, flows)
    require_all_instances(tree, block)
    _require_final(tree, block)
    sources = [b for b in access(block).read() if flows[b].writers and not tree.is_param(b)]
    sources = [b for b in sources if flows[b].readers == [block]]
    if not sources:
        raise ScheduleError(
            f"block {block.name} reads no buffer that one block writes and no other reads"
        )
    refusals = []
    for buffer in sources:
        writers = flows[buffer].writers
        producer = writers[-1]
        try:
            if len(writers) != 1 or not isinstance(producer, BlockNode):
                raise ScheduleError(f"{buffer.name} is not written by one block")
            made = _only_store(producer)
            place = _place_in(block, buffer)
            _at_own_place(producer, list(made.indices), buffer)
        except ScheduleError as error:
            refusals.append(str(error))
            continue
        late = [b for b in access(block).read() if b != buffer]
        if any(order[w] > order[producer] for b in late for w in flows[b].writers):
            refusals.append(f"block {producer.name} runs before all that {block.name} reads")
            continue
        _merge(block, store, producer, made, buffer, place)
        for other in late:
            for writer in flows[other].writers:
                if isinstance(writer, BlockNode) and not sees_finished(writer, producer, other):
                    raise ScheduleError(f"{other.name} is not finished where {producer.name} runs")
        if kind_of(producer) is not BlockKind.COMPLETE:
            raise ScheduleError(
                f"block {producer.name} would write elements of {store.buffer.name} several times"
            )
        _forget(tree, buffer)
        return
    raise ScheduleError("; ".join(refusals))


def _place_in(block: BlockNode, buffer: Buffer) -> list[Var | None]:
    """Variables by axis at which `block` reads `buffer`, if each instance reads its own element."""
    touches = [touch for touch in access(block).reads if touch.buffer == buffer]
    places = [_at_own_place(block, list(touch.indices), buffer) for touch in touches]
    first = places[0]
    same = all(
        (a is None) == (b is None) and (a is None or a.same_as(b))
        for place in places
        for a, b in zip(first, place)
    )
    left = [iv for iv in block.spatial() if iv.var not in first and not is_const(iv.dom.extent, 1)]
    if not same or left:
        raise ScheduleError(
            f"instances of block {block.name} do not each read one element of {buffer.name} of "
            "their own"
        )
    return first


def _merge(
    block: BlockNode,
    store: BufferStore,
    producer: BlockNode,
    made: BufferStore,
    buffer: Buffer,
    place: list[Var | None],
) -> None:
    if not producer.covers and chooses(block.body()):
        raise ScheduleError(
            f"block {block.name} does not read {buffer.name} in all of its instances, and block "
            f"{producer.name} may not write all of it"
        )
    at: Mapping[Var, PrimExpr] = {
        **{iv.var: iv.dom.min for iv in block.iter_vars},
        **{var: index for var, index in zip(place, made.indices) if var is not None},
    }
    value = map_loads(BufferStore(store.buffer, store.value, store.indices), buffer, _load(made))
    detach(block)
    assert isinstance(value, BufferStore)
    producer.covers = block.covers
    producer.set_body(substitute(value, at))


def _load(made: BufferStore) -> Callable[[list[PrimExpr]], Any]:
    return lambda _: made.value
