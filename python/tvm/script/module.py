"""Modules, and what stands at the top of a text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from tvm import ir, relax, tir
from tvm._ffi import get_global_func

from .evaluator import Dialect, Evaluator
from .graph import graph_member, read_relax_function
from .ir_builder import ir as I
from .ir_builder.base import IRBuilder
from .options import decorator_options
from .program import read_prim_func
from .reader import DIALECTS, Surroundings
from .source import Source

__all__ = ["read_definition", "read_text"]

# Reads a function by the construct it is decorated with.
_FUNCTIONS: Mapping[str, Callable[[Source, ast.FunctionDef, Surroundings], ir.BaseFunc]] = {
    "T.prim_func": read_prim_func,
    "R.function": read_relax_function,
}

# By the mark that decorators of programs' own have, which call one of those.
_TOKENS = {"tir": "T.prim_func", "relax": "R.function"}


def read_text(
    source: Source, constants: Mapping[str, Any] | None = None, check_well_formed: bool = False
) -> Any:
    """The function or module of a text.

    Parameters
    ----------
    constants : values by name that the text may use besides its own.
    check_well_formed : refuse tensor programs whose variables are not bound once before their use.
    """
    reader = _TopReader(source, Surroundings(constants), check_well_formed)
    return reader.text_of(source.tree())


def read_definition(source: Source, around: Surroundings, check_well_formed: bool) -> Any:
    """The function or module of the only definition in a text."""
    return _TopReader(source, around, check_well_formed).definition(source.tree().body[0])


class _TopReader(Evaluator):
    """Reads the lines outside of functions."""

    def __init__(self, source: Source, around: Surroundings, check_well_formed: bool) -> None:
        super().__init__(source, around)
        # Meshes of devices stand among what a module says beside its functions.
        self._dialects["R"] = Dialect("R", graph_member)
        self._check = check_well_formed

    def text_of(self, tree: ast.Module) -> Any:
        found: list[ast.stmt] = []
        for node in tree.body:
            if isinstance(node, ast.ImportFrom | ast.Import):
                self._import(node)
            elif isinstance(node, ast.Assign):
                self._metadata(node)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.append(node)
            elif not _is_text(node):
                raise self.error(
                    node, "outside of functions there are only imports, metadata and definitions"
                )
        if len(found) != 1:
            raise self.error(
                found[1] if found else tree,
                f"a text has one function or one module, this one has {len(found)}",
                "put several functions into a class under @I.ir_module",
            )
        return self.definition(found[0])

    def _import(self, node: ast.ImportFrom | ast.Import) -> None:
        # Only which name stands for which dialect is of interest; nothing is imported.
        if isinstance(node, ast.ImportFrom) and node.module == "tvm.script":
            by_module = {path.rsplit(".", 1)[1]: name for name, path in DIALECTS.items()}
            for alias in node.names:
                if alias.name not in by_module:
                    raise self.error(node, f"tvm.script has no dialect `{alias.name}`")
                self.around.dialects[alias.asname or alias.name] = by_module[alias.name]

    def _metadata(self, node: ast.Assign) -> None:
        target, value = node.targets[0], node.value
        is_metadata = isinstance(target, ast.Name) and target.id == "metadata"
        loads = isinstance(value, ast.Call) and ast.unparse(value.func) == "tvm.ir.load_json"
        if not is_metadata or not loads or not isinstance(value, ast.Call) or len(value.args) != 1:
            raise self.error(
                node, 'the only name a text defines is metadata = tvm.ir.load_json("...")'
            )
        with self.blaming(node):
            kept = ir.load_json(self.text(value.args[0]))
        try:
            self.around.metadata = {str(key): list(items) for key, items in kept.items()}
        except (AttributeError, TypeError):
            raise self.error(node, "the metadata is not a table of lists of objects") from None

    def definition(self, node: ast.stmt) -> Any:
        """The function or module of a definition."""
        if isinstance(node, ast.ClassDef):
            return self.module(node)
        if not isinstance(node, ast.FunctionDef):
            raise self.error(node, "a function or a class is needed here")
        return self.function(node)

    def kind_of(self, node: ast.FunctionDef) -> str:
        """The construct that a function is decorated with."""
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            what = self.construct(call) or self._marked(call)
            if what is not None and what in _FUNCTIONS:
                return what
        if self.around.decorator:
            return self.around.decorator
        raise self.error(
            node,
            f"nothing says what kind of function `{node.name}` is",
            f"put @{' or @'.join(_FUNCTIONS)} before it",
        )

    def _marked(self, node: ast.expr) -> str | None:
        """What a decorator of the program's own reads, by its attribute `dispatch_token`."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        found = self.around.constants.get(node.id) if isinstance(node, ast.Name) else None
        for part in reversed(parts):
            found = getattr(found, part, None)
        return _TOKENS.get(getattr(found, "dispatch_token", ""))

    def function(self, node: ast.FunctionDef) -> ir.BaseFunc:
        """The function of a definition."""
        read = _FUNCTIONS[self.kind_of(node)]
        try:
            func = read(self.source, node, self.around)
        except RecursionError:
            raise self.error(node, f"`{node.name}` is nested too deeply") from None
        if self._check and isinstance(func, tir.PrimFunc):
            with self.blaming(node):
                tir.analysis.verify_well_formed(func, assert_mode=True)
        return func

    def module(self, node: ast.ClassDef) -> ir.IRModule:
        """The module that a class under ``@I.ir_module`` describes."""
        self.around.module_name = node.name
        decorator_options(self, node, ("check_well_formed",))
        definitions: list[ast.FunctionDef] = []
        external: dict[str, relax.ExternFunc] = {}
        attrs: dict[str, Any] = {}
        infos: dict[str, Any] = {}
        for part in node.body:
            if isinstance(part, ast.FunctionDef):
                definitions.append(part)
            elif isinstance(part, ast.Expr) and self.called(part.value) == "I.module_attrs":
                assert isinstance(part.value, ast.Call)
                attrs |= self.attributes(self.arguments(part.value, ("attrs",), 1)["attrs"])
            elif isinstance(part, ast.Expr) and self.called(part.value) == "I.module_global_infos":
                assert isinstance(part.value, ast.Call)
                given = self.arguments(part.value, ("global_infos",), 1)["global_infos"]
                infos |= self.attributes(given)
            elif (found := self._external(part)) is not None:
                external |= found
            elif not isinstance(part, ast.Pass) and not _is_text(part):
                raise self.error(
                    part,
                    "a module has functions, name = R.ExternFunc(...), I.module_attrs({...}), "
                    "I.module_global_infos({...}) and nothing else",
                )
        names = [_name_of(self, definition) for definition in definitions]
        with IRBuilder() as builder, I.ir_module():
            I.module_attrs(attrs)
            I.module_global_infos(infos)
            for name, func in external.items():
                self.around.functions[name] = I.decl_function(name)
                I.def_function(name, func)
            for definition, name in zip(definitions, names):
                if definition.name in self.around.functions:
                    raise self.error(definition, f"there are two functions `{definition.name}`")
                with self.blaming(definition):
                    variable = I.decl_function(name)
                self.around.functions[definition.name] = self.around.functions[name] = variable
                self.around.definitions[definition.name] = definition
            for definition, name in zip(definitions, names):
                func = self.function(definition)
                if isinstance(func, relax.Function):
                    # Its result is known now, also where the text does not say it.
                    self.around.signatures[definition.name] = func
                    variable = self.around.functions[name]
                    get_global_func("relax.UpdateStructInfo")(variable, func.struct_info)
                I.def_function(name, func)
        return builder.get()

    def _external(self, part: ast.stmt) -> dict[str, relax.ExternFunc] | None:
        """The function that ``name = R.ExternFunc("symbol")`` names; None for another line."""
        match part:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                if self.called(call) == "R.ExternFunc":
                    given = self.arguments(call, ("global_symbol",), 1)
                    return {name: relax.ExternFunc(self.text(given["global_symbol"]))}
        return None


def _name_of(reader: Evaluator, node: ast.FunctionDef) -> str:
    """The name of a function in its module, which need not be one of Python."""
    for decorator in node.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "name":
                return reader.text(keyword.value)
    return node.name


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
