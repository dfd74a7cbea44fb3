"""Groups operators into the kernels they will be compiled to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm.ir
from tvm.ir import GlobalVar, IRModule, RelayExpr
from tvm.ir.transform import PassContext

from .. import op
from ..analysis import free_symbolic_vars
from ..block_builder import NameSupply
from ..expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    Var,
    VarBinding,
)
from ..op import OpPattern
from ..op.rules import equal
from ..rewriter import graph_functions, uses_of
from ..struct_info import ShapeStructInfo, TensorStructInfo, open_shape
from ..te_lowering import call_flop
from .fuse_kernels import fuse_kernel_calls, has_kernel_patterns
from .graph_pass import graph_pass
from .grouping import largest_group

__all__ = ["FuseOps"]


# Functions of C that compiled code may call and that operators are named after.
_C_FUNCTIONS = frozenset(
    ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos",
     "cosh", "erf", "exp", "expm1", "floor", "fmod", "hypot", "log", "log10", "log1p", "log2",
     "nextafter", "pow", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")
)  # fmt: skip


# Operators of one expression; more, as from a chain of assignments to parts of a tensor of which
# each reads the one before it twice, take longer to compile than they save.
_LARGEST_EXPRESSION = 256
# Pieces of a row for each of which there is a loop.
_MOST_PIECES = 8
_PLAIN_REDUCTIONS = frozenset({"max", "mean", "min", "prod", "sum"})


@dataclass
class _Node:
    """One binding of a block."""

    index: int
    binding: VarBinding
    # None for what is not an operator, or is a view that costs nothing.
    pattern: OpPattern | None
    # Extents are numbers, or expressions where sizes are open.
    shape: tuple[Any, ...]
    users: list[int] = field(default_factory=list)
    # What it reads of the block, once for each read.
    inputs: list[int] = field(default_factory=list)
    escapes: bool = False
    # Immediate post-dominator: where all paths from here meet again; None for the block's end.
    meet: int | None = None
    depth: int = 0
    group: int | None = None


def _pattern_of(value: RelayExpr) -> OpPattern | None:
    if not isinstance(value, Call) or not op.has_op(value.op):
        return None
    spec = op.op_spec(value.op)
    return None if spec.is_view else spec.pattern


def _analyse(block: DataflowBlock) -> list[_Node]:
    nodes: list[_Node] = []
    producer: dict[Var, int] = {}
    for i, binding in enumerate(block.bindings):
        pattern = _pattern_of(binding.value)
        info = binding.var.struct_info
        shape = open_shape(info) if isinstance(info, TensorStructInfo) else ()
        node = _Node(i, binding, pattern, shape, escapes=not isinstance(binding.var, DataflowVar))
        for var in uses_of(binding.value):
            if var in producer:
                node.inputs.append(producer[var])
                if i not in nodes[producer[var]].users:
                    nodes[producer[var]].users.append(i)
        producer[binding.var] = i
        nodes.append(node)
    for node in reversed(nodes):
        _set_meet(node, nodes)
    return nodes


def _set_meet(node: _Node, nodes: list[_Node]) -> None:
    if node.escapes or not node.users:
        node.depth = 1
        return
    meet: int | None = node.users[0]
    for user in node.users[1:]:
        meet = _common(meet, user, nodes)
    node.meet = meet
    node.depth = 1 if meet is None else nodes[meet].depth + 1


def _common(a: int | None, b: int | None, nodes: list[_Node]) -> int | None:
    """Nearest common ancestor in the tree of immediate post-dominators."""
    while a is not None and b is not None and a != b:
        if nodes[a].depth >= nodes[b].depth:
            a = nodes[a].meet
        else:
            b = nodes[b].meet
    return a if a is not None and b is not None else None


def _between(start: int, end: int, nodes: list[_Node]) -> list[int]:
    """Nodes on the paths from start to end, end included, start not."""
    seen: set[int] = set()
    pending = [start]
    while pending:
        for user in nodes[pending.pop()].users:
            if user not in seen:
                seen.add(user)
                if user != end:
                    pending.append(user)
    return sorted(seen)


def _absorb(
    anchor: int, limit: OpPattern, nodes: list[_Node], members: list[int], most: int
) -> None:
    """Extends a group by what follows it as long as everything up to the next meeting fits."""
    anchor_node = nodes[anchor]
    last = anchor
    while nodes[last].meet is not None:
        end = nodes[last].meet
        assert end is not None
        added = _between(last, end, nodes)
        for i in added:
            node = nodes[i]
            if node.pattern is None or node.pattern > limit or node.group is not None:
                return
            # What follows is computed element by element with the anchor's result, so it must not
            # have more elements, and for a heavy anchor it must have the same ones.
            if limit <= OpPattern.BROADCAST and not _same(node.shape, anchor_node.shape):
                return
            if _may_be_more(node.shape, anchor_node.shape):
                return
        if len(members) + len(added) > most:
            return
        if _inlined_size(anchor, [*members, *added], nodes) > _LARGEST_EXPRESSION:
            return
        for i in added:
            nodes[i].group = anchor
            members.append(i)
        last = end


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are equal, whatever the open sizes in them are."""
    return len(a) == len(b) and all(map(equal, a, b))


def _may_be_more(shape: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether a shape has more elements than another, or may have for some open sizes."""
    rest = list(other)
    left = []
    for extent in shape:
        place = next((k for k, e in enumerate(rest) if equal(extent, e)), None)
        if place is None:
            left.append(extent)
        else:
            del rest[place]
    if not all(isinstance(extent, int) for extent in left):
        return True
    return math.prod(left) > math.prod(e for e in rest if isinstance(e, int))


def _inlined_size(anchor: int, members: list[int], nodes: list[_Node]) -> int:
    """Operators in the largest expression of a kernel that computes values where they are read.

    A value that is read twice counts twice, and so does all it is computed from but the result of
    the anchor.
    """
    sizes = {anchor: 1}
    for i in sorted(members):
        if i != anchor:
            sizes[i] = 1 + sum(sizes.get(k, 0) for k in nodes[i].inputs)
    return max(sizes.values())


def _form_groups(nodes: list[_Node], most: int) -> dict[int, list[int]]:
    """Members of each group by its anchor.

    most : operators in a group.
    """
    groups: dict[int, list[int]] = {}
    heavy = [n for n in nodes if n.pattern in (OpPattern.OUT_FUSABLE, OpPattern.COMM_REDUCE)]
    # Where two could take the same epilogue, a residual addition for instance, it goes to the one
    # with more work, which hides it better; ties go to the later one.
    heavy.sort(key=lambda n: (-call_flop(n.binding.value), -n.index))
    for node in heavy:
        node.group = node.index
    light = [n for n in nodes if n.pattern is not None and n.pattern <= OpPattern.INJECTIVE]
    for node in heavy:
        members = groups.setdefault(node.index, [node.index])
        _absorb(node.index, OpPattern.BROADCAST, nodes, members, most)
    for node in light:
        if node.group is None:
            node.group = node.index
            members = groups.setdefault(node.index, [node.index])
            _absorb(node.index, OpPattern.INJECTIVE, nodes, members, most)
    _join_producers(nodes, groups, most)
    for node in nodes:
        if node.pattern is OpPattern.OPAQUE:
            node.group = node.index
            groups[node.index] = [node.index]
    return groups


def _is_elementwise(node: _Node) -> bool:
    if node.pattern is None:
        return False
    return node.pattern <= OpPattern.BROADCAST or _op_label(node.binding.value) == "strided_slice"


def _is_joined(join: _Node, pieces: list[_Node]) -> bool:
    """Whether slices are computed where a concatenation reads them.

    It reads each of their elements once, whichever piece that is of, and rows of them as rows.
    """
    call = join.binding.value
    if join.pattern is not OpPattern.INJECTIVE or _op_label(call) != "concat":
        return False
    return len(join.inputs) <= _MOST_PIECES and all(map(_keeps_rows, pieces))


def _keeps_rows(node: _Node) -> bool:
    """Whether a node is a slice whose neighbours along the last dimension are neighbours."""
    call = node.binding.value
    if _op_label(call) != "strided_slice":
        return False
    settings = op.attrs_of(call)
    steps = settings.get("strides") or [1] * len(settings["axes"])
    rank = len(node.shape)
    return all(
        int(step) == 1 for a, step in zip(settings["axes"], steps) if int(a) % rank == rank - 1
    )


def _join_producers(nodes: list[_Node], groups: dict[int, list[int]], most: int) -> None:
    """Joins elementwise groups with the elementwise group, or the plain reduction, that alone reads
    their result.

    Slices count as elementwise: they compute nothing, and read neighbours as neighbours.
    """

    def is_elementwise(members: list[int]) -> bool:
        return all(_is_elementwise(nodes[i]) for i in members)

    for anchor in sorted(groups, key=lambda a: -max(groups[a])):
        members = groups[anchor]
        end = nodes[max(members)]
        readers = {nodes[user].group for user in end.users}
        if end.escapes or len(readers) != 1 or not is_elementwise(members):
            continue
        (reader,) = readers
        if reader is None or reader == anchor:
            continue
        # A plain reduction reads each element once, whatever it is computed from.
        reduced = nodes[reader].pattern is OpPattern.COMM_REDUCE and end.users == [reader]
        if reduced and _op_label(nodes[reader].binding.value) not in _PLAIN_REDUCTIONS:
            continue
        piece = end.users == [reader] and _is_joined(nodes[reader], [nodes[i] for i in members])
        if not reduced and not piece:
            if not is_elementwise(groups[reader]):
                continue
            if not _same(end.shape, nodes[max(groups[reader])].shape):
                continue
        together = [*groups[reader], *members]
        if len(together) > most:
            continue
        if _inlined_size(min(together), together, nodes) > _LARGEST_EXPRESSION:
            continue
        for i in members:
            nodes[i].group = reader
        groups[reader] += groups.pop(anchor)


def _op_label(call: Call) -> str:
    name = str(call.op.name).split(".")[-1]
    if name != "conv2d":
        return name
    settings = op.attrs_of(call)
    if settings["kernel_layout"] == "HWOI":
        return "depthwise_conv2d"
    return "conv2d" if settings["groups"] == 1 else "group_conv2d"


class _Fuser:
    """Makes the group functions of one module; groups of equal structure share one.

    most : operators in a group.
    """

    def __init__(self, names: NameSupply, most: int) -> None:
        self._names = names
        self._most = most
        self.functions: dict[GlobalVar, Function] = {}
        self._by_hash: dict[int, list[GlobalVar]] = {}

    def fuse(self, func: Function) -> Function:
        blocks = [
            self._fuse_block(block) if isinstance(block, DataflowBlock) else block
            for block in func.body.blocks
        ]
        return Function(
            func.params, SeqExpr(blocks, func.body.body), is_pure=func.is_pure, attrs=func.attrs
        )

    def _fuse_block(self, block: BindingBlock) -> DataflowBlock:
        nodes = _analyse(block)
        groups = _form_groups(nodes, self._most)
        # A group is called where its last member stood: by then all it reads has been computed.
        by_last = {max(members): sorted(members) for members in groups.values()}
        bindings = []
        for node in nodes:
            if node.index in by_last:
                members = [nodes[i].binding for i in by_last[node.index]]
                bindings.append(VarBinding(node.binding.var, self._call_group(members)))
            elif node.group is None:
                bindings.append(node.binding)
        return DataflowBlock(bindings)

    def _call_group(self, members: Sequence[VarBinding]) -> Call:
        params: list[Var] = []
        args: list[RelayExpr] = []
        inner: dict[Var, Var] = {}

        def localise(expr: RelayExpr) -> RelayExpr:
            if isinstance(expr, Tuple):
                return Tuple([localise(item) for item in expr.fields])
            if isinstance(expr, (PrimValue, ShapeExpr)):
                return expr
            if isinstance(expr, Var) and expr in inner:
                return inner[expr]
            for param, arg in zip(params, args):
                if arg.same_as(expr):
                    return param
            assert isinstance(expr, (Var, Constant))
            params.append(Var(f"p{len(params)}", expr.struct_info))
            args.append(expr)
            return params[-1]

        bindings = []
        for i, member in enumerate(members):
            call = member.value
            operands = [
                localise(arg) if number is None else arg
                for arg, number in zip(call.args, op.number_operands(call.args))
            ]
            value = Call(call.op, operands, call.attrs, (), call.struct_info)
            last = i == len(members) - 1
            var = Var("gv", call.struct_info) if last else DataflowVar(f"lv{i}", call.struct_info)
            inner[member.var] = var
            bindings.append(VarBinding(var, value))
        body = SeqExpr([DataflowBlock(bindings)], bindings[-1].var)
        func = Function(params, body, attrs={"Primitive": 1})
        # Extents that no shape of an operand says come as a shape of their own.
        extents = free_symbolic_vars(func)
        if extents:
            shape = Var("extents", ShapeStructInfo(list(extents)))
            func = Function([*params, shape], body, attrs={"Primitive": 1})
            args.append(ShapeExpr(list(extents)))
        labels = [_op_label(member.value) for member in members]
        # A kernel of the name of a C function would be called in its place, by itself.
        alone = len(labels) == 1 and labels[0] not in _C_FUNCTIONS
        name = labels[0] if alone else "fused_" + "_".join(labels)
        return Call(self._share(func, name), args, None, (), func.ret_struct_info)

    def _share(self, func: Function, name: str) -> GlobalVar:
        same = self._by_hash.setdefault(tvm.ir.structural_hash(func), [])
        for gvar in same:
            if tvm.ir.structural_equal(self.functions[gvar], func):
                return gvar
        gvar = GlobalVar(self._names.fresh(name))
        self.functions[gvar] = func
        same.append(gvar)
        return gvar


@graph_pass("FuseOps")
def FuseOps(mod: IRModule, fuse_opt_level: int = -1) -> IRModule:
    """The module with every operator inside a function of attribute "Primitive".

    A convolution, dense layer, pool or reduction takes the elementwise operators that follow it;
    the rest of the elementwise and injective operators form chains, and chains of elementwise
    operators and slices whose results are read by one other alone, or by a sum, mean, product or
    extreme, are joined with it, and slices with the concatenation that they are the pieces of. A
    group has one output: with several
    readers of a value, everything up to the point where all paths meet is taken, or nothing.
    Constants other than scalars become parameters, and groups that differ only in these
    are one function, called several times. Views such as reshape stay outside.

    In a module whose kernels have the attribute "op_pattern" (`AnnotateTIROpPattern`), calls of
    these are grouped instead, and `FuseTIR` makes each group one kernel.

    Parameters
    ----------
    fuse_opt_level : 0 leaves the module as it is; any other level fuses. By default that of the
        pass context counts, under whose level 0 each operator is a function of its own.

    The option "relax.FuseOps.max_depth" of the pass context, or "relay.FuseOps.max_depth" for
    graphs that come from relay, says how many operators a group has at most.

    Raises
    ------
    ValueError : that option is below one.
    """
    if fuse_opt_level == 0:
        return mod
    if has_kernel_patterns(mod):
        return fuse_kernel_calls(mod)
    names = NameSupply()
    functions = dict(mod.functions.items())
    for gvar in functions:
        names.fresh(str(gvar.name_hint))
    joins = fuse_opt_level != -1 or PassContext.current().opt_level > 0
    fuser = _Fuser(names, largest_group() if joins else 1)
    for gvar, func in graph_functions(mod).items():
        functions[gvar] = fuser.fuse(func)
    functions.update(fuser.functions)
    return mod.with_functions(functions)
