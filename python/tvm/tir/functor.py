"""Visitors and mutators over statements and expressions, to derive passes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from tvm.ir import PrimExpr, Range
from tvm.ir.base import make_node
from tvm.ir.expr import FloatImm, IntImm
from tvm.runtime import Object, _ffi_node_api

from . import block, expr, stmt

__all__ = [
    "PyStmtExprMutator",
    "PyStmtExprVisitor",
    "StmtExprMutator",
    "StmtExprVisitor",
    "mutator",
    "visitor",
    "with_fields",
]

_BINARY = (
    *("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max"),
    *("EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or"),
)

# Fields with what is below a node, in the order of evaluation. Variables where they are bound,
# and buffers, are no terms of a program and are not visited.
_BELOW: Mapping[type, tuple[str, ...]] = {
    **{getattr(expr, name): ("a", "b") for name in _BINARY},
    **dict.fromkeys((IntImm, FloatImm, expr.StringImm, expr.Var, expr.SizeVar), ()),
    expr.Cast: ("value",),
    expr.Not: ("a",),
    expr.Select: ("condition", "true_value", "false_value"),
    expr.BufferLoad: ("indices",),
    expr.ProducerLoad: ("indices",),
    expr.Ramp: ("base", "stride"),
    expr.Broadcast: ("value",),
    expr.Let: ("value", "body"),
    expr.Call: ("args",),
    expr.Shuffle: ("vectors", "indices"),
    expr.Reduce: ("axis", "source", "init", "condition"),
    stmt.LetStmt: ("value", "body"),
    stmt.AttrStmt: ("value", "body"),
    stmt.AssertStmt: ("condition", "message", "body"),
    stmt.BufferStore: ("value", "indices"),
    stmt.BufferRealize: ("bounds", "condition", "body"),
    stmt.ProducerStore: ("value", "indices"),
    stmt.ProducerRealize: ("bounds", "condition", "body"),
    stmt.Allocate: ("extents", "condition", "body"),
    stmt.AllocateConst: ("extents", "body"),
    stmt.DeclBuffer: ("body",),
    stmt.SeqStmt: ("seq",),
    stmt.IfThenElse: ("condition", "then_case", "else_case"),
    stmt.Evaluate: ("value",),
    stmt.For: ("min", "extent", "body"),
    stmt.While: ("condition", "body"),
    stmt.Prefetch: ("bounds",),
    block.Block: ("iter_vars", "reads", "writes", "match_buffers", "init", "body"),
    block.BlockRealize: ("iter_values", "predicate", "block"),
    # Not terms themselves, but terms are below them.
    Range: ("min", "extent"),
    expr.IterVar: ("dom",),
    block.BufferRegion: ("region",),
    block.MatchBufferRegion: ("source",),
}


def _method_name(node_type: type) -> str:
    """``visit_buffer_store_`` for BufferStore, ``visit_eq_`` for EQ."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node_type.__name__)
    return f"visit_{words.lower()}_"


_METHODS = {
    node_type: _method_name(node_type)
    for node_type in _BELOW
    if issubclass(node_type, (PrimExpr, stmt.Stmt))
}


def _method_of(node: Any, who: str) -> str:
    for node_type in type(node).__mro__:
        if node_type in _METHODS:
            return _METHODS[node_type]
    raise TypeError(f"{who}: expected a statement or an expression, got {type(node).__name__}")


class StmtExprVisitor:
    """Walks down a program; a derived class overrides ``visit_<node>_`` for nodes it looks at.

    There is a method for every kind of node, named like its class: ``visit_for_``,
    ``visit_buffer_store_``, ``visit_int_imm_``, ``visit_floor_div_``. The base's methods visit what
    is below the node, so an override calls ``super()`` to go on and leaves it out to stop.
    `visit_stmt` and `visit_expr` are called for every node, before its own method.

    Examples
    --------
    >>> class Loops(StmtExprVisitor):
    ...     def __init__(self):
    ...         self.names = []
    ...
    ...     def visit_for_(self, op):
    ...         self.names.append(op.loop_var.name)
    ...         super().visit_for_(op)
    """

    def visit(self, node: Any) -> None:
        """Visit a statement, an expression, or the body of a PrimFunc."""
        if isinstance(node, stmt.Stmt):
            self.visit_stmt(node)
        elif isinstance(node, PrimExpr):
            self.visit_expr(node)
        else:
            self.visit_stmt(_body_of(node, type(self).__name__))

    def visit_stmt(self, node: Any) -> None:
        """Visit a statement by its own method."""
        getattr(self, _method_of(node, type(self).__name__))(node)

    def visit_expr(self, node: Any) -> None:
        """Visit an expression by its own method."""
        getattr(self, _method_of(node, type(self).__name__))(node)

    def _visit_below(self, node: Any) -> None:
        for _, value in _fields_below(node):
            self._visit_value(value)

    def _visit_value(self, value: Any) -> None:
        if value is None:
            return
        if isinstance(value, (PrimExpr, stmt.Stmt)):
            self.visit(value)
        elif type(value) in _BELOW:
            self._visit_below(value)
        else:
            for item in value:
                self._visit_value(item)


class StmtExprMutator:
    """Rewrites a program; a derived class overrides ``visit_<node>_`` and returns the replacement.

    Methods are named as those of `StmtExprVisitor`. The base's methods rewrite what is below the
    node, and return the node they were given where nothing changes.

    Examples
    --------
    >>> class Double(StmtExprMutator):
    ...     def visit_float_imm_(self, op):
    ...         return tvm.tir.FloatImm(op.dtype, op.value * 2)
    >>> new_func = func.with_body(Double().visit(func.body))
    """

    def visit(self, node: Any) -> Any:
        """A statement or an expression rewritten; for a PrimFunc, the function with a new body."""
        if isinstance(node, stmt.Stmt):
            return self.visit_stmt(node)
        if isinstance(node, PrimExpr):
            return self.visit_expr(node)
        body = _body_of(node, type(self).__name__)
        rewritten = self.visit_stmt(body)
        return node if rewritten.same_as(body) else node.with_body(rewritten)

    def visit_stmt(self, node: Any) -> Any:
        """The statement that replaces `node`, by its own method."""
        return self._checked(node, stmt.Stmt)

    def visit_expr(self, node: Any) -> Any:
        """The expression that replaces `node`, by its own method."""
        return self._checked(node, PrimExpr)

    def _checked(self, node: Any, expected: type) -> Any:
        method = _method_of(node, type(self).__name__)
        result = getattr(self, method)(node)
        if not isinstance(result, expected):
            raise TypeError(
                f"{type(self).__name__}.{method} must return a {expected.__name__}, got "
                f"{type(result).__name__}; return the node itself to leave it alone"
            )
        return result

    def _visit_below(self, node: Any) -> Any:
        changed = {}
        for name, value in _fields_below(node):
            rewritten = self._visit_value(value)
            if rewritten is not value:
                changed[name] = rewritten
        if not changed:
            return node
        if isinstance(node, stmt.SeqStmt):
            return stmt.stmt_seq(*changed["seq"])
        return with_fields(node, **changed)

    def _visit_value(self, value: Any) -> Any:
        """`value` itself, the same Python object, where nothing changed."""
        if value is None:
            return value
        if isinstance(value, (PrimExpr, stmt.Stmt)):
            rewritten = self.visit(value)
            return value if rewritten.same_as(value) else rewritten
        if type(value) in _BELOW:
            return self._visit_below(value)
        items = list(value)
        rewritten = [self._visit_value(item) for item in items]
        return value if all(new is old for new, old in zip(rewritten, items)) else rewritten


def with_fields(node: Any, **changed: Any) -> Any:
    """A node like another one, with other values of the fields named."""
    names = _ffi_node_api.ListFieldNames(node)
    fields = {str(name): getattr(node, str(name)) for name in names}
    return make_node(node.type_key, **(fields | changed))


def _fields_below(node: Object) -> Iterator[tuple[str, Any]]:
    for node_type in type(node).__mro__:
        if node_type in _BELOW:
            return ((name, getattr(node, name)) for name in _BELOW[node_type])
    raise TypeError(f"no fields are known of {type(node).__name__}")


def _body_of(node: Any, who: str) -> Any:
    body = getattr(node, "body", None)
    if not isinstance(body, stmt.Stmt):
        raise TypeError(
            f"{who}: expected a statement, an expression or a PrimFunc, got {type(node).__name__}"
        )
    return body


for _name in _METHODS.values():
    setattr(StmtExprVisitor, _name, StmtExprVisitor._visit_below)
    setattr(StmtExprMutator, _name, StmtExprMutator._visit_below)

# Newer TVM's names of the two, whose derived classes need a decorator there and none here.
PyStmtExprVisitor = StmtExprVisitor
PyStmtExprMutator = StmtExprMutator

_Class = TypeVar("_Class", bound=type)


def visitor(cls: _Class) -> _Class:
    """Mark a class derived from `StmtExprVisitor`; it works without the mark as well."""
    return cls


def mutator(cls: _Class) -> _Class:
    """Mark a class derived from `StmtExprMutator`; it works without the mark as well."""
    return cls
