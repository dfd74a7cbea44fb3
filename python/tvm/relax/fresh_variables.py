"""Expressions with variables of their own."""

from __future__ import annotations

from .expr import DataflowVar, Var
from .expr_functor import PyExprMutator

__all__ = ["FreshVariables"]


class FreshVariables(PyExprMutator):
    """An expression with new variables in the place of those that it binds."""

    def visit_var_def_(self, var: Var) -> Var:
        new = super().visit_var_def_(var)
        if new.same_as(var):
            new = type(var)(str(var.name_hint), var.struct_info)
            self.set_var_remap(var, new)
        return new

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Var:
        return self.visit_var_def_(var)
