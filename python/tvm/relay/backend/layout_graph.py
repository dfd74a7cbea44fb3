"""Which layouts of a program depend on which, for choosing blocks for all operators together."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm.autotvm.task.topi_integration import deep_tuple
from tvm.ir import IRModule, Op, RelayExpr, TensorType, TupleType
from tvm.target import Target

from ..analysis.infer import infer_module
from ..expr import Call, Constant, Tuple, TupleGetItem
from ..expr_functor import post_order_visit
from ..op.registry import find_row
from ..transform.layouts import infer_call
from .templates import prepared, workloads_of

__all__: list[str] = []

# Who says a tensor's layout: an operator by its number, or one of these.
_PLAIN = -1
_FREE = -2  # Constants, whose layout changes when the program is compiled.


@dataclass
class _LayoutGraph:
    """Operators whose blocks are chosen, and the tensors that are moved where choices differ.

    Parameters
    ----------
    names, wanted : the operators to choose for, and their workloads that have records.

    Attributes
    ----------
    edges : operator or -1 that a tensor comes from; operator or -1 whose layout it must have;
        whether that is the layout that the operator reads, or else the one it gives; shape; type.
    """

    target: Target
    names: Collection[str]
    wanted: Collection[Any]
    workloads: list[Any] = field(default_factory=list)
    edges: list[tuple[int, int, bool, list[int], str]] = field(default_factory=list)
    leaders: dict[RelayExpr, Any] = field(default_factory=dict)

    def visit(self, expr: RelayExpr) -> None:
        """Enter an expression whose operands are entered."""
        if isinstance(expr, Constant):
            self.leaders[expr] = _FREE
        elif isinstance(expr, Tuple):
            self.leaders[expr] = [self._of(part) for part in expr.fields]
        elif isinstance(expr, TupleGetItem):
            fields = self._of(expr.tuple_value)
            self.leaders[expr] = fields[expr.index] if isinstance(fields, list) else _PLAIN
        elif isinstance(expr, Call) and isinstance(expr.op, Op):
            self.leaders[expr] = self._call(expr)
        elif isinstance(expr, Call):
            for arg in expr.args:
                self.end(arg)

    def end(self, expr: RelayExpr) -> None:
        """Use a value where it must have the program's layout."""
        for leader, type_ in self._flat(expr):
            self._move(leader, _PLAIN, False, type_)

    def _of(self, expr: RelayExpr) -> Any:
        return self.leaders.get(expr, _PLAIN)

    def _flat(self, expr: RelayExpr) -> list[tuple[int, Any]]:
        """The tensors of a value with who says their layouts."""
        found = self._of(expr)
        if isinstance(expr.checked_type_, TupleType):
            types = list(expr.checked_type_.fields)
            return list(zip(found if isinstance(found, list) else [_PLAIN] * len(types), types))
        return [(found, expr.checked_type_)]

    def _move(self, source: int, reader: int, reads: bool, type_: Any) -> None:
        # A layer with blocks is four-dimensional; what stays in one layout is not moved.
        moved = source != _FREE and (source, reads) != (reader, False)
        if moved and isinstance(type_, TensorType) and len(type_.shape) == 4:
            shape = [int(extent) for extent in type_.shape]
            self.edges.append((source, reader, reads, shape, str(type_.dtype)))

    def _call(self, call: Call) -> Any:
        found = workloads_of(call, self.target) if str(call.op.name) in self.names else []
        workloads = [workload for workload in found if workload in self.wanted]
        if workloads:
            number = len(self.workloads)
            self.workloads.append(workloads[0])
            self._move(self._of(call.args[0]), number, True, call.args[0].checked_type_)
            return number
        operands = [part for arg in call.args for part in self._flat(arg)]
        leader = next((number for number, _ in operands if number >= 0), None)
        laid = None if leader is None else self._follows(call, operands, leader)
        if laid is None:
            for number, type_ in operands:
                self._move(number, _PLAIN, False, type_)
            return _PLAIN
        inputs, outputs = laid
        assert leader is not None
        for (number, type_), blocked in zip(operands, inputs):
            self._move(number, leader if blocked else _PLAIN, False, type_)
        given = [leader if blocked else _PLAIN for blocked in outputs]
        return given if isinstance(call.checked_type_, TupleType) else given[0]

    @staticmethod
    def _follows(
        call: Call, operands: Sequence[tuple[int, Any]], leader: int
    ) -> tuple[list[bool], list[bool]] | None:
        """Which operands and results are in blocks if the first one is; None if none can be."""
        if find_row(call.op) is None:
            return None
        types = [type_ for _, type_ in operands]
        if any(not isinstance(type_, TensorType) for type_ in types):
            return None
        before = infer_call(call, None, ["NCHW" if n >= 0 else None for n, _ in operands], types)
        if before is None:
            return None
        channels = next(int(type_.shape[1]) for n, type_ in operands if n == leader)
        block = f"NCHW{2 if channels % 2 == 0 else channels}c"
        new = [block if n >= 0 else old for (n, _), old in zip(operands, before.inputs)]
        after = infer_call(call, new, list(before.inputs), types)
        if after is None:
            return None
        found = [[any(c.isdigit() for c in str(one)) for one in side]
                 for side in (after.inputs, after.outputs)]  # fmt: skip
        return found[0], found[1]


@tvm._ffi.register_func("relay.LayoutGraph")
def _layout_graph(
    mod: Any, shapes: Mapping[str, Any], target: Target, names: Sequence[Any], workloads: str
) -> str:
    """Operators and edges of a program as JSON; see `_LayoutGraph`.

    Parameters
    ----------
    shapes : of inputs by name, which must be those of the program.
    names : operators to choose for.
    workloads : those that have records, as JSON.
    """
    mod = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    mod = infer_module(mod)
    for param in mod["main"].params:
        given = shapes.get(str(param.name_hint))
        known = [int(extent) for extent in param.checked_type.shape]
        if given is not None and [int(extent) for extent in given] != known:
            raise tvm.error.ValueError(
                f"graph tuner: input '{param.name_hint}' has the shape {known}, got {list(given)}"
            )
    mod = prepared(mod)
    wanted = {deep_tuple(workload) for workload in json.loads(workloads)}
    graph = _LayoutGraph(target, {str(name) for name in names}, wanted)
    post_order_visit(mod["main"].body, graph.visit)
    graph.end(mod["main"].body)
    return json.dumps({"workloads": graph.workloads, "edges": graph.edges})
