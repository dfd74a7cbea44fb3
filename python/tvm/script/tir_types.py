"""Element types, and variables of a type."""

from __future__ import annotations

import ast
import re

from tvm import ir, tir

from .reader import Reader

__all__ = ["TypeReader", "is_dtype"]

_DTYPE = re.compile(r"(bool|handle|void|bfloat16|(int|uint)\d+|float(16|32|64))(x\d+)?")


def is_dtype(name: str) -> bool:
    """Whether a name is that of an element type."""
    return _DTYPE.fullmatch(name) is not None


class TypeReader(Reader):
    """Reads types, and makes the variables that lines introduce."""

    def dtype(self, node: ast.AST) -> str:
        """The name of an element type, as a text or as ``T.float32``."""
        name = self.construct(node)
        if name is not None and name.startswith("T.") and is_dtype(name[2:]):
            return name[2:]
        text = self.text(node)
        if not is_dtype(text):
            raise self.error(node, f"there is no element type {text!r}", 'for example "float32"')
        return text

    def new_var(self, name: ast.AST, kind: ast.AST | None, dtype: str) -> tir.Var:
        """A variable that is defined here, of the type that `kind` says or else of `dtype`."""
        if not isinstance(name, ast.Name):
            raise self.error(name, f"the name of a variable is needed, not `{ast.unparse(name)}`")
        var = tir.Var(name.id, dtype) if kind is None else self.make_var(name.id, kind)
        self.define(name.id, var)
        return var

    def make_var(self, name: str, kind: ast.AST) -> tir.Var:
        """A variable of a type such as ``T.int32`` or ``T.handle("float32", "shared")``."""
        if isinstance(kind, ast.Call):
            what = self.construct(kind.func) or ""
            if what == "T.handle" and (kind.args or kind.keywords):
                return tir.Var(name, self._pointer(kind))
            if what.startswith("T.") and is_dtype(what[2:]):
                found = self.arguments(kind, ("is_size_var", "kind"), 0)
                if "is_size_var" in found and self.flag(found["is_size_var"]):
                    role = self.integer(found["kind"]) if "kind" in found else tir.SizeVar.OTHER
                    with self.blaming(kind):
                        return tir.SizeVar(name, what[2:], role)
                return tir.Var(name, what[2:])
        what = self.construct(kind) or ""
        if what.startswith("T.") and is_dtype(what[2:]):
            return tir.Var(name, what[2:])
        raise self.error(
            kind,
            f"`{ast.unparse(kind)}` is not a type of variables",
            'there are T.int32 and the like, T.handle, and T.handle("float32", "shared")',
        )

    def _pointer(self, node: ast.Call) -> ir.PointerType:
        found = self.arguments(node, ("dtype", "storage_scope"), 1)
        scope = self.text(found["storage_scope"]) if "storage_scope" in found else ""
        return ir.PointerType(self.type(found["dtype"]), scope)

    def type(self, node: ast.AST) -> ir.Type:
        """A type: ``T.int32``, ``"int32"``, ``T.handle("float32")``."""
        if isinstance(node, ast.Call) and self.called(node) == "T.handle":
            return self._pointer(node)
        if isinstance(node, ast.Call):
            made = self.attribute(node)
            if isinstance(made, ir.Type):
                return made
            raise self.error(node, f"`{ast.unparse(node)}` is not a type")
        return ir.PrimType(self.dtype(node))
