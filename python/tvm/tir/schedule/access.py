"""What a block reads and writes, and what kind of computation that makes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tvm.ir import PrimExpr

from ..analysis import CallEffectKind, expr_deep_equal, side_effect, undefined_vars
from ..buffer import Buffer
from ..expr import BufferLoad, Call, IterVar, Var
from ..stmt import AttrStmt, BufferStore, Evaluate, For, IfThenElse, Stmt, While
from ..stmt_functor import post_order_visit
from .tree import BlockNode, Leaf, Node, holds, is_const

__all__ = [
    "Access",
    "BlockKind",
    "Touch",
    "access",
    "kind_of",
    "reads_memory",
    "vars_of",
    "writes_every_element",
]


@dataclass(frozen=True)
class Touch:
    """One access of a buffer at `indices`, in terms of the block's variables."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]


@dataclass
class Access:
    """Accesses of a statement; `opaque` if there may be others than those listed."""

    reads: list[Touch] = field(default_factory=list)
    writes: list[Touch] = field(default_factory=list)
    opaque: bool = False
    conditional: bool = False

    def written(self) -> list[Buffer]:
        """Buffers written, in order."""
        return _buffers(self.writes)

    def read(self) -> list[Buffer]:
        """Buffers read, in order."""
        return _buffers(self.reads)


def _buffers(touches: Sequence[Touch]) -> list[Buffer]:
    return list(dict.fromkeys(touch.buffer for touch in touches))


def _of_stmt(stmt: Stmt) -> Access:
    found = Access()

    def visit(node: Any) -> None:
        if isinstance(node, BufferLoad):
            found.reads.append(Touch(node.buffer, tuple(node.indices)))
        elif isinstance(node, BufferStore):
            found.writes.append(Touch(node.buffer, tuple(node.indices)))
        elif isinstance(node, IfThenElse):
            found.conditional = True
        elif isinstance(node, For | While | AttrStmt) or (
            isinstance(node, Evaluate) and not is_const(node.value, 0)
        ):
            found.opaque = True
        elif isinstance(node, Call):
            found.opaque |= side_effect(node) >= CallEffectKind.UpdateState
        elif isinstance(node, Var) and str(node.dtype) == "handle":
            found.opaque = True

    post_order_visit(stmt, visit)
    return found


def _computed(block: BlockNode) -> tuple[Any, ...] | None:
    """What decides on the accesses and the kind of a leaf block; None for other blocks."""
    if len(block.children) != 1 or not isinstance(block.children[0], Leaf):
        return None
    return (block.children[0].stmt, block.init, block.iter_vars, block.erratic)


def _remembered(block: BlockNode, name: str, find: Callable[[], Any]) -> Any:
    """The result of `find`, which is asked again only when the block computes something else."""
    key = _computed(block)
    if key is None:
        return find()
    known, value = block.memory.get(name, ((), None))
    if len(known) != len(key) or any(a is not b for a, b in zip(known, key)):
        value = find()
        block.memory[name] = (key, value)
    return value


def access(node: Node) -> Access:
    """What a leaf block (or a statement) accesses; for other nodes all that is below."""
    if isinstance(node, Leaf):
        return _of_stmt(node.stmt)
    if isinstance(node, BlockNode):
        return _remembered(node, "access", lambda: _below(node))
    return _below(node)


def _below(node: Node) -> Access:
    total = Access()
    if isinstance(node, BlockNode):
        if node.init is not None:
            _add(total, _of_stmt(node.init))
        total.opaque = bool(node.match_buffers) or node.erratic
        for region in node.match_buffers:
            whole = Touch(region.source.buffer, ())
            total.reads.append(whole)
            total.writes.append(whole)
    for child in getattr(node, "children", ()):
        _add(total, access(child))
    if total.opaque and isinstance(node, BlockNode):
        # What hides behind a pointer is at least what the block declares.
        total.reads += [Touch(region.buffer, ()) for region in node.reads]
        total.writes += [Touch(region.buffer, ()) for region in node.writes]
    return total


def _add(total: Access, part: Access) -> None:
    total.reads += part.reads
    total.writes += part.writes
    total.opaque |= part.opaque
    total.conditional |= part.conditional


class BlockKind(Enum):
    """Computations by what may be done to them.

    ``COMPLETE`` writes every element once, from others. ``REDUCTION`` sets elements to their first
    values and combines more into them in any order. ``UPDATE`` is a reduction whose first values
    another block wrote. ``OPAQUE`` is all else.
    """

    COMPLETE = "complete"
    REDUCTION = "reduction"
    UPDATE = "update"
    OPAQUE = "opaque"


def kind_of(block: BlockNode) -> BlockKind:
    """The kind of a leaf block, judged by its body and not by what it declares."""
    return _remembered(block, "kind", lambda: _find_kind(block))


def _find_kind(block: BlockNode) -> BlockKind:
    if not block.is_leaf() or len(block.spatial()) + len(block.reducing()) != len(block.iter_vars):
        return BlockKind.OPAQUE
    body = access(block)
    if body.opaque or not body.writes:
        return BlockKind.OPAQUE
    spatial, reducing = block.spatial(), block.reducing()
    own = {iv.var for iv in block.iter_vars}
    for touch in body.writes:
        if any(reads_memory(index) for index in touch.indices):
            return BlockKind.OPAQUE
        used = {var for index in touch.indices for var in vars_of(index)}
        if not used <= own or used & {iv.var for iv in reducing}:
            return BlockKind.OPAQUE
        if not _tells_apart(touch, spatial):
            return BlockKind.OPAQUE
    if any(len(_at(body.writes, buffer)) != 1 for buffer in body.written()):
        # Two stores, or the store of the init and that of the update at different elements.
        return BlockKind.OPAQUE
    for buffer in body.written():
        place = _at(body.writes, buffer)[0]
        for read in _at(body.reads, buffer):
            if not _same(read, place):
                return BlockKind.OPAQUE
    reads_itself = any(buffer in body.read() for buffer in body.written())
    if block.init is not None:
        return BlockKind.REDUCTION if _starts(block, body) else BlockKind.OPAQUE
    if reads_itself:
        return BlockKind.UPDATE if reducing else BlockKind.OPAQUE
    return BlockKind.OPAQUE if reducing or body.conditional else BlockKind.COMPLETE


def _starts(block: BlockNode, body: Access) -> bool:
    """Whether the init gives all that the block writes a value that does not depend on it."""
    assert block.init is not None
    first = _of_stmt(block.init)
    reducing = {iv.var for iv in block.reducing()}
    return (
        not first.opaque
        and not first.conditional
        and first.written() == body.written()
        and not any(buffer in first.read() for buffer in body.written())
        and not any(var in reducing for var in undefined_vars(block.init))
    )


def _tells_apart(touch: Touch, spatial: list[IterVar]) -> bool:
    """Whether different values of the spatial variables give different indices."""
    alone = {index for index in touch.indices if isinstance(index, Var)}
    return all(iv.var in alone or is_const(iv.dom.extent, 1) for iv in spatial)


def _at(touches: Sequence[Touch], buffer: Buffer) -> list[Touch]:
    """Accesses of one buffer at different indices."""
    found: list[Touch] = []
    for touch in touches:
        if touch.buffer == buffer and not any(_same(touch, other) for other in found):
            found.append(touch)
    return found


def _same(a: Touch, b: Touch) -> bool:
    return len(a.indices) == len(b.indices) and all(
        expr_deep_equal(x, y) for x, y in zip(a.indices, b.indices)
    )


def reads_memory(expr: Any) -> bool:
    """Whether an expression loads from a buffer."""
    return holds(expr, BufferLoad)


def vars_of(expr: Any) -> set[Var]:
    """Variables an expression uses."""
    return set(undefined_vars(expr))


def writes_every_element(block: BlockNode, buffer: Buffer) -> bool:
    """Whether the instances of a block of a known kind write all of `buffer`."""
    place = _at(access(block).writes, buffer)[0]
    domains = {iv.var: iv.dom for iv in block.spatial()}
    for index, extent in zip(place.indices, buffer.shape):
        dom = domains.get(index) if isinstance(index, Var) else None
        if dom is None:
            if is_const(index, 0) and is_const(extent, 1):
                continue
            return False
        if not is_const(dom.min, 0) or not expr_deep_equal(dom.extent, extent):
            return False
    return block.covers
