"""Struct info of graph values: ``R.Tensor((1, "m"), "float32")`` and its kin."""

from __future__ import annotations

import ast
from typing import Any

from tvm import tir
from tvm.relax import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

from .evaluator import Evaluator

__all__ = ["StructInfoReader"]


class StructInfoReader(Evaluator):
    """Reads struct info; a text among the extents is an expression of symbolic ones."""

    def struct_info(self, node: ast.AST) -> StructInfo:
        """The struct info that an annotation describes."""
        what = self.construct(node.func if isinstance(node, ast.Call) else node)
        with self.blaming(node):
            if what == "R.Object":
                return ObjectStructInfo()
            if isinstance(node, ast.Call):
                if what == "R.Tensor":
                    return self._tensor(node)
                if what == "R.Tuple":
                    items = node.args
                    if len(items) == 1 and isinstance(items[0], ast.List | ast.Tuple):
                        items = items[0].elts
                    return TupleStructInfo([self.struct_info(item) for item in items])
                if what == "R.Prim":
                    return PrimStructInfo(self.dtype(self.arguments(node, ("dtype",), 1)["dtype"]))
                if what == "R.Shape":
                    found = self.arguments(node, ("values", "ndim"), 0)
                    ndim = self.integer(found["ndim"]) if "ndim" in found else -1
                    values = self.extents(found["values"]) if "values" in found else None
                    return ShapeStructInfo(values, ndim)
            elif what == "R.Tensor":
                return TensorStructInfo(None, "float32")
        raise self.error(
            node,
            f"`{ast.unparse(node)}` is not the type of a graph value",
            'there are R.Tensor((1, "m"), "float32"), R.Tuple, R.Shape, R.Prim and R.Object',
        )

    def _tensor(self, node: ast.Call) -> TensorStructInfo:
        # A type alone may stand where the shape is, R.Tensor("float32", ndim=2).
        first = node.args[0] if node.args else None
        unshaped = isinstance(first, ast.Constant) and isinstance(first.value, str)
        names = ("dtype", "ndim") if unshaped else ("shape", "dtype", "ndim")
        found = self.arguments(node, names, 0)
        shape = self.extents(found["shape"]) if "shape" in found else None
        dtype = self._element(found["dtype"]) if "dtype" in found else "float32"
        ndim = self.integer(found["ndim"]) if "ndim" in found else -1
        return TensorStructInfo(shape, dtype, ndim)

    def _element(self, node: ast.AST) -> str:
        # Unknown element types print as an empty text or as void.
        if isinstance(node, ast.Constant) and node.value in ("", "void"):
            return str(node.value)
        return self.dtype(node)

    def extents(self, node: ast.AST) -> list[tir.PrimExpr]:
        """The extents of a shape."""
        if not isinstance(node, ast.Tuple | ast.List):
            value = self.value(node)
            if not isinstance(value, tuple | list):
                raise self.error(node, "a shape is a tuple of extents")
            return [self._literal(node, extent) for extent in value]
        return [self._extent(item) for item in node.elts]

    def _extent(self, node: ast.AST) -> tir.PrimExpr:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return self.expr(node)
        try:
            tree: Any = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError):
            raise self.error(node, f"{node.value!r} is not an extent") from None
        for part in ast.walk(tree):
            ast.copy_location(part, node)
            if isinstance(part, ast.Name) and part.id not in self.around.dialects:
                self._symbolic(part.id)
        return self.expr(tree)

    def _symbolic(self, name: str) -> None:
        # A new name in an extent is a symbolic extent of the whole function.
        if not self.is_defined(name):
            self._scopes[0][name] = tir.Var(name, "int64")
