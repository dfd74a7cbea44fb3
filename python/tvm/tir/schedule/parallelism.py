"""Whether the iterations of loops may run at once."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.error import ScheduleError

from ..buffer import Buffer
from ..stmt import ForKind
from .access import BlockKind, access, kind_of, vars_of
from .dataflow import Flow, flow_of
from .facts import feeds
from .tree import BlockNode, FuncTree, Leaf, Loop, Node

__all__ = ["check_parallelism"]

_AT_ONCE = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING)


def check_parallelism(tree: FuncTree) -> None:
    """Refuse loops whose iterations run at once but depend on each other."""
    loops = [
        node for node in tree.root.preorder() if isinstance(node, Loop) and node.kind in _AT_ONCE
    ]
    if not loops:
        return
    flows = flow_of(tree)
    for loop in loops:
        _check_loop(tree, loop, flows)
    _check_kernels(loops, flows)


def _mark(loop: Loop) -> str:
    if loop.kind is ForKind.THREAD_BINDING:
        return f"bound to {loop.thread_tag}"
    return loop.kind.name.lower()


def _check_loop(tree: FuncTree, loop: Loop, flows: dict[Buffer, Flow]) -> None:
    if loop.is_unit():
        return
    mark = _mark(loop)
    for unit in _units(loop):
        found = access(unit)
        if isinstance(unit, Leaf) or found.opaque:
            raise ScheduleError(
                f"loop {loop.name} cannot be {mark}: it runs statements whose accesses are not all "
                "known"
            )
        for block in unit.blocks():
            pinned = [b.name for b in access(block).written() if b in tree.pinned]
            if pinned or kind_of(block) is BlockKind.OPAQUE:
                raise ScheduleError(
                    f"loop {loop.name} cannot be {mark}: what block {block.name} writes depends on "
                    "the order of its iterations"
                )
            _check_block(tree, loop, block, flows)


def _check_block(tree: FuncTree, loop: Loop, block: BlockNode, flows: dict[Buffer, Flow]) -> None:
    mark = _mark(loop)
    fed = feeds(block)
    if loop.var in fed.reducing or (fed.mixed and kind_of(block) is not BlockKind.COMPLETE):
        raise ScheduleError(
            f"loop {loop.name} cannot be {mark}: its iterations add to the same elements of block "
            f"{block.name}; mark a loop of a spatial variable, or split the reduction with rfactor "
            "and mark the loop of the factor"
        )
    below = {node.var for node in loop.preorder() if isinstance(node, Loop)}
    if not block.given & below:
        # Different iterations write different elements.
        return
    for buffer in access(block).written():
        why: str | None = "all cores see it; compute the block outside of the loop"
        if not tree.is_param(buffer):
            why = _shared_by_iterations(loop, block, flows[buffer], buffer)
        if why is not None:
            raise ScheduleError(
                f"loop {loop.name} cannot be {mark}: several iterations of it write the same "
                f"elements of {buffer.name} in block {block.name}, and {why}"
            )


def _shared_by_iterations(loop: Loop, block: BlockNode, flow: Flow, buffer: Buffer) -> str | None:
    """Why it matters that iterations write the same elements; None if each has its own copy."""
    if not all(user.is_under(loop) for user in flow.users()):
        return "what is behind the loop reads them; compute the block outside of the loop"
    scope = buffer.scope or "global"
    if loop.kind is ForKind.VECTORIZED:
        return "the lanes of a vector share a buffer; compute the block outside of the loop"
    if loop.kind is ForKind.PARALLEL:
        # Allocated in the loop; a buffer that is accumulated into would be outside of the sum.
        above = {outer.var for outer in loop.loops_above()}
        accumulated = (
            vars_of(writer.values[iv.var])
            for writer in flow.writers
            if isinstance(writer, BlockNode)
            for iv in writer.reducing()
        )
        if above & set().union(*accumulated):
            return "the buffer stays outside of a reduction around the loop"
        return None
    if scope == "local":
        return None
    if loop.thread_tag.startswith("blockIdx"):
        return None if scope.startswith("shared") else _GIVE_SCOPE
    if scope.startswith("shared"):
        if kind_of(block) is BlockKind.COMPLETE and block.init_block is None:
            # All threads write the same value.
            return None
        return "the threads would disturb each other; bind a loop of the block itself"
    return _GIVE_SCOPE


_GIVE_SCOPE = (
    'threads share it; give it the scope "local" (or "shared" for a block of threads) with '
    "set_scope, cache_read or cache_write"
)


def _units(node: Node) -> Iterator[Node]:
    if isinstance(node, Loop):
        for child in node.children:
            yield from _units(child)
    else:
        yield node


def _check_kernels(loops: list[Loop], flows: dict[Buffer, Flow]) -> None:
    threads = [loop for loop in loops if loop.kind is ForKind.THREAD_BINDING]
    for kernel in threads:
        if any(outer.kind is ForKind.THREAD_BINDING for outer in kernel.loops_above()):
            continue
        axes: dict[str, Loop] = {}
        for loop in threads:
            if not loop.is_under(kernel) or loop.thread_tag.startswith("vthread"):
                continue
            first = axes.setdefault(loop.thread_tag, loop)
            if str(first.extent) != str(loop.extent):
                raise ScheduleError(
                    f"loops {first.name} and {loop.name} of one kernel are bound to "
                    f"{loop.thread_tag} with extents {first.extent} and {loop.extent}; a launch "
                    "has one extent per axis, so split both alike"
                )
            _check_nested(loop)
        for buffer, flow in flows.items():
            _check_sharing(kernel, set(axes), buffer, flow)


def _check_nested(loop: Loop) -> None:
    """A loop inside of one bound to the same threads runs one of its iterations per thread."""
    for outer in loop.loops_above():
        if outer.thread_tag != loop.thread_tag:
            continue
        for block in loop.blocks():
            used = {v for e in [*block.iter_values, *block.predicate] for v in vars_of(e)}
            if outer.var in used and not outer.is_unit():
                raise ScheduleError(
                    f"loops {outer.name} and {loop.name} around block {block.name} are both bound "
                    f"to {loop.thread_tag}, so a thread would run only the iterations in which "
                    "both are equal; bind one of them to another axis"
                )


def _tags(unit: Node, kernel: Loop) -> set[str]:
    return {
        loop.thread_tag
        for loop in unit.loops_above()
        if loop.is_under(kernel) and loop.thread_tag and not loop.thread_tag.startswith("vthread")
    }


def _check_sharing(kernel: Loop, axes: set[str], buffer: Buffer, flow: Flow) -> None:
    """Values pass between threads through shared memory only, where barriers are put."""
    writers = [w for w in flow.writers if isinstance(w, BlockNode) and w.is_under(kernel)]
    scope = buffer.scope or "global"
    for writer in writers:
        missing = axes - _tags(writer, kernel)
        if scope != "local" and missing and kind_of(writer) is not BlockKind.COMPLETE:
            raise ScheduleError(
                f"block {writer.name} is in a kernel with {', '.join(sorted(missing))} but not "
                f"under such a loop, so all these threads would add to {buffer.name}; bind a loop "
                "of the block first"
            )
        for user in flow.users():
            if user is writer:
                continue
            if not user.is_under(kernel):
                continue
            # A writer that no other threads run than its user is run by all of them alike.
            apart = [
                loop for loop in writer.loops_above() if loop.thread_tag and not user.is_under(loop)
            ]
            if not apart:
                continue
            if not scope.startswith("shared") or any(
                not loop.thread_tag.startswith("threadIdx") for loop in apart
            ):
                raise ScheduleError(
                    f"buffer {buffer.name} of scope {scope} passes values between threads: block "
                    f"{writer.name} and what uses them are under different loops bound to "
                    f'{apart[0].thread_tag}; give the buffer the scope "shared", or compute both '
                    "under one loop"
                )
