"""Primitives that move a block under a loop of its consumers or of its producers."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir import PrimExpr

from ..analysis import undefined_vars
from ..buffer import Buffer
from ..expr import Call, IterVar, Select, Var, const
from ..op import max as max_of
from ..op import min as min_of
from ..stmt import Stmt
from ..stmt_functor import post_order_visit, substitute
from .access import BlockKind, access, kind_of, vars_of
from .dataflow import Flow, flow_of, position, sees_finished
from .facts import analyzer_at, as_int, feeds, find_given, order_error
from .loops import nest, new_loop, tidy
from .regions import Span, exact_box, read_spans
from .tree import BlockNode, FuncTree, Loop, Node

__all__ = [
    "chooses",
    "compute_at",
    "detach",
    "require_all_instances",
    "require_own_variables",
    "require_sole_writer",
    "reverse_compute_at",
]


def detach(node: Node) -> None:
    """Take a node out of the tree, and the loops that hold nothing without it."""
    parent = node.parent
    assert parent is not None
    parent.children.remove(node)
    node.parent = None
    if isinstance(parent, Loop) and not parent.children:
        detach(parent)


def require_sole_writer(tree: FuncTree, block: BlockNode, flows: dict[Buffer, Flow]) -> None:
    """Refuse a block that does not alone give its buffers their one final value."""
    for buffer in access(block).written():
        if buffer in tree.pinned:
            raise ScheduleError(
                f"it cannot be shown that every element of {buffer.name}, which block {block.name} "
                "writes, gets one final value before it is read; such blocks stay where they are"
            )
        others = [w.name for w in flows[buffer].writers if isinstance(w, BlockNode) and w != block]
        if others:
            raise ScheduleError(
                f"{buffer.name} is also written by block {others[0]}; move a reduction first and "
                "decompose it then"
            )


def require_all_instances(tree: FuncTree, block: BlockNode) -> None:
    """Refuse a block of which other instances than those that run must not run."""
    partial = [b.name for b in access(block).written() if tree.is_param(b)]
    if not block.total or (partial and not block.covers):
        raise ScheduleError(
            f"it cannot be shown that the loops run every instance of block {block.name}, and "
            "those that do not run must stay so"
        )


def require_own_variables(block: BlockNode, kept: Sequence[Loop] = ()) -> None:
    """Refuse a block that uses variables of loops, other than `kept`, past its own variables."""
    used = set(undefined_vars(block.to_block()))
    for left in block.loops_above():
        if left not in kept and left.var in used:
            raise ScheduleError(
                f"block {block.name} uses the variable of loop {left.name} itself, not only "
                "through variables of its own, so it stays under that loop"
            )


def _check_place(block: BlockNode, loop: Loop) -> None:
    if block.parent is None or loop.scope() is not block.scope():
        raise ScheduleError(f"loop {loop.name} and block {block.name} are in different blocks")
    if block.is_under(loop):
        raise ScheduleError(f"block {block.name} is under loop {loop.name} already")
    require_own_variables(block, [loop, *loop.loops_above()])


def _check_inputs(
    tree: FuncTree, block: BlockNode, flows: dict[Buffer, Flow], order: dict[Node, int]
) -> None:
    written = access(block).written()
    for buffer in access(block).read():
        if buffer in written:
            continue
        writers = flows[buffer].writers
        if buffer in tree.pinned or any(order[w] > order[block] for w in writers):
            raise ScheduleError(
                f"{buffer.name}, which block {block.name} reads, does not have one final value, so "
                "the block must read it where it does"
            )


def _slot(loop: Loop, index: int, first: int, last: int) -> int:
    """Where among the children of `loop` a block goes; -1 is as late, -2 as early as possible."""
    if index == -1:
        return last
    if index == -2:
        return first
    if not first <= index <= last:
        raise ScheduleError(
            f"index {index} under loop {loop.name}: places from {first} to {last} are behind what "
            "the block reads and before what reads it; -1 is the last of them, -2 the first"
        )
    return index


def _rebuild(
    tree: FuncTree,
    block: BlockNode,
    loop: Loop,
    slot: int,
    spans: dict[Var, Span],
    preserve_unit_loops: bool,
) -> None:
    """Put `block` under `loop` with new loops: over `spans` where there are any, else over all."""
    loops: list[Loop] = []
    values: list[PrimExpr] = []
    conditions: list[PrimExpr] = []
    taken = tree.loop_names()
    for iv in block.iter_vars:
        span = spans.get(iv.var)
        low, extent = (iv.dom.min, iv.dom.extent) if span is None else (span.low, span.extent)
        value = low
        if preserve_unit_loops or as_int(extent) != 1:
            made = new_loop(taken, f"ax{len(loops)}", iv.var, extent)
            loops.append(made)
            value = low + made.var
        values.append(value)
        if span is not None:
            conditions += [value >= iv.dom.min, value < iv.dom.min + iv.dom.extent]
    detach(block)
    block.iter_values, block.predicate = values, block.predicate + conditions
    loop.insert(slot, nest(loops, [block]) if loops else block)
    tidy(block)
    block.given = find_given(block, own={made.var for made in loops})


def compute_at(
    tree: FuncTree, block: BlockNode, loop: Loop, preserve_unit_loops: bool, index: int
) -> None:
    """Compute, in every iteration of `loop`, what its blocks need of what `block` writes."""
    _check_place(block, loop)
    flows, order = flow_of(tree), position(tree)
    if kind_of(block) not in (BlockKind.COMPLETE, BlockKind.REDUCTION):
        raise ScheduleError(
            f"block {block.name} is no computation of its elements from others; only such blocks, "
            "and reductions with an init, can be computed elsewhere"
        )
    require_sole_writer(tree, block, flows)
    require_all_instances(tree, block)
    _check_inputs(tree, block, flows, order)
    consumers: list[Node] = []
    for buffer in access(block).written():
        if tree.is_param(buffer):
            raise ScheduleError(
                f"block {block.name} writes {buffer.name}, a result of the function, all of which "
                "is needed; use reverse_compute_at to move it under a loop of its producers"
            )
        for user in flows[buffer].readers:
            if not user.is_under(loop):
                name = user.name if isinstance(user, BlockNode) else "a statement"
                raise ScheduleError(
                    f"{name} reads {buffer.name} outside of loop {loop.name}; all consumers of "
                    f"block {block.name} must be under the loop"
                )
            consumers.append(user)
    if not consumers:
        raise ScheduleError(f"nothing under loop {loop.name} reads what block {block.name} writes")
    analyzer = analyzer_at(loop)
    spans = _needed(block, loop, consumers, analyzer)
    last = min(loop.index_of(consumer) for consumer in consumers)
    slot = _slot(loop, index, 0, last)
    block.predicate = []
    _rebuild(tree, block, loop, slot, spans, preserve_unit_loops)
    block.covers = False
    why = order_error(block) if kind_of(block) is BlockKind.REDUCTION else None
    if why is not None:
        raise ScheduleError(f"block {block.name}: {why}")


def _needed(
    block: BlockNode, loop: Loop, consumers: Sequence[Node], analyzer: Analyzer
) -> dict[Var, Span]:
    """Values of the block's variables that one iteration of `loop` needs; all if not listed.

    Memory that threads share gets what all of them need, so that they can fill it together.
    """
    around = [*loop.loops_above(), loop]
    found: dict[Var, list[Span]] = {}
    places = {touch.buffer: touch.indices for touch in access(block).writes}
    for buffer, place in places.items():
        still = {item for item in around if not _is_shared_by(item, buffer)}
        for consumer in consumers:
            assert isinstance(consumer, BlockNode)
            free = [item for item in consumer.loops_above() if item not in still]
            for spans in read_spans(consumer, buffer, free, analyzer):
                for index, span in zip(place, spans):
                    if isinstance(index, Var):
                        found.setdefault(index, []).append(span)
    domains = {iv.var: iv for iv in block.spatial()}
    hulls = {
        var: _hull(spans, domains[var], analyzer) for var, spans in found.items() if var in domains
    }
    return {var: hull for var, hull in hulls.items() if hull is not None}


def _is_shared_by(loop: Loop, buffer: Buffer) -> bool:
    """Whether the threads that run a loop have the buffer in common."""
    scope = str(buffer.scope or "global")
    if scope.startswith("shared"):
        return loop.thread_tag.startswith(("threadIdx", "vthread"))
    return scope == "global" and bool(loop.thread_tag)


def _hull(spans: Sequence[Span], iv: IterVar, analyzer: Analyzer) -> Span | None:
    """An interval around all spans; None for the whole domain of the variable."""
    if any(span.whole for span in spans):
        return None
    low, high = spans[0].low, spans[0].high
    for span in spans[1:]:
        low, high = min_of(low, span.low), max_of(high, span.high)
    low = analyzer.simplify(low)
    extent = analyzer.simplify(high - low + 1)
    size = as_int(extent)
    if size is None:
        bound = analyzer.const_int_bound(extent).max_value
        size = int(bound) if 0 < bound < 1 << 31 else None
    whole = as_int(iv.dom.extent)
    if size is None or size < 1 or (whole is not None and size >= whole):
        return None
    return Span(low, const(size, iv.var.dtype))


def reverse_compute_at(
    tree: FuncTree, block: BlockNode, loop: Loop, preserve_unit_loops: bool, index: int
) -> None:
    """Compute, in every iteration of `loop`, what can be computed of what was just written."""
    _check_place(block, loop)
    flows, order = flow_of(tree), position(tree)
    if kind_of(block) is not BlockKind.COMPLETE:
        raise ScheduleError(
            f"block {block.name} does not compute each element once from others; use compute_at to "
            "move its producers instead"
        )
    require_sole_writer(tree, block, flows)
    require_all_instances(tree, block)
    _check_inputs(tree, block, flows, order)
    sources: list[tuple[Buffer, BlockNode]] = []
    for buffer in access(block).read():
        for writer in flows[buffer].writers:
            if writer.is_under(loop):
                assert isinstance(writer, BlockNode)
                sources.append((buffer, writer))
            elif order[writer] > order[loop] or not set(_shared(writer, loop)) <= set(
                block.loops_above()
            ):
                raise ScheduleError(
                    f"{buffer.name}, which block {block.name} reads too, is not finished under "
                    f"loop {loop.name}"
                )
    if not sources:
        raise ScheduleError(f"nothing under loop {loop.name} writes what block {block.name} reads")
    buffer, writer = sources[-1]
    analyzer = analyzer_at(loop)
    spans, conditions = _produced(block, loop, buffer, writer, analyzer)
    first = 1 + max(loop.index_of(source) for _, source in sources)
    users = [user for made in access(block).written() for user in flows[made].readers]
    last = min([loop.index_of(u) for u in users if u.is_under(loop)], default=len(loop.children))
    block.predicate = []
    _rebuild(tree, block, loop, _slot(loop, index, first, last), spans, preserve_unit_loops)
    values = block.values
    block.predicate += [
        substitute(condition, {var: values[var] for var in vars_of(condition) & set(values)})
        for condition in conditions
    ]
    tidy(block)
    for other, source in sources:
        if other != buffer and not sees_finished(source, block, other):
            raise ScheduleError(
                f"of {other.name}, which block {block.name} reads too, one iteration of loop "
                f"{loop.name} does not write what is needed"
            )


def _shared(node: Node, loop: Loop) -> list[Loop]:
    around = {*loop.loops_above(), loop}
    return [item for item in node.loops_above() if item in around]


def _produced(
    block: BlockNode, loop: Loop, buffer: Buffer, writer: BlockNode, analyzer: Analyzer
) -> tuple[dict[Var, Span], list[PrimExpr]]:
    """Values of the block's variables whose inputs one iteration of `loop` writes."""
    still = {*loop.loops_above(), loop}
    reducing = [item.name for item in still if item.var in feeds(writer).reducing]
    if reducing:
        raise ScheduleError(
            f"loop {reducing[0]} feeds the reduction of block {writer.name}, so {buffer.name} is "
            f"not finished under loop {loop.name}; give a loop around the reduction"
        )
    free = [item for item in writer.loops_above() if item not in still]
    box = exact_box(writer, buffer, free, analyzer)
    if box is None:
        raise ScheduleError(
            f"what block {writer.name} writes of {buffer.name} in one iteration of loop "
            f"{loop.name} is no box of elements"
        )
    places = {touch.indices for touch in access(block).reads if touch.buffer == buffer}
    if len(places) != 1 and not _all_equal(places):
        raise ScheduleError(
            f"block {block.name} reads {buffer.name} at several places, which need not be written "
            "in one iteration"
        )
    if not writer.covers and chooses(block.body()):
        raise ScheduleError(
            f"block {block.name} does not read {buffer.name} in all of its instances, and block "
            f"{writer.name} may not write all of it"
        )
    (place, *_) = places
    own = {iv.var for iv in block.spatial()}
    spans: dict[Var, Span] = {}
    names: dict[Var, PrimExpr] = {}
    limited = {var for condition in box.conditions for var in vars_of(condition)}
    for axis, at, span, extent in zip(box.axes, place, box.spans, buffer.shape):
        if isinstance(at, Var) and at in own and at not in spans:
            spans[at], names[axis] = span, at
            continue
        whole = analyzer.can_prove(span.low <= 0) and analyzer.can_prove(span.high >= extent - 1)
        if not whole or axis in limited:
            raise ScheduleError(
                f"block {block.name} reads {buffer.name} at {at}, and an iteration of loop "
                f"{loop.name} writes only a part of that axis"
            )
    return spans, [substitute(condition, names) for condition in box.conditions]


def _all_equal(places: set[tuple[PrimExpr, ...]]) -> bool:
    texts = {tuple(str(index) for index in place) for place in places}
    return len(texts) == 1 and all(isinstance(i, Var) for place in places for i in place)


def chooses(stmt: Stmt) -> bool:
    """Whether a statement may leave out some of the reads it holds."""
    found = False

    def visit(node: object) -> None:
        nonlocal found
        named = isinstance(node, Call) and str(getattr(node.op, "name", "")) == "tir.if_then_else"
        found = found or named or isinstance(node, Select)

    post_order_visit(stmt, visit)
    return found
