"""Walks over relay expressions.

`ExprFunctor`, `ExprVisitor` and `ExprMutator` go from the top: a method is called before what the
expression consists of is visited, and visits of it what it wants. `PostOrderFunctor` and its kin
visit operands first and without recursion, however long a network; the passes are made of those.
"""

from __future__ import annotations

import sys
from typing import Any

from tvm import error
from tvm.ir import Constructor, GlobalVar, Op, RelayExpr

from .adt import Clause, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from .expr import (
    Call,
    Constant,
    ExprWithOp,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    set_checked_type,
    set_virtual_device,
)

__all__ = [
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
    "PostOrderFunctor",
    "PostOrderMutator",
    "PostOrderVisitor",
    "computed_first",
    "placed_like",
    "operands",
    "post_order_visit",
    "rebuilt",
]

_METHODS = {
    Function: "visit_function",
    Call: "visit_call",
    Let: "visit_let",
    Var: "visit_var",
    GlobalVar: "visit_global_var",
    If: "visit_if",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    Constant: "visit_constant",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Op: "visit_op",
    Constructor: "visit_constructor",
    Match: "visit_match",
}


def operands(expr: RelayExpr) -> list[RelayExpr]:
    """What a call, a tuple or one of its fields is made of, in order; nothing for the others."""
    if isinstance(expr, Call):
        return [expr.op, *expr.args]
    if isinstance(expr, Tuple):
        return list(expr.fields)
    if isinstance(expr, TupleGetItem):
        return [expr.tuple_value]
    return []


def computed_first(expr: RelayExpr) -> list[RelayExpr]:
    """What is computed before an expression in any case, in order: no branch of a condition is."""
    if isinstance(expr, If):
        return [expr.cond]
    if isinstance(expr, Match):
        return [expr.data]
    if isinstance(expr, RefCreate):
        return [expr.value]
    if isinstance(expr, RefRead):
        return [expr.ref]
    if isinstance(expr, RefWrite):
        return [expr.ref, expr.value]
    return operands(expr)


# As many calls as TVM allows in Python, whose walks are recursive, too.
_RECURSION_LIMIT = 10000


class ExprFunctor:
    """Dispatches on the kind of expression. Each expression is visited once.

    Raises
    ------
    NotImplementedError : a class has no method for an expression that it meets.
    """

    _walking = False

    def __init__(self) -> None:
        self.memo_map: dict[RelayExpr, Any] = {}

    def visit(self, expr: RelayExpr) -> Any:
        """The result for an expression; the one from before if it was visited already."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        if self._walking:
            return self._walk(expr)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
        self._walking = True
        try:
            return self._walk(expr)
        finally:
            self._walking = False
            sys.setrecursionlimit(limit)

    def _walk(self, expr: RelayExpr) -> Any:
        memo = self.memo_map
        pending = [(expr, False)]
        while pending:
            node, ready = pending.pop()
            if node in memo:
                continue
            parts = () if ready else self.visited_first(node)
            if parts:
                pending.append((node, True))
                pending.extend((part, False) for part in reversed(parts))
            else:
                result = self.dispatch(node)
                memo.setdefault(node, result)
        return memo[expr]

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        """Operands that `visit` visits before the expression, so that they take no stack: those
        that its method visits before anything else."""
        for kind in type(expr).__mro__:
            name = _METHODS.get(kind)
            if name is not None:
                method = getattr(type(self), name)
                return operands(expr) if method in _OPERANDS_FIRST else []
        return []

    def dispatch(self, expr: RelayExpr) -> Any:
        """The method for the kind of expression, called."""
        for kind in type(expr).__mro__:
            method = _METHODS.get(kind)
            if method is not None:
                return getattr(self, method)(expr)
        raise error.TypeError(f"relay: {type(expr).__name__} is no expression of relay")

    def visit_function(self, func: Any) -> Any:
        """To be defined, like the others, by classes that meet such expressions."""
        raise error.NotImplementedError(
            f"{type(self).__name__} has no method for {type(func).__name__}"
        )

    visit_call = visit_let = visit_var = visit_global_var = visit_if = visit_tuple = visit_function
    visit_tuple_getitem = visit_constant = visit_ref_create = visit_ref_read = visit_function
    visit_ref_write = visit_op = visit_constructor = visit_match = visit_function


class ExprVisitor(ExprFunctor):
    """Visits every expression once; a method that calls the one of this class may act before it and
    behind it."""

    def visit_tuple(self, tup: Tuple) -> Any:
        for field in tup.fields:
            self.visit(field)

    def visit_call(self, call: Call) -> Any:
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_var(self, var: Var) -> Any:
        pass

    def visit_let(self, let: Let) -> Any:
        node: RelayExpr = let
        while isinstance(node, Let):
            self.visit(node.var)
            self.visit(node.value)
            node = node.body
        self.visit(node)

    def visit_function(self, func: Function) -> Any:
        for param in func.params:
            self.visit(param)
        self.visit(func.body)

    def visit_if(self, iff: If) -> Any:
        self.visit(iff.cond)
        self.visit(iff.true_branch)
        self.visit(iff.false_branch)

    def visit_global_var(self, gvar: GlobalVar) -> Any:
        pass

    def visit_tuple_getitem(self, item: TupleGetItem) -> Any:
        self.visit(item.tuple_value)

    def visit_constant(self, const: Constant) -> Any:
        pass

    def visit_op(self, op: Op) -> Any:
        pass

    def visit_constructor(self, con: Constructor) -> Any:
        pass

    def visit_pattern(self, pattern: Pattern) -> Any:
        """Visit the variables that a pattern names parts by."""
        if isinstance(pattern, PatternVar):
            self.visit(pattern.var)
        elif isinstance(pattern, (PatternConstructor, PatternTuple)):
            for part in pattern.patterns:
                self.visit_pattern(part)

    def visit_match(self, match: Match) -> Any:
        self.visit(match.data)
        for clause in match.clauses:
            self.visit_pattern(clause.lhs)
            self.visit(clause.rhs)

    def visit_ref_create(self, ref: RefCreate) -> Any:
        self.visit(ref.value)

    def visit_ref_read(self, read: RefRead) -> Any:
        self.visit(read.ref)

    def visit_ref_write(self, write: RefWrite) -> Any:
        self.visit(write.ref)
        self.visit(write.value)


def _same(new: Any, old: Any) -> bool:
    return all(a.same_as(b) for a, b in zip(new, old))


def rebuilt(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    """The new form of an expression that means the same, with the type that is known already."""
    known = old.checked_type_
    return new if known is None else set_checked_type(new, known)


def placed_like(old: RelayExpr, new: Any) -> Any:
    """The new form of an expression, on the device of the old one if it is of the same kind and
    nothing says where it is."""
    if (
        type(new) is not type(old)
        or new.same_as(old)
        or not isinstance(old, (ExprWithOp, Function))
    ):
        return new
    if old.known_device_ is None or new.known_device_ is not None:
        return new
    return set_virtual_device(new, old.virtual_device_)


class ExprMutator(ExprFunctor):
    """Rebuilds an expression from what the methods return; what does not change stays itself."""

    def dispatch(self, expr: RelayExpr) -> Any:
        return placed_like(expr, super().dispatch(expr))

    def visit_function(self, func: Function) -> RelayExpr:
        params = [self.visit(param) for param in func.params]
        body = self.visit(func.body)
        if _same(params, func.params) and body.same_as(func.body):
            return func
        return Function(params, body, func.ret_type, func.type_params, func.attrs)

    def visit_let(self, let: Let) -> RelayExpr:
        bindings = []
        node: RelayExpr = let
        while isinstance(node, Let):
            bindings.append((node, self.visit(node.var), self.visit(node.value)))
            node = node.body
        body = self.visit(node)
        for old, var, value in reversed(bindings):
            same = var.same_as(old.var) and value.same_as(old.value) and body.same_as(old.body)
            body = old if same else Let(var, value, body)
        return body

    def visit_call(self, call: Call) -> RelayExpr:
        op = self.visit(call.op)
        args = [self.visit(arg) for arg in call.args]
        if op.same_as(call.op) and _same(args, call.args):
            return call
        return Call(op, args, call.attrs, call.type_args, call.span)

    def visit_var(self, var: Var) -> RelayExpr:
        return var

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        return gvar

    def visit_if(self, iff: If) -> RelayExpr:
        parts = [self.visit(part) for part in (iff.cond, iff.true_branch, iff.false_branch)]
        if _same(parts, (iff.cond, iff.true_branch, iff.false_branch)):
            return iff
        return If(*parts)

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        fields = [self.visit(field) for field in tup.fields]
        return tup if _same(fields, tup.fields) else Tuple(fields)

    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        value = self.visit(item.tuple_value)
        return item if value.same_as(item.tuple_value) else TupleGetItem(value, item.index)

    def visit_constant(self, const: Constant) -> RelayExpr:
        return const

    def visit_op(self, op: Op) -> RelayExpr:
        return op

    def visit_constructor(self, con: Constructor) -> RelayExpr:
        return con

    def visit_pattern(self, pattern: Pattern) -> Pattern:
        """The pattern with what its variables become."""
        if isinstance(pattern, PatternVar):
            var = self.visit(pattern.var)
            return pattern if var.same_as(pattern.var) else PatternVar(var)
        if isinstance(pattern, (PatternConstructor, PatternTuple)):
            parts = [self.visit_pattern(part) for part in pattern.patterns]
            if _same(parts, pattern.patterns):
                return pattern
            if isinstance(pattern, PatternTuple):
                return PatternTuple(parts)
            return PatternConstructor(pattern.constructor, parts)
        return pattern

    def visit_match(self, match: Match) -> RelayExpr:
        data = self.visit(match.data)
        clauses = []
        for old in match.clauses:
            lhs, rhs = self.visit_pattern(old.lhs), self.visit(old.rhs)
            same = lhs.same_as(old.lhs) and rhs.same_as(old.rhs)
            clauses.append(old if same else Clause(lhs, rhs))
        if data.same_as(match.data) and _same(clauses, match.clauses):
            return match
        return Match(data, clauses, match.complete)

    def visit_ref_create(self, ref: RefCreate) -> RelayExpr:
        value = self.visit(ref.value)
        return ref if value.same_as(ref.value) else RefCreate(value)

    def visit_ref_read(self, read: RefRead) -> RelayExpr:
        ref = self.visit(read.ref)
        return read if ref.same_as(read.ref) else RefRead(ref)

    def visit_ref_write(self, write: RefWrite) -> RelayExpr:
        ref, value = self.visit(write.ref), self.visit(write.value)
        if ref.same_as(write.ref) and value.same_as(write.value):
            return write
        return RefWrite(ref, value)


_OPERANDS_FIRST = frozenset(
    getattr(walk, name)
    for walk in (ExprVisitor, ExprMutator)
    for name in ("visit_call", "visit_tuple", "visit_tuple_getitem")
)


class PostOrderFunctor(ExprFunctor):
    """Visits operands before the expression, whatever its methods do."""

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        return operands(expr)


class PostOrderVisitor(PostOrderFunctor, ExprVisitor):
    """Visits every expression once, operands first."""


class PostOrderMutator(PostOrderFunctor, ExprMutator):
    """Rebuilds an expression, operands first."""


class _PostOrder(PostOrderVisitor):
    def __init__(self, fvisit: Any) -> None:
        super().__init__()
        self._fvisit = fvisit

    def dispatch(self, expr: RelayExpr) -> Any:
        super().dispatch(expr)
        self._fvisit(expr)


def post_order_visit(expr: RelayExpr, fvisit: Any) -> None:
    """Call a function for every expression, operands before what uses them."""
    _PostOrder(fvisit).visit(expr)
