"""The function a schedule works on: a tree of loops and blocks that can be edited in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any

from tvm.error import ScheduleError
from tvm.ir import PrimExpr, Range

from ..analysis import get_block_access_region, undefined_vars
from ..block import Block, BlockRealize
from ..buffer import Buffer, BufferRegion
from ..expr import And, IterVar, Var, const
from ..function import PrimFunc
from ..op import all as all_of
from ..stmt import Evaluate, For, ForKind, SeqStmt, Stmt, stmt_list
from ..stmt_functor import post_order_visit, substitute

__all__ = [
    "BlockNode",
    "FuncTree",
    "Leaf",
    "Loop",
    "Node",
    "Parent",
    "conjuncts",
    "holds",
    "is_const",
    "replace_vars",
    "unique_name",
]


class Node:
    """A loop, a block, or a statement without blocks; `parent` is None for the root block."""

    def __init__(self) -> None:
        self.parent: Parent | None = None

    def loops_above(self) -> list[Loop]:
        """Loops around this node inside of its scope, outermost first."""
        found: list[Loop] = []
        node = self.parent
        while isinstance(node, Loop):
            found.append(node)
            node = node.parent
        return found[::-1]

    def scope(self) -> BlockNode:
        """The nearest block around this node."""
        node = self.parent
        while isinstance(node, Loop):
            node = node.parent
        if not isinstance(node, BlockNode):
            raise ScheduleError("the root block has no block around it")
        return node

    def is_under(self, other: Node) -> bool:
        """Whether `other` is this node or around it."""
        node: Node | None = self
        while node is not None and node is not other:
            node = node.parent
        return node is other

    def preorder(self) -> Iterator[Node]:
        """This node and all below it, in the order of the program."""
        yield self

    def blocks(self) -> Iterator[BlockNode]:
        """Blocks below this node, itself included, in the order of the program."""
        return (node for node in self.preorder() if isinstance(node, BlockNode))

    def to_stmt(self) -> Stmt:
        """The statement this node stands for."""
        raise TypeError(f"{type(self).__name__} is no statement")


class Parent(Node):
    """A node with others below it."""

    def __init__(self, children: list[Node]) -> None:
        super().__init__()
        self.children = children
        for child in children:
            child.parent = self

    def preorder(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.preorder()

    def insert(self, index: int, node: Node) -> None:
        """Put `node` before the child at `index`."""
        self.children.insert(index, node)
        node.parent = self

    def replace(self, old: Node, new: Node) -> None:
        """Put `new` where the child `old` is."""
        self.children[self.index_of(old)] = new
        new.parent = self

    def index_of(self, node: Node) -> int:
        """Position of the child that is `node` or around it."""
        for index, child in enumerate(self.children):
            if node.is_under(child):
                return index
        raise ScheduleError("the node is not below its supposed parent")

    def body(self) -> Stmt:
        """The children as one statement."""
        stmts = [child.to_stmt() for child in self.children]
        if not stmts:
            return Evaluate(0)
        return stmts[0] if len(stmts) == 1 else SeqStmt(stmts)


class Leaf(Node):
    """A statement that is not scheduled by itself."""

    def __init__(self, stmt: Stmt) -> None:
        super().__init__()
        self.stmt = stmt

    def to_stmt(self) -> Stmt:
        return self.stmt


class Loop(Parent):
    """A loop around blocks; its variable is its identity in expressions."""

    def __init__(
        self,
        var: Var,
        min_val: PrimExpr,
        extent: PrimExpr,
        children: list[Node],
        kind: ForKind = ForKind.SERIAL,
        thread_binding: IterVar | None = None,
        annotations: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(children)
        self.var = var
        self.min = min_val
        self.extent = extent
        self.kind = kind
        self.thread_binding = thread_binding
        self.annotations = dict(annotations or {})

    @property
    def name(self) -> str:
        """Name of the loop's variable."""
        return str(self.var.name_hint)

    @property
    def thread_tag(self) -> str:
        """Tag of the threads that run the iterations; empty if none do."""
        return "" if self.thread_binding is None else str(self.thread_binding.thread_tag)

    @property
    def range(self) -> Range:
        """Values of the variable."""
        return Range.from_min_extent(self.min, self.extent)

    def is_unit(self) -> bool:
        """Whether there is one iteration for sure."""
        return is_const(self.extent, 1)

    def to_stmt(self) -> Stmt:
        return For(
            self.var,
            self.min,
            self.extent,
            self.kind,
            self.body(),
            self.thread_binding,
            self.annotations,
        )


class BlockNode(Parent):
    """A block and the values its variables take.

    Besides what the statement has, a block knows `given`: loops whose values have to be fixed so
    that no instance of the block runs twice; `covers`: whether it runs all of its instances;
    `total`: whether each of them may run, if only because it once did;
    `init_block`: for the update of a decomposed reduction, the block that writes the first values;
    and `erratic`: whether memory decides which instances run, or more than there are may run.
    """

    def __init__(
        self,
        name: str,
        iter_vars: list[IterVar],
        iter_values: list[PrimExpr],
        children: list[Node],
        init: Stmt | None = None,
        predicate: list[PrimExpr] | None = None,
    ) -> None:
        super().__init__(children)
        self.name = name
        self.iter_vars = iter_vars
        self.iter_values = iter_values
        self.predicate = predicate or []
        self.init = init
        self.reads: list[BufferRegion] = []
        self.writes: list[BufferRegion] = []
        self.alloc_buffers: list[Buffer] = []
        self.match_buffers: list[Any] = []
        self.annotations: dict[str, Any] = {}
        self.given: frozenset[Var] = frozenset()
        self.covers = True
        self.total = True
        self.init_block: BlockNode | None = None
        self.erratic = False
        # What was found out about the body, which is asked for often.
        self.memory: dict[str, Any] = {}

    @property
    def values(self) -> dict[Var, PrimExpr]:
        """What the block's variables stand for, in terms of loops."""
        return {iv.var: value for iv, value in zip(self.iter_vars, self.iter_values)}

    def spatial(self) -> list[IterVar]:
        """Data-parallel variables."""
        return [iv for iv in self.iter_vars if iv.iter_type == IterVar.DataPar]

    def reducing(self) -> list[IterVar]:
        """Variables of a commutative reduction."""
        return [iv for iv in self.iter_vars if iv.iter_type == IterVar.CommReduce]

    def is_leaf(self) -> bool:
        """Whether no other blocks are below."""
        return all(isinstance(child, Leaf) for child in self.children)

    def set_body(self, body: Stmt, init: Stmt | None = None) -> None:
        """Exchange what the block computes; its regions follow."""
        self.children = []
        self.insert(0, Leaf(body))
        self.init = init
        self.find_regions()

    def replace_inside(self, values: Mapping[Var, PrimExpr]) -> None:
        """Put expressions in the place of variables that the body uses past the block's own."""
        if not self.is_leaf() or not set(undefined_vars(self.to_block())) & set(values):
            return
        block = substitute(self.to_block(), values)
        self.reads, self.writes = list(block.reads), list(block.writes)
        self.match_buffers = list(block.match_buffers)
        self.init = block.init
        self.children = []
        self.insert(0, Leaf(block.body))

    def find_regions(self) -> None:
        """Take the regions from what the body accesses."""
        self.reads, self.writes = get_block_access_region(self.to_block())

    def to_block(self) -> Block:
        """The block without its values."""
        return Block(
            self.iter_vars,
            self.reads,
            self.writes,
            self.name,
            self.body(),
            self.init,
            self.alloc_buffers,
            self.match_buffers,
            self.annotations,
        )

    def to_stmt(self) -> Stmt:
        predicate = all_of(*self.predicate) if self.predicate else const(True, "bool")
        return BlockRealize(self.iter_values, predicate, self.to_block())


class FuncTree:
    """One function as a tree.

    `pinned` are buffers whose values depend on the order in which they are written; what writes
    them keeps its order.
    """

    def __init__(self, name: str, func: PrimFunc) -> None:
        self.name = name
        self.func = func
        self.changed = False
        self.pinned: set[Buffer] = set()
        # Why loops that were given as running at once cannot be shown to be independent.
        self.doubt: str | None = None
        root = _import(func.body)
        if (
            len(root) == 1
            and isinstance(root[0], BlockNode)
            and not root[0].iter_vars
            and not root[0].is_leaf()
        ):
            self.root = root[0]
        else:
            self.root = BlockNode("root", [], [], root)
        seen: set[Var] = set()
        for node in self.root.preorder():
            if isinstance(node, Loop) and node.var in seen:
                # Loops beside each other may have one variable; here it tells them apart.
                fresh = Var(node.name, node.var.dtype)
                replace_vars(node, {node.var: fresh})
                node.var = fresh
            elif isinstance(node, Loop):
                seen.add(node.var)

    def to_func(self) -> PrimFunc:
        """The function as it is now; the given one as long as nothing changed."""
        return self.func.with_body(self.root.to_stmt()) if self.changed else self.func

    def params(self) -> list[Buffer]:
        """Buffers that the caller gives."""
        return list(dict(self.func.buffer_map.items()).values())

    def is_param(self, buffer: Buffer) -> bool:
        """Whether the caller gives the buffer."""
        return any(buffer.same_as(param) for param in self.params())

    def block_names(self) -> set[str]:
        """Names of all blocks."""
        return {block.name for block in self.root.blocks()}

    def loop_names(self) -> set[str]:
        """Names of the variables of all loops."""
        return {node.name for node in self.root.preorder() if isinstance(node, Loop)}

    def allocate(self, buffer: Buffer) -> None:
        """Give the function another buffer of its own."""
        self.root.alloc_buffers.append(buffer)

    def copy(self) -> tuple[FuncTree, dict[Node, Node]]:
        """An independent tree, and its nodes by those of this one."""
        twin: dict[Node, Node] = {}
        other = copy(self)
        other.pinned = set(self.pinned)
        other.root = _copy(self.root, twin)
        for node in twin.values():
            if isinstance(node, BlockNode) and node.init_block is not None:
                # A partner that is gone has no twin.
                partner = twin.get(node.init_block)
                node.init_block = partner if isinstance(partner, BlockNode) else None
        return other, twin

    def save(self) -> Callable[[], None]:
        """A function that brings the tree back to what it is now."""
        fields = {**vars(self), "pinned": set(self.pinned)}
        kept = [(node, _fields(node)) for node in self.root.preorder()]

        def restore() -> None:
            vars(self).update(fields)
            for node, values in kept:
                vars(node).update(values)

        return restore


def _fields(node: Node) -> dict[str, Any]:
    """The fields of a node, with containers of their own."""
    return {k: copy(v) if isinstance(v, list | dict) else v for k, v in vars(node).items()}


def _copy(node: Any, twin: dict[Node, Node]) -> Any:
    other = copy(node)
    vars(other).update(_fields(node))
    other.parent = None
    twin[node] = other
    if isinstance(node, Parent):
        other.children = []
        for child in node.children:
            other.insert(len(other.children), _copy(child, twin))
    return other


def holds(code: Any, kind: type) -> bool:
    """Whether a node of a class is part of a statement or expression."""
    found = False

    def visit(node: Any) -> None:
        nonlocal found
        found = found or isinstance(node, kind)

    post_order_visit(code, visit)
    return found


def _import(stmt: Stmt) -> list[Node]:
    nodes: list[Node] = []
    for item in stmt_list(stmt):
        if isinstance(item, For) and holds(item, BlockRealize):
            nodes.append(
                Loop(
                    item.loop_var,
                    item.min,
                    item.extent,
                    _import(item.body),
                    ForKind(int(item.kind)),
                    item.thread_binding,
                    dict(item.annotations.items()),
                )
            )
        elif isinstance(item, BlockRealize):
            nodes.append(_import_block(item))
        else:
            nodes.append(Leaf(item))
    return nodes


def _import_block(realize: BlockRealize) -> BlockNode:
    block = realize.block
    node = BlockNode(
        str(block.name_hint),
        list(block.iter_vars),
        list(realize.iter_values),
        # What computes is one statement; only what holds other blocks is taken apart.
        _import(block.body) if holds(block.body, BlockRealize) else [Leaf(block.body)],
        block.init,
        conjuncts(realize.predicate),
    )
    node.reads, node.writes = list(block.reads), list(block.writes)
    node.alloc_buffers = list(block.alloc_buffers)
    node.match_buffers = list(block.match_buffers)
    node.annotations = dict(block.annotations.items())
    return node


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """Conditions that hold together where `condition` does."""
    if isinstance(condition, And):
        return conjuncts(condition.a) + conjuncts(condition.b)
    return [] if is_const(condition, 1) else [condition]


def is_const(expr: Any, value: int) -> bool:
    """Whether an expression is that integer literal."""
    literal = getattr(expr, "value", None)
    return isinstance(literal, int) and literal == value


def unique_name(wanted: str, taken: set[str]) -> str:
    """`wanted`, with a number behind it if it is taken."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def replace_vars(node: Node, values: Mapping[Var, PrimExpr]) -> None:
    """Put expressions in the place of variables in all that is below and at `node`."""

    def new(expr: Any) -> Any:
        return substitute(expr, values)

    for item in list(node.preorder()):
        if isinstance(item, Loop):
            item.min, item.extent = new(item.min), new(item.extent)
        elif isinstance(item, BlockNode):
            item.iter_values = [new(value) for value in item.iter_values]
            item.predicate = [new(value) for value in item.predicate]
            item.replace_inside(values)
        elif isinstance(item, Leaf) and not isinstance(item.parent, BlockNode):
            item.stmt = new(item.stmt)
