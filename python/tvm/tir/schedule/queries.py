"""Finding blocks by name and by what they read and write."""

from __future__ import annotations

from tvm.error import ScheduleError

from .access import access
from .tree import BlockNode, FuncTree, Loop

__all__ = ["block_named", "child_blocks", "consumers", "output_blocks", "producers"]


def block_named(tree: FuncTree, name: str) -> BlockNode:
    """The only block of that name."""
    found = [block for block in tree.root.blocks() if block.name == name]
    if len(found) == 1:
        return found[0]
    names = ", ".join(dict.fromkeys(block.name for block in tree.root.blocks()))
    what = "several blocks are" if found else "no block is"
    raise ScheduleError(f"{what} called {name!r}; the blocks are {names}")


def child_blocks(tree: FuncTree, node: BlockNode | Loop) -> list[BlockNode]:
    """Blocks with only loops between them and `node`."""
    found: list[BlockNode] = []
    for child in node.children:
        if isinstance(child, BlockNode):
            found.append(child)
        elif isinstance(child, Loop):
            found += child_blocks(tree, child)
    return found


def _others(tree: FuncTree, block: BlockNode) -> list[BlockNode]:
    if block.parent is None:
        return []
    return [other for other in child_blocks(tree, block.scope()) if other is not block]


def producers(tree: FuncTree, block: BlockNode) -> list[BlockNode]:
    """Blocks of the same scope that write what `block` reads."""
    needed = set(access(block).read())
    return [other for other in _others(tree, block) if needed & set(access(other).written())]


def consumers(tree: FuncTree, block: BlockNode) -> list[BlockNode]:
    """Blocks of the same scope that read what `block` writes."""
    made = set(access(block).written())
    return [other for other in _others(tree, block) if made & set(access(other).read())]


def output_blocks(tree: FuncTree, scope: BlockNode) -> list[BlockNode]:
    """Blocks of `scope` that write what it does not allocate."""
    own = set(scope.alloc_buffers)
    blocks = child_blocks(tree, scope)
    return [block for block in blocks if any(b not in own for b in access(block).written())]
