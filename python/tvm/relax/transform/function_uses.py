"""Where functions of a module are called, and where their names stand for themselves."""

from __future__ import annotations

from tvm.ir import GlobalVar

from ..expr import Call
from ..expr_functor import PyExprVisitor, visitor

__all__ = ["FunctionUses"]


@visitor
class FunctionUses(PyExprVisitor):
    """Calls of functions by their names, and names that are more than called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[GlobalVar, list[Call]] = {}
        self.values: set[GlobalVar] = set()

    def visit_call_(self, op: Call) -> None:
        if isinstance(op.op, GlobalVar):
            self.calls.setdefault(op.op, []).append(op)
            for arg in op.args:
                self.visit_expr(arg)
        else:
            super().visit_call_(op)

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.values.add(op)
