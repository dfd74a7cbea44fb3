"""Operators that run as one kernel, as functions of their own.

Which operators go together follows section 3 of Chen et al., "TVM", OSDI 2018, over the tree of
post-dominators: what an operator's result passes through on every way to the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import tvm._ffi
from tvm.ir import IRModule, Op, RelayExpr, TensorType, structural_equal, structural_hash
from tvm.ir.transform import Pass, PassContext
from tvm.relax.transform.grouping import largest_group

from ..expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from ..expr_functor import PostOrderMutator, PostOrderVisitor, post_order_visit
from ..ty import is_dynamic
from .base import expression_pass
from .infer_type import InferType
from .simplify import SimplifyInference

__all__ = ["FuseOps"]

_ELEMWISE, _BROADCAST, _INJECTIVE = 0, 1, 2
_REDUCE, _HEAVY, _TUPLE, _OPAQUE = 3, 4, 7, 8
_RESHAPES = {
    "reshape", "expand_dims", "squeeze", "contrib_reverse_reshape", "nn.batch_flatten",
    "reshape_like",
}  # fmt: skip


@dataclass(eq=False)
class _Node:
    """A value of the graph.

    Attributes
    ----------
    users : values that are computed from it, with how each of them reads it.
    is_kept : whether something beside operators reads it, so that it must be there in memory.
    dominator : the nearest value that all ways from here lead through; `way` is the least fusable
        pattern on them, `depth` the number of dominators behind.
    """

    expr: RelayExpr
    pattern: int = _OPAQUE
    users: list[tuple[_Node, int]] = field(default_factory=list)
    is_kept: bool = False
    dominator: _Node | None = None
    way: int = _OPAQUE
    depth: int = 1
    group: _Group | None = None

    def root(self) -> _Group:
        assert self.group is not None
        return self.group.root()


@dataclass(eq=False)
class _Group:
    """Values of one kernel; `result` is the one that leaves it."""

    result: RelayExpr
    pattern: int
    size: int = 1
    joined: _Group | None = None
    params: list[Var] = field(default_factory=list)
    arguments: list[RelayExpr] = field(default_factory=list)

    def root(self) -> _Group:
        group = self
        while group.joined is not None:
            group = group.joined
        return group


class _Graph(PostOrderVisitor):
    """The values of a function, operands before their users."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self.nodes: dict[RelayExpr, _Node] = {}
        self.order: list[_Node] = []
        self.visit(func)

    def _node(self, expr: RelayExpr) -> _Node:
        if expr not in self.nodes:
            self.nodes[expr] = _Node(expr)
        return self.nodes[expr]

    def _read(self, expr: RelayExpr, user: _Node | None, how: int = _OPAQUE) -> None:
        node = self._node(expr)
        if user is None:
            node.is_kept = True
        else:
            node.users.append((user, how))

    def dispatch(self, expr: RelayExpr) -> None:
        node = self._node(expr)
        if isinstance(expr, Call):
            self._read_operands(expr, node)
        elif isinstance(expr, Tuple):
            node.pattern = _TUPLE
            for item in expr.fields:
                is_tensor = isinstance(item.checked_type, TensorType)
                self._read(item, node if is_tensor else None, _INJECTIVE)
        elif isinstance(expr, TupleGetItem):
            fields = expr.tuple_value.checked_type.fields
            plain = all(isinstance(f, TensorType) for f in fields)
            node.pattern = _INJECTIVE
            self._read(expr.tuple_value, node if plain else None, _INJECTIVE)
        elif isinstance(expr, Constant):
            if len(expr.data.shape):
                node.is_kept = True
            else:
                node.pattern = _ELEMWISE
        elif isinstance(expr, Function):
            if _is_kernel(expr):
                self.order.append(node)
                return
            for param in expr.params:
                self._read(param, None)
            self._read(expr.body, None)
        elif not isinstance(expr, (Var, Op)):
            _mark_parts(expr, lambda part: self._read(part, None))
        super().dispatch(expr)
        self.order.append(node)

    def _read_operands(self, call: Call, node: _Node) -> None:
        if isinstance(call.op, Op):
            known = call.op.get_attr("TOpPattern")
            node.pattern = _OPAQUE if known is None or is_dynamic(call.checked_type) else int(known)
        else:
            self._read(call.op, None)
        for arg in call.args:
            how = node.pattern
            if how == _BROADCAST and _same_shape(arg, call):
                how = _ELEMWISE
            self._read(arg, node, how)


def _is_kernel(func: Function) -> bool:
    return func.attrs is not None and ("Primitive" in func.attrs or "Compiler" in func.attrs)


def _same_shape(a: RelayExpr, b: RelayExpr) -> bool:
    types = a.checked_type, b.checked_type
    if not all(isinstance(t, TensorType) for t in types):
        return False
    return structural_equal(types[0].shape, types[1].shape)


class _Parts(PostOrderVisitor):
    """The direct parts of an expression that is no operator."""

    def __init__(self, report: Callable[[RelayExpr], None]) -> None:
        super().__init__()
        self._report = report
        self._inside = False

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        return []

    def dispatch(self, expr: RelayExpr) -> None:
        if self._inside:
            self._report(expr)
            return
        self._inside = True
        super().dispatch(expr)


def _mark_parts(expr: RelayExpr, report: Callable[[RelayExpr], None]) -> None:
    _Parts(report).visit(expr)


def _meet(a: _Node | None, b: _Node | None, way: int) -> tuple[_Node | None, int]:
    """The nearest common dominator, and the least fusable pattern on the ways to it."""
    while a is not b:
        if a is None or b is None:
            return None, way
        # The deeper one goes on; both, where they are level.
        steps_a, steps_b = a.depth >= b.depth, b.depth >= a.depth
        if steps_a:
            way, a = max(way, a.way), a.dominator
        if steps_b:
            way, b = max(way, b.way), b.dominator
    return a, way


def _find_dominators(order: list[_Node]) -> None:
    for node in reversed(order):
        if node.is_kept or not node.users:
            continue
        found, way = node.users[0][0], max(_ELEMWISE, node.users[0][1])
        meeting: _Node | None = found
        for user, how in node.users[1:]:
            meeting, way = _meet(meeting, user, way)
            way = max(way, how)
        node.dominator, node.way = meeting, way
        node.depth = 1 if meeting is None else meeting.depth + 1


class _Fuser:
    """Joins groups, in rounds over all values."""

    def __init__(self, order: list[_Node]) -> None:
        self._order = order
        self._most = largest_group()
        for node in order:
            node.group = _Group(node.expr, node.pattern)

    def run(self) -> None:
        for round_ in range(3):
            for node in self._order:
                if node.pattern != _OPAQUE and node.dominator is not None:
                    self._consider(node, node.dominator, round_)

    def _consider(self, node: _Node, sink: _Node, round_: int) -> None:
        group, target = node.root(), sink.root()
        if group is target or group.size + target.size > self._most:
            return
        if round_ == 2:
            # Into tuples in the middle of the graph, which are no kernels of their own.
            assert sink.group is not None
            fits = sink.group.pattern == _TUPLE and target.pattern <= _INJECTIVE
            if group.pattern <= _INJECTIVE and fits:
                self._join(node, sink, lambda kind, last: kind <= _INJECTIVE)
            return
        if target.pattern == _TUPLE:
            return
        if group.pattern == _HEAVY:
            if round_ == 0 and node.way == _ELEMWISE:
                self._join(node, sink, lambda kind, last: kind <= _BROADCAST)
        elif group.pattern <= _BROADCAST:
            if node.way <= _INJECTIVE or node.way == _REDUCE:
                self._join(node, sink, lambda kind, last: kind <= (_HEAVY if last else _INJECTIVE))
        elif group.pattern in (_INJECTIVE, _TUPLE) and round_ == 1:
            self._join(node, sink, lambda kind, last: kind <= _INJECTIVE)

    def _join(self, node: _Node, sink: _Node, allowed: Callable[[int, bool], bool]) -> None:
        """Make one group of all between a value and its dominator, if every pattern is allowed."""
        between: dict[_Node, None] = {}
        pending = [user for user, _ in node.users]
        while pending:
            user = pending.pop()
            if user in between:
                continue
            if not allowed(user.root().pattern, user is sink):
                return
            between[user] = None
            if user is not sink:
                pending += [after for after, _ in user.users]
        target = sink.root()
        for member in (node, *between):
            group = member.root()
            if group is target:
                continue
            group.joined = target
            target.size += group.size
            if group.pattern == _HEAVY:
                # A kernel has one of these; what follows it follows it alone.
                target.pattern = max(target.pattern, _HEAVY)


class _Writer(PostOrderMutator):
    """Writes each group as a function and its call."""

    def __init__(self, nodes: dict[RelayExpr, _Node]) -> None:
        super().__init__()
        self._nodes = nodes

    def _group(self, expr: RelayExpr) -> _Group | None:
        node = self._nodes.get(expr)
        return None if node is None else node.root()

    def _operand(self, expr: RelayExpr, group: _Group) -> RelayExpr:
        new = self.visit(expr)
        if self._group(expr) is group:
            return new
        for param, argument in zip(group.params, group.arguments):
            if argument.same_as(new):
                return param
        group.params.append(Var(f"p{len(group.params)}", expr.checked_type))
        group.arguments.append(new)
        return group.params[-1]

    def _function(self, group: _Group, body: RelayExpr, old: RelayExpr) -> RelayExpr:
        attrs = {"Primitive": 1}
        if isinstance(body, Call) and str(body.op.name) in _RESHAPES and group.size == 1:
            attrs["relay.reshape_only"] = 1
        func = Function(group.params, body, old.checked_type, [], attrs)
        return Call(func, group.arguments)

    def visit_function(self, func: Function) -> RelayExpr:
        return func if _is_kernel(func) else super().visit_function(func)

    def visit_call(self, call: Call) -> RelayExpr:
        group = self._group(call)
        if not isinstance(call.op, Op) or call.op.get_attr("TNonComputational") or group is None:
            return super().visit_call(call)
        args = [self._operand(arg, group) for arg in call.args]
        new = Call(call.op, args, call.attrs, call.type_args, call.span)
        return self._function(group, new, call) if group.result.same_as(call) else new

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        group = self._group(tup)
        if group is None or group.result.same_as(tup):
            return super().visit_tuple(tup)
        return Tuple([self._operand(item, group) for item in tup.fields])

    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        group = self._group(item)
        alone = group is None or self._group(item.tuple_value) is not group
        if group is None or (alone and group.result.same_as(item)):
            return super().visit_tuple_getitem(item)
        new = TupleGetItem(self._operand(item.tuple_value, group), item.index)
        return self._function(group, new, item) if group.result.same_as(item) else new


def _fused(func: Function, level: int) -> RelayExpr:
    graph = _Graph(func)
    _find_dominators(graph.order)
    fuser = _Fuser(graph.order)
    if level > 0:
        fuser.run()
    return _Writer(graph.nodes).visit(func)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Write operators that run as one kernel as functions with the attribute "Primitive".

    Elementwise operators go with what they follow, up to one reduction or heavy operator a kernel;
    `DefuseOps` takes the functions apart again. `relay.build` fuses by relax's rules, whatever
    functions there are.

    Parameters
    ----------
    fuse_opt_level : 0 makes a function of each operator; below that, what the pass context says.

    The option "relay.FuseOps.max_depth" of the pass context says how many operators a kernel has at
    most, in `relay.build` as well.
    """

    def rewrite(func: Function, mod: object) -> RelayExpr:
        level = PassContext.current().opt_level if fuse_opt_level < 0 else fuse_opt_level
        return _fused(func, int(level))

    return expression_pass(rewrite, 0, "FuseOps")


@tvm._ffi.register_func("relay.analysis.ExtractFusedFunctions")
def _extract_fused_functions(mod: IRModule) -> dict[str, Function]:
    found = _kernels_of(mod)
    if not found:
        with PassContext(opt_level=3):
            for step in (InferType(), SimplifyInference(), FuseOps(3), InferType()):
                mod = step(mod)
        found = _kernels_of(mod)
    return found


def _kernels_of(mod: IRModule) -> dict[str, Function]:
    found: dict[str, Function] = {}

    def look(expr: RelayExpr) -> None:
        if isinstance(expr, Function) and _is_kernel(expr):
            found.setdefault(f"{structural_hash(expr) % 2**64:016x}", expr)

    for func in mod.functions.values():
        if isinstance(func, Function):
            post_order_visit(func, look)
    return found
