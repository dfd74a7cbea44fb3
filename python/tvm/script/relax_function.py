"""Graph functions: parameters, blocks of bindings, and the result."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from tvm import ir, relax

from .options import decorator_options
from .reader import Surroundings
from .relax_expr import GraphExprReader
from .source import Source

__all__ = ["read_relax_function"]


def read_relax_function(
    source: Source, node: ast.FunctionDef, around: Surroundings
) -> relax.Function:
    """The function that a definition under ``@R.function`` describes.

    Raises
    ------
    DiagnosticError : the text is not a graph function; the message has its place.
    """
    return _GraphReader(source, around).function(node)


@dataclass
class _Block:
    """Bindings that belong together; `outputs` are the names a dataflow block gives away."""

    outputs: frozenset[str] | None
    bindings: list[relax.VarBinding] = field(default_factory=list)

    def finish(self) -> relax.BindingBlock:
        make = relax.BindingBlock if self.outputs is None else relax.DataflowBlock
        return make(self.bindings)


class _GraphReader(GraphExprReader):
    def __init__(self, source: Source, around: Surroundings) -> None:
        super().__init__(source, around)
        self.attrs: dict[str, Any] = {}
        self.blocks: list[_Block] = []
        self.plain_block: _Block | None = None

    def function(self, node: ast.FunctionDef) -> relax.Function:
        options = decorator_options(self, node, ("private", "pure", "name"))
        self._declare_extents(node)
        params = self._parameters(node)
        result_info = None if node.returns is None else self.struct_info(node.returns)
        result: ir.RelayExpr | None = None
        for line in node.body:
            if result is not None:
                raise self.error(line, "nothing follows the return of a graph function")
            if isinstance(line, ast.Return):
                if line.value is None:
                    raise self.error(line, "a graph function returns a value")
                result = self.graph(line.value)
            else:
                self._line(line, None)
        if result is None:
            raise self.error(node, f"`{node.name}` returns nothing", "end it with `return value`")
        attrs = self.attrs
        if not options.get("private", False) and "global_symbol" not in attrs:
            attrs = {"global_symbol": options.get("name", node.name), **attrs}
        with self.blaming(node):
            body = relax.SeqExpr([block.finish() for block in self.blocks], result)
            return relax.Function(
                params, body, result_info, options.get("pure", True), ir.DictAttrs(attrs)
            )

    def _declare_extents(self, node: ast.FunctionDef) -> None:
        # The body declares the symbolic extents, but the signature uses them first.
        for line in node.body:
            if isinstance(line, ast.Assign):
                self._declares(line)

    def _declares(self, line: ast.Assign) -> bool:
        target, value = line.targets[0], line.value
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        calls = value.elts if isinstance(value, ast.Tuple) else [value]
        if len(names) != len(calls):
            return False
        if not all((self.called(call) or "").startswith("T.") for call in calls):
            return False
        for name, call in zip(names, calls):
            if not isinstance(name, ast.Name):
                raise self.error(name, "the name of a variable is needed")
            if not self.is_defined(name.id):
                self._scopes[0][name.id] = self.make_var(name.id, call)
        return True

    def _parameters(self, node: ast.FunctionDef) -> list[relax.Var]:
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            raise self.error(node, "parameters of an R.function are plain: no *, ** or defaults")
        params = []
        for argument in [*arguments.posonlyargs, *arguments.args]:
            kind = argument.annotation
            info = None if kind is None else self.struct_info(kind)
            params.append(relax.Var(argument.arg, info))
            self.define(argument.arg, params[-1])
        return params

    # ---- lines ----

    def _line(self, line: ast.stmt, block: _Block | None) -> None:
        match line:
            case ast.Assign(targets=[ast.Name(id="cls")], value=ast.Name()):
                return
            case ast.Assign() if self._declares(line):
                return
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._bind(name, None, value, block)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._bind(name, line.annotation, value, block)
            case ast.With(items=[ast.withitem(optional_vars=None) as item]) if block is None:
                self._with(line, item.context_expr)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                return
            case ast.Expr(value=ast.Call() as call):
                self._call_line(call, block)
            case _:
                raise self.error(
                    line,
                    f"`{ast.unparse(line).splitlines()[0]}` is not a line of a graph function",
                    "there are bindings, `with R.dataflow():`, R.output and return",
                )

    def _call_line(self, call: ast.Call, block: _Block | None) -> None:
        what = self.construct(call.func)
        if what == "R.func_attr":
            self.attrs |= self.attributes(self.arguments(call, ("attrs",), 1)["attrs"])
        elif what == "R.output":
            if block is None or block.outputs is None:
                raise self.error(call, "R.output ends a dataflow block")
        else:
            # A call for its effect has a name too, which nothing uses.
            self._bind("_", None, call, block)

    def _with(self, line: ast.With, opening: ast.expr) -> None:
        what = self.called(opening)
        if what == "R.dataflow":
            block = _Block(self._outputs(line))
        elif what == "R.block":
            block = _Block(None)
        else:
            raise self.error(opening, f"`{ast.unparse(opening)}` is not a block of bindings")
        self.blocks.append(block)
        self.plain_block = None
        known = dict(self._scopes[-1])
        for inner in line.body:
            self._line(inner, block)
        if block.outputs is not None:
            # What is not an output ends with its block.
            for name, value in list(self._scopes[-1].items()):
                if isinstance(value, relax.DataflowVar) and name not in known:
                    del self._scopes[-1][name]
            missing = block.outputs - {str(b.var.name_hint) for b in block.bindings}
            if missing:
                raise self.error(line, f"R.output names `{min(missing)}`, which is not bound here")

    def _outputs(self, line: ast.With) -> frozenset[str]:
        for inner in line.body:
            if isinstance(inner, ast.Expr) and self.called(inner.value) == "R.output":
                assert isinstance(inner.value, ast.Call)
                names = []
                for item in inner.value.args:
                    if not isinstance(item, ast.Name):
                        raise self.error(item, "R.output takes the names of values")
                    names.append(item.id)
                return frozenset(names)
        raise self.error(
            line, "the dataflow block gives nothing away", "end it with R.output(name)"
        )

    def _bind(
        self, name: str, annotation: ast.AST | None, value_node: ast.AST, block: _Block | None
    ) -> None:
        info = None if annotation is None else self.struct_info(annotation)
        value = self.graph(value_node, info)
        if info is None:
            info = value.struct_info
        local = block is not None and block.outputs is not None and name not in block.outputs
        with self.blaming(value_node):
            var = (relax.DataflowVar if local else relax.Var)(name, info)
            binding = relax.VarBinding(var, value)
        if block is None:
            if self.plain_block is None:
                self.plain_block = _Block(None)
                self.blocks.append(self.plain_block)
            block = self.plain_block
        block.bindings.append(binding)
        self.define(name, var)
