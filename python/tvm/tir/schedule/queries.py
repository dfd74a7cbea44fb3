"""Finding blocks by name and by what they read and write."""

from __future__ import annotations

from typing import Any

from tvm.error import ScheduleError

from ..block import Block
from ..stmt_functor import post_order_visit
from .access import access
from .tree import BlockNode, FuncTree, Leaf, Loop

__all__ = ["block_named", "child_blocks", "consumers", "output_blocks", "producers"]


def block_named(tree: FuncTree, name: str) -> BlockNode:
    """The only block of that name."""
    found = [block for block in tree.root.blocks() if block.name == name]
    if len(found) == 1:
        return found[0]
    for node in tree.root.preorder():
        if isinstance(node, Leaf) and not found and name in _hidden(node):
            raise ScheduleError(
                f"block {name!r} is under an if, a while or a let, of which it would have to stay "
                "inside; use T.where or a select in the block instead"
            )
    names = ", ".join(dict.fromkeys(block.name for block in tree.root.blocks()))
    what = "several blocks are" if found else "no block is"
    raise ScheduleError(f"{what} called {name!r}; the blocks are {names}")


def _hidden(leaf: Leaf) -> set[str]:
    names: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, Block):
            names.add(str(node.name_hint))

    post_order_visit(leaf.stmt, visit)
    return names


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
