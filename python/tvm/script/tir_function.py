"""Functions of tensor programs."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tvm import tir

from .reader import Surroundings
from .source import Source
from .tir_block import BlockParts
from .tir_stmt import StmtReader

__all__ = ["read_prim_func"]


def read_prim_func(source: Source, node: ast.FunctionDef, around: Surroundings) -> tir.PrimFunc:
    """The function that a definition under ``@T.prim_func`` describes.

    Raises
    ------
    DiagnosticError : the text is not a tensor program; the message has its place.
    """
    return _FunctionReader(source, around).function(node)


class _FunctionReader(StmtReader):
    def __init__(self, source: Source, around: Surroundings) -> None:
        super().__init__(source, around)
        self.attrs: dict[str, Any] | None = None

    def function(self, node: ast.FunctionDef) -> tir.PrimFunc:
        options = decorator_options(self, node, ("private", "implicit_root", "name"))
        self.blocks.append(BlockParts())
        self._parameters(node)
        # A function without a result may say so, as Python's do.
        is_none = isinstance(node.returns, ast.Constant) and node.returns.value is None
        result = None if node.returns is None or is_none else self.type(node.returns)
        body = self._root(node, options.get("implicit_root", True))
        attrs = self.attrs or {}
        if not options.get("private", False) and "global_symbol" not in attrs:
            attrs = {"global_symbol": options.get("name", node.name), **attrs}
        with self.blaming(node):
            return tir.PrimFunc(self.params, body, result, self.buffer_map, attrs)

    def _parameters(self, node: ast.FunctionDef) -> None:
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            raise self.error(node, "parameters of a T.prim_func are plain: no *, ** or defaults")
        for argument in [*arguments.posonlyargs, *arguments.args]:
            kind = argument.annotation
            if kind is None:
                raise self.error(
                    argument,
                    f"parameter `{argument.arg}` has no type",
                    f'for instance `{argument.arg}: T.Buffer((8,), "float32")`, or T.handle',
                )
            buffer = self._annotated_buffer(argument.arg, kind)
            if buffer is None:
                var = self.make_var(argument.arg, kind)
                self.define(argument.arg, var)
            else:
                var = tir.Var(argument.arg, "handle")
                self.buffer_map[var] = buffer
                self.define(argument.arg, buffer)
            self.params.append(var)

    def _annotated_buffer(self, name: str, kind: ast.AST) -> tir.Buffer | None:
        if isinstance(kind, ast.Subscript) and self.construct(kind.value) == "T.Buffer":
            # The spelling of older scripts, T.Buffer[(8,), "float32"].
            items = kind.slice
            whole = [items] if not isinstance(items, ast.Tuple) else items.elts
            kind = ast.copy_location(ast.Call(kind.value, list(whole), []), kind)
        if isinstance(kind, ast.Call) and self.construct(kind.func) == "T.Buffer":
            return self.buffer(kind, name)
        return None

    def func_attr(self, node: ast.Call) -> None:
        if self.attrs is not None:
            raise self.error(node, "the attributes of the function are given twice")
        self.attrs = self.attributes(self.arguments(node, ("attrs",), 1)["attrs"])

    def _root(self, node: ast.FunctionDef, implicit: bool) -> tir.Stmt:
        """The body, in a root block if there are blocks and the text does not have one itself."""
        body = self.lines(node.body)
        root = self.blocks.pop()
        named = isinstance(body, tir.BlockRealize) and str(body.block.name_hint) == "root"
        if not (root.buffers or root.matches):
            own = named and not len(body.iter_values)
            if own or not implicit or not _has_blocks(body):
                return body
        root.reads, root.writes = [], []
        return root.realize("root", body)


def _has_blocks(body: tir.Stmt) -> bool:
    found = []

    def visit(node: Any) -> bool:
        if isinstance(node, tir.Block):
            found.append(node)
        return not found

    tir.stmt_functor.pre_order_visit(body, visit)
    return bool(found)


def decorator_options(reader: Any, node: ast.FunctionDef, names: Sequence[str]) -> dict[str, Any]:
    """The options in the decorator's parentheses."""
    options: dict[str, Any] = {}
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            if decorator.args:
                raise reader.error(decorator.args[0], "options of a decorator have names")
            found = reader.arguments(decorator, names, 0)
            for name, value in found.items():
                options[name] = reader.text(value) if name == "name" else reader.flag(value)
    return options
