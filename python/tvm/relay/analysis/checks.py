"""Whether a program is put together as it has to be."""

from __future__ import annotations

from tvm import error
from tvm.ir import (
    FuncType,
    GlobalTypeVar,
    IRModule,
    RelayExpr,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeKind,
    TypeRelation,
    TypeVar,
)

from ..adt import Match, pattern_vars
from ..expr import Constant, Function, Let, Tuple, Var
from ..expr_functor import PostOrderVisitor
from ..ty import IncompleteType, RefType

__all__ = ["check_constant", "check_kind", "well_formed"]


class _Bound(PostOrderVisitor):
    """Whether every variable is bound once, and used where it is bound."""

    def __init__(self) -> None:
        super().__init__()
        self.fine = True
        self._bound: set[Var] = set()
        self._scopes: list[set[Var]] = [set()]
        self.free: set[Var] = set()

    def _bind(self, var: Var) -> None:
        self.fine &= var not in self._bound and var not in self.free
        self._bound.add(var)
        self._scopes[-1].add(var)

    def visit_var(self, var: Var) -> None:
        if not any(var in scope for scope in self._scopes):
            if var in self._bound:
                self.fine = False
            self.free.add(var)

    def visit(self, expr: RelayExpr) -> None:
        # A variable may be used in places where it is bound and in others.
        if isinstance(expr, Var):
            self.visit_var(expr)
        else:
            super().visit(expr)

    def visit_function(self, func: Function) -> None:
        self._scopes.append(set())
        for param in func.params:
            self._bind(param)
        self.visit(func.body)
        self._scopes.pop()

    def visit_let(self, let: Let) -> None:
        self._scopes.append(set())
        node: RelayExpr = let
        while isinstance(node, Let):
            self._bind(node.var)
            self.visit(node.value)
            node = node.body
        self.visit(node)
        self._scopes.pop()

    def visit_match(self, match: Match) -> None:
        self.visit(match.data)
        for clause in match.clauses:
            self._scopes.append(set())
            for var in pattern_vars(clause.lhs):
                self._bind(var)
            self.visit(clause.rhs)
            self._scopes.pop()


def well_formed(expr: RelayExpr | IRModule) -> bool:
    """Whether every variable is bound at most once, and used only where it is bound."""
    if isinstance(expr, IRModule):
        return all(well_formed(f) for f in expr.functions.values() if isinstance(f, Function))
    bound = _Bound()
    bound.visit(expr)
    return bound.fine


def _require(type_: Type, wanted: TypeKind, mod: IRModule | None, where: str) -> None:
    kind = check_kind(type_, mod)
    if kind != wanted:
        raise error.TypeError(f"relay.check_kind: {where} is of kind {kind.name}: {type_}")


def check_kind(type_: Type, mod: IRModule | None = None) -> TypeKind:
    """What a type is: of values, a shape, a relation, a definition.

    Raises
    ------
    TypeError : its parts are of kinds that it cannot be made of.
    """
    if isinstance(type_, (TypeVar, GlobalTypeVar, IncompleteType)):
        return TypeKind(int(type_.kind))
    if isinstance(type_, TensorType):
        return TypeKind.Type
    if isinstance(type_, TupleType):
        for field in type_.fields:
            _require(field, TypeKind.Type, mod, "a field of a tuple")
        return TypeKind.Type
    if isinstance(type_, FuncType):
        for arg in type_.arg_types:
            _require(arg, TypeKind.Type, mod, "an argument")
        _require(type_.ret_type, TypeKind.Type, mod, "a result")
        for constraint in type_.type_constraints:
            _require(constraint, TypeKind.Constraint, mod, "what a function demands")
        return TypeKind.Type
    if isinstance(type_, RefType):
        _require(type_.value, TypeKind.Type, mod, "what a cell holds")
        return TypeKind.Type
    if isinstance(type_, TypeCall):
        _require(type_.func, TypeKind.AdtHandle, mod, "what takes arguments")
        for arg in type_.args:
            _require(arg, TypeKind.Type, mod, "an argument of a type")
        if mod is not None and isinstance(type_.func, GlobalTypeVar):
            wanted = len(mod[type_.func].type_vars)
            if wanted != len(type_.args):
                raise error.TypeError(
                    f"relay.check_kind: type {type_.func.name_hint} takes {wanted} arguments, got "
                    f"{len(type_.args)}"
                )
        return TypeKind.Type
    if isinstance(type_, TypeRelation):
        for arg in type_.args:
            _require(arg, TypeKind.Type, mod, "a part of a relation")
        return TypeKind.Constraint
    if isinstance(type_, TypeData):
        for con in type_.constructors:
            for part in con.inputs:
                _require(part, TypeKind.Type, mod, f"a part of {con.name_hint}")
        return TypeKind.TypeData
    raise error.TypeError(f"relay.check_kind: {type_} is no type of relay")


def check_constant(expr: RelayExpr) -> bool:
    """Whether an expression is a constant, or a tuple of such."""
    if isinstance(expr, Tuple):
        return all(check_constant(f) for f in expr.fields)
    return isinstance(expr, Constant)
