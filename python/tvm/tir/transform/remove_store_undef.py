"""Stores of values that nobody chose."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import PrimExpr
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from .function_pass import prim_func_pass

__all__ = ["RemoveStoreUndef"]


class _Finder(StmtExprVisitor):
    """Whether an expression has an undefined value in it, itself or by a name for it."""

    def __init__(self, names: set[expr.Var]) -> None:
        self.found = False
        self._names = names

    def visit_call_(self, op: expr.Call) -> None:
        self.found = self.found or getattr(op.op, "name", "") == "tir.undef"
        self._visit_below(op)

    def visit_var_(self, op: expr.Var) -> None:
        self.found = self.found or op in self._names


class _Loads(StmtExprVisitor):
    """Whether an access is at an undefined place."""

    def __init__(self, remover: _Remover) -> None:
        self.undefined = False
        self._remover = remover

    def _look(self, op: Any) -> None:
        self.undefined = self.undefined or any(map(self._remover.is_undef, op.indices))
        self._visit_below(op)

    def visit_buffer_load_(self, op: expr.BufferLoad) -> None:
        self._look(op)

    def visit_buffer_store_(self, op: stmt.BufferStore) -> None:
        self._look(op)


class _Remover(StmtExprMutator):
    def __init__(self) -> None:
        self.names: set[expr.Var] = set()

    def is_undef(self, value: PrimExpr) -> bool:
        """Whether a value is made of an undefined one."""
        finder = _Finder(self.names)
        finder.visit(value)
        return finder.found

    def visit_let_stmt_(self, op: stmt.LetStmt) -> stmt.Stmt:
        if not self.is_undef(op.value):
            return self._visit_below(op)
        self.names.add(op.var)
        return self.visit(op.body)

    def visit_buffer_store_(self, op: stmt.BufferStore) -> stmt.Stmt:
        # An element at an undefined place is refused below, also when it is read.
        places = _Loads(self)
        places.visit(op)
        if places.undefined or not self.is_undef(op.value):
            return op
        return stmt.Evaluate(0)


def RemoveStoreUndef() -> Pass:
    """Drop stores of values made of ``T.undef()``: the element may keep what it holds.

    Raises
    ------
    ValueError : (when run) an undefined value is used in another way, such as for an index.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        remover = _Remover()
        body = remover.visit(func.body)
        finder = _Finder(remover.names)
        finder.visit(body)
        if finder.found:
            raise error.ValueError(
                "RemoveStoreUndef: an undefined value is used for more than to store it; "
                "give it a value where an index, a condition or a call takes it"
            )
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.RemoveStoreUndef")
