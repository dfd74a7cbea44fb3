"""Expressions of graphs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir, relax
from tvm.relax import StructInfo, TupleStructInfo
from tvm.relax.op import has_op, infer_struct_info

from .relax_struct_info import StructInfoReader

__all__ = ["GraphExprReader"]

_DESTINATION = ("call_tir", "call_dps_packed")


class GraphExprReader(StructInfoReader):
    """Reads the values of bindings."""

    def graph(self, node: ast.AST, info: StructInfo | None = None) -> ir.RelayExpr:
        """A graph expression.

        Parameters
        ----------
        info : what is said about the value; without it, calls work it out.
        """
        if isinstance(node, ast.Name):
            value = self.lookup(node)
            if isinstance(value, ir.RelayExpr):
                return value
            raise self.error(node, f"`{node.id}` is not a graph value")
        if isinstance(node, ast.Tuple | ast.List):
            return relax.Tuple([self.graph(item) for item in node.elts])
        if isinstance(node, ast.Subscript):
            return self._element_of(node)
        match node:
            case ast.Attribute(value=ast.Name(id="cls"), attr=name):
                return self.global_var(name)
        if isinstance(node, ast.Call):
            with self.blaming(node):
                return self._graph_call(node, info)
        raise self.error(
            node,
            f"`{ast.unparse(node)}` is not a graph expression",
            'operators are called by name, R.add(x, y); numbers are R.const(1.0, "float32")',
        )

    def _element_of(self, node: ast.Subscript) -> ir.RelayExpr:
        if isinstance(node.value, ast.Subscript) or not isinstance(node.slice, ast.Constant):
            kept = self.metadata(node)
            if not isinstance(kept, relax.Constant):
                raise self.error(node, "this is not the metadata of a constant")
            return kept
        with self.blaming(node):
            return relax.TupleGetItem(self.graph(node.value), self.integer(node.slice))

    def _graph_call(self, node: ast.Call, info: StructInfo | None) -> ir.RelayExpr:
        match node.func:
            case ast.Attribute(value=ast.Name(id="cls"), attr=name):
                return self._call_of(node, self.global_var(name), node.args, info)
            case ast.Call() as inner if self.called(inner) == "I.GlobalVar":
                return self._call_of(node, self.attribute(inner), node.args, info)
        what = self.construct(node.func)
        if what == "I.GlobalVar":
            return self.attribute(node)
        if what is None or not what.startswith("R."):
            raise self.error(
                node.func, f"`{ast.unparse(node.func)}` cannot be called in a graph function"
            )
        name = what[2:]
        if name == "const":
            found = self.arguments(node, ("value", "dtype"), 1)
            dtype = self.dtype(found["dtype"]) if "dtype" in found else None
            return relax.const(self.plain(found["value"]), dtype)
        if name == "shape":
            return relax.ShapeExpr(self.extents(self.arguments(node, ("values",), 1)["values"]))
        if name == "tuple":
            return relax.Tuple([self.graph(item) for item in node.args])
        if name == "ExternFunc":
            return relax.ExternFunc(self.text(self.arguments(node, ("name",), 1)["name"]))
        if name in ("call_packed", "call_op"):
            if not node.args:
                raise self.error(node, f"{what} begins with the name of what it calls")
            symbol = self.text(node.args[0])
            callee = relax.ExternFunc(symbol) if name == "call_packed" else ir.Op.get(symbol)
            return self._call_of(node, callee, node.args[1:], info)
        if name in _DESTINATION:
            return self._destination_call(node, name, info)
        return self._operator(node, name, info)

    def _operator(self, node: ast.Call, name: str, info: StructInfo | None) -> ir.RelayExpr:
        try:
            op = ir.Op.get(f"relax.{name}")
        except ValueError:
            raise self.error(
                node.func,
                f"there is no operator `R.{name}`",
                _close(name, [str(known) for known in ir.Op.list_op_names()]),
            ) from None
        make = _constructor(name)
        if info is None and make is not None:
            # Written by a person: the operator's own function knows what is left out.
            arguments = [self._operand(item) for item in node.args]
            named = {k.arg: self.attribute(k.value) for k in node.keywords if k.arg is not None}
            return make(*arguments, **named)
        return self._call_of(node, op, node.args, info)

    def _operand(self, node: ast.AST) -> Any:
        """An argument of an operator's function: a graph value, or a setting."""
        if isinstance(node, ast.Constant | ast.UnaryOp):
            return self.plain(node)
        if isinstance(node, ast.List):
            return self.attribute(node)
        return self.graph(node)

    def _call_of(
        self, node: ast.Call, op: ir.RelayExpr, args: Sequence[ast.expr], info: StructInfo | None
    ) -> relax.Call:
        attrs: dict[str, Any] = {}
        results: list[StructInfo] = []
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error(keyword, "** is not part of scripts; write the settings out")
            if keyword.arg == "sinfo_args":
                results = self._infos(keyword.value)
            else:
                attrs[keyword.arg] = self.attribute(keyword.value)
        operands = [self.graph(arg) for arg in args]
        # DictAttrs itself, so that a setting that is None is kept.
        call = relax.Call(op, operands, ir.DictAttrs(attrs), results, info)
        if info is not None:
            return call
        return relax.Call(op, operands, call.attrs, results, self._result(node, call))

    def _result(self, node: ast.AST, call: relax.Call) -> StructInfo:
        if len(call.sinfo_args) > 0:
            infos = list(call.sinfo_args)
            return infos[0] if len(infos) == 1 else TupleStructInfo(infos)
        if isinstance(call.op, ir.Op) and has_op(call.op):
            return infer_struct_info(call)
        raise self.error(
            node,
            "nothing says what this call returns",
            "annotate the binding, `y: R.Tensor(...) = ...`, or give sinfo_args=[R.Tensor(...)]",
        )

    def _infos(self, node: ast.AST) -> list[StructInfo]:
        items = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        return [self.struct_info(item) for item in items]

    def _destination_call(self, node: ast.Call, name: str, info: StructInfo | None) -> relax.Call:
        found = self.arguments(node, ("callee", "args", "out_sinfo"), 3)
        callee_node = found["callee"]
        if isinstance(callee_node, ast.Constant):
            callee: ir.RelayExpr = relax.ExternFunc(self.text(callee_node))
        else:
            callee = self.graph(callee_node)
        given = found["args"]
        if isinstance(given, ast.Tuple | ast.List):
            operands: ir.RelayExpr = relax.Tuple([self.graph(item) for item in given.elts])
        else:
            operands = self.graph(given)
            if not isinstance(operands.struct_info, TupleStructInfo):
                operands = relax.Tuple([operands])
        results = self._infos(found["out_sinfo"])
        result = results[0] if len(results) == 1 else TupleStructInfo(results)
        op = ir.Op.get(f"relax.{name}")
        return relax.Call(op, [callee, operands], ir.DictAttrs(), results, info or result)


def _constructor(name: str) -> Callable[..., Any] | None:
    """The function of ``tvm.relax.op`` that makes a call of an operator."""
    place: Any = relax.op
    for part in name.split("."):
        place = getattr(place, part, None)
    return place if callable(place) else None


def _close(name: str, known: Sequence[str]) -> str:
    import difflib

    names = [item[len("relax.") :] for item in known if item.startswith("relax.")]
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean `R.{close[0]}`?" if close else ""
