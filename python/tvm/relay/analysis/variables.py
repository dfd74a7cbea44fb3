"""Which variables an expression has."""

from __future__ import annotations

from typing import Any

from tvm.ir import FuncType, IRModule, RelayExpr, TensorType, TupleType, Type, TypeVar

from ..adt import Match, pattern_vars
from ..expr import Call, Function, Let, Var
from ..expr_functor import PostOrderVisitor

__all__ = [
    "all_type_vars",
    "all_vars",
    "bound_type_vars",
    "bound_vars",
    "free_type_vars",
    "free_vars",
]


class _Variables(PostOrderVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.bound: dict[Var, None] = {}
        self.seen: dict[Var, None] = {}

    def visit_var(self, var: Var) -> None:
        self.seen.setdefault(var)

    def visit_function(self, func: Function) -> None:
        for param in func.params:
            self.bound.setdefault(param)
        # Parameters come before what the body uses.
        super().visit_function(func)

    def visit_let(self, let: Let) -> None:
        node: RelayExpr = let
        while isinstance(node, Let):
            self.bound.setdefault(node.var)
            self.visit(node.value)
            self.visit(node.var)
            node = node.body
        self.visit(node)

    def visit_match(self, match: Match) -> None:
        for clause in match.clauses:
            for var in pattern_vars(clause.lhs):
                self.bound.setdefault(var)
        super().visit_match(match)


def _collected(expr: RelayExpr) -> _Variables:
    visitor = _Variables()
    visitor.visit(expr)
    return visitor


def free_vars(expr: RelayExpr) -> list[Var]:
    """Variables that the expression does not bind, in the order of their first use."""
    found = _collected(expr)
    return [var for var in found.seen if var not in found.bound]


def bound_vars(expr: RelayExpr) -> list[Var]:
    """Variables that the expression binds."""
    return list(_collected(expr).bound)


def all_vars(expr: RelayExpr) -> list[Var]:
    """All variables, in the order of their first use."""
    return list(_collected(expr).seen)


def _type_vars(type_: Any, seen: dict[TypeVar, None], bound: dict[TypeVar, None]) -> None:
    if isinstance(type_, TypeVar):
        seen.setdefault(type_)
    elif isinstance(type_, TupleType):
        for field in type_.fields:
            _type_vars(field, seen, bound)
    elif isinstance(type_, FuncType):
        for param in type_.type_params:
            bound.setdefault(param)
            seen.setdefault(param)
        for part in [*type_.arg_types, type_.ret_type, *type_.type_constraints]:
            _type_vars(part, seen, bound)
    elif type_ is not None and not isinstance(type_, TensorType):
        for name in ("value", "func", "args"):
            inner = getattr(type_, name, None)
            for part in [inner] if isinstance(inner, Type) else inner or ():
                _type_vars(part, seen, bound)


class _TypeVariables(PostOrderVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.bound: dict[TypeVar, None] = {}
        self.seen: dict[TypeVar, None] = {}

    def visit_var(self, var: Var) -> None:
        _type_vars(var.type_annotation, self.seen, self.bound)

    def visit_call(self, call: Call) -> None:
        super().visit_call(call)
        for arg in call.type_args:
            _type_vars(arg, self.seen, self.bound)

    def visit_function(self, func: Function) -> None:
        for param in func.type_params:
            self.bound.setdefault(param)
            self.seen.setdefault(param)
        super().visit_function(func)
        _type_vars(func.ret_type, self.seen, self.bound)


def _type_variables(expr: RelayExpr | Type, mod: IRModule | None) -> _TypeVariables:
    visitor = _TypeVariables()
    if isinstance(expr, Type):
        _type_vars(expr, visitor.seen, visitor.bound)
    else:
        visitor.visit(expr)
    return visitor


def free_type_vars(expr: RelayExpr | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """Type variables that are not bound, in the order of their first use."""
    found = _type_variables(expr, mod)
    return [var for var in found.seen if var not in found.bound]


def bound_type_vars(expr: RelayExpr | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """Type variables that are bound."""
    return list(_type_variables(expr, mod).bound)


def all_type_vars(expr: RelayExpr | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """All type variables, in the order of their first use."""
    return list(_type_variables(expr, mod).seen)
