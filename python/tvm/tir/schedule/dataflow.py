"""Who writes and who reads which buffer, and whether readers see finished values."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..buffer import Buffer
from .access import BlockKind, access, kind_of, reads_memory
from .facts import analyzer_at, feeds, find_given, order_error, starts_at_first
from .instances import runs_all, stays_inside
from .regions import box_covers, exact_box, read_spans
from .tree import BlockNode, FuncTree, Leaf, Loop, Node

__all__ = ["Flow", "common_loops", "flow_of", "position", "prepare", "sees_finished"]


@dataclass
class Flow:
    """Blocks and statements that write and that read one buffer, in the order of the program.

    A block that only reads what it wrote itself is no reader.
    """

    writers: list[Node] = field(default_factory=list)
    readers: list[Node] = field(default_factory=list)

    def users(self) -> list[Node]:
        """All of them."""
        return list(dict.fromkeys(self.writers + self.readers))


def units(tree: FuncTree) -> list[Node]:
    """Blocks and statements that only loops separate from the root."""

    def below(node: Node) -> list[Node]:
        if isinstance(node, Loop):
            return [unit for child in node.children for unit in below(child)]
        return [node]

    return [unit for child in tree.root.children for unit in below(child)]


def flow_of(tree: FuncTree) -> dict[Buffer, Flow]:
    """The flow of every buffer that is accessed."""
    flows: dict[Buffer, Flow] = {}
    for unit in units(tree):
        found = access(unit)
        for buffer in found.written():
            flows.setdefault(buffer, Flow()).writers.append(unit)
        for buffer in found.read():
            if found.opaque or buffer not in found.written():
                flows.setdefault(buffer, Flow()).readers.append(unit)
    return flows


def position(tree: FuncTree) -> dict[Node, int]:
    """Nodes by their place in the order of the program."""
    return {node: index for index, node in enumerate(tree.root.preorder())}


def common_loops(a: Node, b: Node) -> list[Loop]:
    """Loops around both nodes, outermost first."""
    other = set(b.loops_above())
    return [loop for loop in a.loops_above() if loop in other]


def sees_finished(writer: BlockNode, reader: Node, buffer: Buffer) -> bool:
    """Whether `reader` finds final values, written in the same iteration of the common loops."""
    common = common_loops(writer, reader)
    if not common:
        return True
    if {loop.var for loop in common} & feeds(writer).reducing:
        return False
    if not isinstance(reader, BlockNode):
        return False
    analyzer = analyzer_at(common[-1])
    outside = set(common)
    box = exact_box(
        writer, buffer, [loop for loop in writer.loops_above() if loop not in outside], analyzer
    )
    if box is None:
        return False
    free = [loop for loop in reader.loops_above() if loop not in outside]
    shape = list(buffer.shape)
    return all(
        box_covers(box, spans, shape, analyzer)
        for spans in read_spans(reader, buffer, free, analyzer)
    )


def prepare(tree: FuncTree) -> None:
    """Find out, of a function as it is given, what the rest relies on.

    Sets what is `given` and covered for each block, which pairs of blocks are one reduction, and
    which buffers are pinned.
    """
    for block in tree.root.blocks():
        ranges = [bound for loop in block.loops_above() for bound in (loop.min, loop.extent)]
        block.erratic = any(map(reads_memory, ranges + block.iter_values + block.predicate))
        block.given = find_given(block)
        block.covers = block.total = runs_all(block)
        block.erratic |= not stays_inside(block)
    order = position(tree)
    flows = flow_of(tree)
    for buffer, flow in flows.items():
        # Buffers over the same memory are written by names that tell nothing about each other.
        aliased = any(b.data.same_as(buffer.data) and b != buffer for b in flows)
        if aliased or (flow.writers and not _is_function_of_place(buffer, flow, order)):
            tree.pinned.add(buffer)
    for block in tree.root.blocks():
        # An update is one of several results: all of them start in one block, or none is moved.
        if block.init_block is not None and any(b in tree.pinned for b in access(block).written()):
            block.init_block = None


def _is_function_of_place(buffer: Buffer, flow: Flow, order: dict[Node, int]) -> bool:
    """Whether every element gets one final value, however often, that all readers see."""
    writers = [w for w in flow.writers if isinstance(w, BlockNode)]
    if len(writers) != len(flow.writers) or any(isinstance(r, Leaf) for r in flow.readers):
        return False
    kinds = [kind_of(w) for w in writers]
    if kinds == [BlockKind.COMPLETE, BlockKind.UPDATE]:
        init, update = writers
        if access(init).written() != access(update).written() or not sees_finished(
            init, update, buffer
        ):
            return False
        inside = {loop.var for loop in update.loops_above() if not init.is_under(loop)}
        if not feeds(update).reducing <= inside or update.given & inside:
            return False
        update.init_block = init
    elif kinds == [BlockKind.REDUCTION]:
        if not starts_at_first(writers[0]):
            return False
    elif kinds != [BlockKind.COMPLETE]:
        return False
    last = writers[-1]
    if kinds != [BlockKind.COMPLETE] and order_error(last) is not None:
        return False
    return all(
        order[last] < order[reader] and sees_finished(last, reader, buffer)
        for reader in flow.readers
        if reader not in writers
    )
