"""Primitives on the buffers between blocks: copies in other memory, scopes, strides."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.error import ScheduleError
from tvm.ir import Range

from ..buffer import Buffer, decl_buffer
from ..expr import BufferLoad, IterVar, Var, const
from ..stmt import BufferStore, Stmt
from ..stmt_functor import ir_transform
from .access import access, writes_every_element
from .dataflow import Flow, flow_of
from .inline import map_loads
from .loops import nest, new_loop
from .tree import BlockNode, FuncTree, Leaf, Node, unique_name

__all__ = ["cache_read", "cache_write", "set_scope", "storage_align"]


def _buffer_at(block: BlockNode, index: int, write: bool) -> Buffer:
    regions = block.writes if write else block.reads
    if not 0 <= index < len(regions):
        kind = "writes" if write else "reads"
        names = ", ".join(f"{i}: {region.buffer.name}" for i, region in enumerate(regions))
        raise ScheduleError(f"block {block.name} {kind} no buffer {index}; it {kind} {names}")
    buffer = regions[index].buffer
    touched = access(block).written() if write else access(block).read()
    if buffer not in touched:
        raise ScheduleError(
            f"block {block.name} declares {buffer.name} but does not access it; declare what it "
            "accesses"
        )
    return buffer


def _twin_buffer(tree: FuncTree, buffer: Buffer, scope: str) -> Buffer:
    taken = {str(b.name) for block in tree.root.blocks() for b in block.alloc_buffers}
    taken |= {str(b.name) for b in tree.params()}
    name = unique_name(f"{buffer.name}_{scope.replace('.', '_')}", taken)
    return decl_buffer(list(buffer.shape), str(buffer.dtype), name, scope=scope)


def _exchange(stmt: Stmt, old: Buffer, new: Buffer) -> Stmt:
    """`stmt` with accesses of one buffer in the place of those of another of the same shape."""

    def store(node: BufferStore) -> Stmt | None:
        return BufferStore(new, node.value, node.indices) if node.buffer == old else None

    loads = map_loads(stmt, old, lambda indices: BufferLoad(new, indices))
    return ir_transform(loads, None, store, ["tir.BufferStore"])


def _redirect(block: BlockNode, old: Buffer, new: Buffer) -> None:
    init = None if block.init is None else _exchange(block.init, old, new)
    block.set_body(_exchange(block.body(), old, new), init)


def _copy_block(tree: FuncTree, source: Buffer, target: Buffer, name: str) -> BlockNode:
    """A block that copies all of a buffer, with its loops around it but in no tree yet."""
    loops, iters = [], []
    taken = tree.loop_names()
    for d, extent in enumerate(source.shape):
        loops.append(new_loop(taken, f"ax{d}", const(0, extent.dtype), extent))
        dom = Range.from_min_extent(const(0, extent.dtype), extent)
        iters.append(IterVar(dom, Var(f"v{d}", extent.dtype), IterVar.DataPar))
    at = [iv.var for iv in iters]
    block = BlockNode(
        unique_name(name, tree.block_names()),
        iters,
        [loop.var for loop in loops],
        [Leaf(BufferStore(target, BufferLoad(source, at), at))],
    )
    block.find_regions()
    if loops:
        nest(loops, [block])
    return block


def _top(tree: FuncTree, node: Node) -> int:
    return tree.root.index_of(node)


def _nest_of(block: BlockNode) -> Node:
    loops = block.loops_above()
    return loops[0] if loops else block


def _require_known(blocks: Sequence[Node], buffer: Buffer) -> list[BlockNode]:
    found: list[BlockNode] = []
    for block in blocks:
        if not isinstance(block, BlockNode) or access(block).opaque or not block.is_leaf():
            name = block.name if isinstance(block, BlockNode) else "a statement"
            raise ScheduleError(f"{name} accesses {buffer.name} in ways that are not all known")
        found.append(block)
    return found


def _check_scope(scope: str) -> None:
    if not isinstance(scope, str) or scope.partition(".")[0] not in (
        "global",
        "shared",
        "local",
        "warp",
        "wmma",
    ):
        raise ScheduleError(
            f"{scope!r} is no memory scope; there are global, shared, shared.dyn, local, warp, "
            "wmma.matrix_a, wmma.matrix_b and wmma.accumulator"
        )


def _final_flow(tree: FuncTree, buffer: Buffer) -> Flow:
    if buffer in tree.pinned:
        raise ScheduleError(f"{buffer.name} does not have one final value, which a copy could hold")
    return flow_of(tree)[buffer]


def _insert_copy(
    tree: FuncTree,
    slot: int,
    users: Sequence[BlockNode],
    twin: Buffer,
    source: Buffer,
    target: Buffer,
) -> BlockNode:
    """Copy `source` to `target`, one of which is the new `twin`; `users` then use the twin."""
    copy = _copy_block(tree, source, target, str(twin.name))
    for user in users:
        _redirect(user, target if twin is source else source, twin)
    tree.root.insert(slot, _nest_of(copy))
    tree.allocate(twin)
    return copy


def cache_read(
    tree: FuncTree,
    block: BlockNode,
    index: int,
    scope: str,
    consumers: Sequence[BlockNode] | None,
) -> BlockNode:
    """Copy a buffer that `block` reads to another scope, where its readers then read it."""
    _check_scope(scope)
    buffer = _buffer_at(block, index, write=False)
    flow = _final_flow(tree, buffer)
    readers = [r for r in flow.readers if consumers is None or r in consumers or r is block]
    known = _require_known(readers, buffer)
    if block not in known:
        raise ScheduleError(
            f"block {block.name} is inside of another block; name a block of the outermost scope"
        )
    slot = min(_top(tree, reader) for reader in known)
    for writer in flow.writers:
        if _top(tree, writer) >= slot:
            raise ScheduleError(
                f"a block that writes {buffer.name} shares loops with one that reads it; call "
                "cache_read before compute_at"
            )
    twin = _twin_buffer(tree, buffer, scope)
    return _insert_copy(tree, slot, known, twin, source=buffer, target=twin)


def cache_write(tree: FuncTree, block: BlockNode, index: int, scope: str) -> BlockNode:
    """Let `block` write to another scope, and copy from there when it is done."""
    _check_scope(scope)
    buffer = _buffer_at(block, index, write=True)
    flow = _final_flow(tree, buffer)
    writers = _require_known(flow.writers, buffer)
    if tree.is_param(buffer) and not all(writes_every_element(w, buffer) for w in writers):
        raise ScheduleError(
            f"block {block.name} does not write all of {buffer.name}, so a copy would overwrite "
            "the rest"
        )
    slot = 1 + max(_top(tree, writer) for writer in writers)
    if any(_top(tree, reader) < slot for reader in flow.readers):
        raise ScheduleError(
            f"a block that reads {buffer.name} shares loops with {block.name}; call cache_write "
            "before compute_at"
        )
    twin = _twin_buffer(tree, buffer, scope)
    return _insert_copy(tree, slot, writers, twin, source=twin, target=buffer)


def set_scope(tree: FuncTree, block: BlockNode, index: int, scope: str) -> None:
    """Move a buffer that `block` writes to another scope."""
    _check_scope(scope)
    buffer = _buffer_at(block, index, write=True)
    if tree.is_param(buffer):
        raise ScheduleError(
            f"{buffer.name} is given by the caller, who decides where it is; use cache_write"
        )
    flow = flow_of(tree)[buffer]
    users = _require_known(flow.users(), buffer)
    twin = decl_buffer(list(buffer.shape), str(buffer.dtype), str(buffer.name), scope=scope)
    for user in users:
        _redirect(user, buffer, twin)
    for owner in tree.root.blocks():
        owner.alloc_buffers = [twin if b == buffer else b for b in owner.alloc_buffers]
    if buffer in tree.pinned:
        tree.pinned.add(twin)


def storage_align(
    tree: FuncTree, block: BlockNode, index: int, axis: int, factor: int, offset: int
) -> None:
    """Let the stride of an axis be `offset` more than a multiple of `factor`, in elements."""
    buffer = _buffer_at(block, index, write=True)
    if tree.is_param(buffer):
        raise ScheduleError(f"{buffer.name} is given by the caller, with the strides it has")
    rank = len(buffer.shape)
    if not -rank <= axis < rank:
        raise ScheduleError(f"{buffer.name} has {rank} axes, none of which is {axis}")
    if factor < 1 or not 0 <= offset < factor:
        raise ScheduleError(
            f"the factor {factor} must be at least 1 and the offset {offset} from 0 to below it"
        )
    _require_known(flow_of(tree)[buffer].users(), buffer)
    key, rows = "buffer_dim_align", block.annotations.get("buffer_dim_align", [])
    kept = [row for row in rows if [int(row[0]), int(row[1])] != [index, axis % rank]]
    block.annotations[key] = [*kept, [index, axis % rank, factor, offset]]
