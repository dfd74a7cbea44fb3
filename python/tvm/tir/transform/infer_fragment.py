"""What fragments of tensor cores hold, read off the instructions that touch them."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from .function_pass import prim_func_pass

__all__ = ["InferFragment"]

# Where instructions have a fragment, its shape (m, n, k) behind it, and the layout if they say it.
_FRAGMENTS = {
    "tir.tvm_load_matrix_sync": 7,
    "tir.tvm_store_matrix_sync": None,
    "tir.tvm_fill_fragment": None,
}
_OPERANDS = ("wmma.matrix_a", "wmma.matrix_b")


class _Facts(StmtExprVisitor):
    def __init__(self) -> None:
        self.shapes: dict[expr.Var, str] = {}
        self.layouts: dict[expr.Var, str] = {}

    def visit_call_(self, op: expr.Call) -> None:
        name = str(getattr(op.op, "name", ""))
        if name in _FRAGMENTS:
            fragment = op.args[0]
            shape = ", ".join(str(int(extent)) for extent in op.args[1:4])
            self._say(self.shapes, fragment, shape, "shape")
            layout = _FRAGMENTS[name]
            scope = str(fragment.type_annotation.storage_scope)
            if layout is not None and scope in _OPERANDS:
                self._say(self.layouts, fragment, str(op.args[layout].value), "layout")
        elif name == "tir.tvm_mma_sync":
            shapes = {self.shapes.get(op.args[i]) for i in (0, 2, 4, 6)} - {None}
            if len(shapes) > 1:
                raise error.ValueError(
                    "InferFragment: a product has fragments of the shapes "
                    f"{' and '.join(sorted(map(str, shapes)))}; all of them need one shape"
                )
        self._visit_below(op)

    @staticmethod
    def _say(known: dict[expr.Var, str], fragment: expr.Var, value: str, what: str) -> None:
        if known.setdefault(fragment, value) != value:
            raise error.ValueError(
                f"InferFragment: fragment {fragment.name} has the {what} {known[fragment]} in one "
                f"instruction and {value} in another"
            )


class _Marker(StmtExprMutator):
    def __init__(self, facts: _Facts) -> None:
        self._facts = facts

    def visit_allocate_(self, op: stmt.Allocate) -> stmt.Stmt:
        made = self._visit_below(op)
        data = op.buffer_var
        marks = (
            ("fragment_shape", self._facts.shapes.get(data)),
            ("fragment_layout", self._facts.layouts.get(data)),
        )
        for key, value in marks:
            if value is not None:
                made = stmt.AttrStmt(data, key, expr.StringImm(value), made)
        return made


def InferFragment() -> Pass:
    """Say the shape and the layout of each fragment of a tensor core where it is allocated.

    The attributes ``fragment_shape`` ("m, n, k") and, of operands, ``fragment_layout``
    ("row_major" or "col_major") are for generators that need them there; the one for CUDA reads
    them off the instructions. For flat functions with the scopes ``wmma.*``.

    Raises
    ------
    ValueError : (when run) instructions disagree about a fragment.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        facts = _Facts()
        facts.visit(func.body)
        body = _Marker(facts).visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.InferFragment")
