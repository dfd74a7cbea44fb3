"""Declarations of variables and buffers."""

from __future__ import annotations

import ast
from typing import Any

from tvm import ir, tir

from .tir_expr import ExprReader
from .tir_types import is_dtype

__all__ = ["DeclarationReader"]

_BUFFER = (
    "shape",
    "dtype",
    "data",
    "strides",
    "elem_offset",
    "scope",
    "align",
    "offset_factor",
)


class DeclarationReader(ExprReader):
    """Reads what makes a variable, a buffer or a region of one."""

    def shape(self, node: ast.AST) -> list[tir.PrimExpr]:
        """Extents; a single one may stand without a tuple."""
        items = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        extents: list[tir.PrimExpr] = []
        for item in items:
            value = self.value(item)
            if isinstance(value, tuple | list):
                # A whole shape by the name it has in the scope around.
                extents += [self._literal(item, extent) for extent in value]
            else:
                extents.append(self._literal(item, value))
        return extents

    def buffer(self, node: ast.Call, name: str, data: tir.Var | None = None) -> tir.Buffer:
        """The buffer that the arguments of a call describe.

        Parameters
        ----------
        data : its pointer; without one, and without the argument, the buffer gets a new one.
        """
        return self._buffer(node, name, self.arguments(node, _BUFFER, 1), data)

    def _buffer(
        self, node: ast.AST, name: str, found: dict[str, ast.expr], data: tir.Var | None = None
    ) -> tir.Buffer:
        dtype = self.dtype(found["dtype"]) if "dtype" in found else "float32"
        scope = self.text(found["scope"]) if "scope" in found else ""
        if "data" in found:
            pointer = self.expr(found["data"])
            if not isinstance(pointer, tir.Var):
                raise self.error(found["data"], "data is a variable, a pointer")
            data = pointer
        with self.blaming(node):
            if data is None:
                # A boolean occupies a byte in memory.
                element = "int8" if dtype.startswith("bool") else dtype
                data = tir.Var(name, ir.PointerType(ir.PrimType(element), scope))
            return tir.Buffer(
                data,
                dtype,
                self.shape(found["shape"]),
                self.shape(found["strides"]) if "strides" in found else (),
                self.expr(found["elem_offset"]) if "elem_offset" in found else None,
                name,
                self.integer(found["align"]) if "align" in found else 0,
                self.integer(found["offset_factor"]) if "offset_factor" in found else 0,
            )

    def matched(self, node: ast.Call, name: str) -> tuple[Any, tir.Buffer]:
        """The parameter or region that ``T.match_buffer`` is about, and the buffer."""
        found = self.arguments(node, ("param", *_BUFFER), 2)
        param = found.pop("param")
        buffer = self._buffer(node, name, found)
        if isinstance(param, ast.Subscript):
            return self.region(param), buffer
        value = self.value(param)
        if isinstance(value, tir.Buffer):
            with self.blaming(node):
                return tir.BufferRegion(value), buffer
        return value, buffer

    def region(self, node: ast.AST) -> tir.BufferRegion:
        """``A[i, 0:8]``: elements and ranges of a buffer, or all of it by its name alone."""
        if not isinstance(node, ast.Subscript):
            buffer = self.buffer_of(node, self.value(node))
            return tir.BufferRegion(buffer)
        buffer = self.buffer_of(node.value, self.value(node.value))
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        with self.blaming(node):
            return tir.BufferRegion(buffer, [self._range(item) for item in items])

    def _range(self, node: ast.AST) -> ir.Range:
        if not isinstance(node, ast.Slice):
            point = self.expr(node)
            return ir.Range.from_min_extent(point, tir.const(1, str(point.dtype)))
        if node.lower is None or node.upper is None or node.step is not None:
            raise self.error(node, "a range has both its ends and no step: `begin:end`")
        return self.interval(node.lower, node.upper)

    def interval(self, begin: ast.AST | None, end: ast.AST) -> ir.Range:
        """The range of two ends; `begin` None is zero."""
        last = self.value(end)
        first = 0 if begin is None else self.value(begin)
        low, high = self._operands(end, first, last)
        with self.blaming(end):
            return ir.Range.from_min_extent(low, _extent(low, high))

    def declared(self, name: str, node: ast.AST) -> Any:
        """What a call makes that needs nothing but its arguments; None for other calls."""
        what = self.called(node)
        if what is None or not isinstance(node, ast.Call):
            return None
        if what in ("T.Buffer", "T.decl_buffer"):
            return self.buffer(node, name)
        kind = what.removeprefix("T.")
        if what.startswith("T.") and is_dtype(kind):
            keywords = [keyword.arg for keyword in node.keywords]
            pointer = kind == "handle" and node.args
            if pointer or (not node.args and set(keywords) <= {"is_size_var", "kind"}):
                return self.make_var(name, node)
        return None


def _extent(low: tir.PrimExpr, high: tir.PrimExpr) -> tir.PrimExpr:
    if isinstance(low, tir.IntImm) and int(low) == 0:
        return high
    if isinstance(low, tir.IntImm) and isinstance(high, tir.IntImm):
        return tir.const(int(high) - int(low), str(high.dtype))
    # The printer writes the end of a range as its begin plus its extent.
    if isinstance(high, tir.Add) and ir.structural_equal(high.a, low):
        return high.b
    from tvm import arith

    return arith.Analyzer().simplify(high - low)
