"""Attributes of neighbouring statements that become one attribute around all of them."""

from __future__ import annotations

from typing import Any

from tvm.ir import structural_equal
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..analysis import undefined_vars
from ..block import Block
from ..function import PrimFunc
from ..functor import StmtExprMutator, with_fields
from .function_pass import prim_func_pass

__all__ = ["LiftAttrScope"]

# Node and value of the attribute that has been taken off a statement.
_Attr = tuple[Any, Any]


class _Lifter(StmtExprMutator):
    """Takes attributes off statements, and puts them back where they cannot move out further."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._lifted: _Attr | None = None

    def run(self, body: stmt.Stmt) -> stmt.Stmt:
        return self._wrapped(*self._taken(body))

    def _taken(self, node: stmt.Stmt) -> tuple[stmt.Stmt, _Attr | None]:
        """A statement without its attribute, and that attribute."""
        self._lifted = None
        result = self.visit_stmt(node)
        found, self._lifted = self._lifted, None
        return result, found

    def _wrapped(self, node: stmt.Stmt, attr: _Attr | None) -> stmt.Stmt:
        return node if attr is None else stmt.AttrStmt(attr[0], self._key, attr[1], node)

    def _around(self, op: Any, variable: Any = None, closed: bool = False) -> stmt.Stmt:
        """A statement with one below it. The attribute goes around both, unless it depends on the
        variable that the outer one binds or the outer one is `closed`."""
        body, attr = self._taken(op.body)
        if attr is not None and (closed or _uses(attr, variable)):
            body, attr = self._wrapped(body, attr), None
        self._lifted = attr
        return op if body.same_as(op.body) else with_fields(op, body=body)

    def visit_attr_stmt_(self, op: stmt.AttrStmt) -> stmt.Stmt:
        if str(op.attr_key) == self._key:
            self._lifted = (op.node, op.value)
            return op.body
        return self._around(op, op.node.var if isinstance(op.node, expr.IterVar) else None)

    def visit_for_(self, op: stmt.For) -> stmt.Stmt:
        return self._around(op, op.loop_var)

    def visit_let_stmt_(self, op: stmt.LetStmt) -> stmt.Stmt:
        return self._around(op, op.var)

    def visit_assert_stmt_(self, op: stmt.AssertStmt) -> stmt.Stmt:
        return self._around(op)

    def visit_while_(self, op: stmt.While) -> stmt.Stmt:
        return self._around(op, closed=True)

    def visit_allocate_(self, op: stmt.Allocate) -> stmt.Stmt:
        return self._around(op, closed=True)

    def visit_allocate_const_(self, op: stmt.AllocateConst) -> stmt.Stmt:
        return self._around(op, closed=True)

    def visit_decl_buffer_(self, op: stmt.DeclBuffer) -> stmt.Stmt:
        return self._around(op, closed=True)

    def visit_buffer_realize_(self, op: stmt.BufferRealize) -> stmt.Stmt:
        return self._around(op, closed=True)

    def visit_block_(self, op: Block) -> Block:
        return self._around(op, closed=True)

    def visit_seq_stmt_(self, op: stmt.SeqStmt) -> stmt.Stmt:
        groups: list[tuple[list[stmt.Stmt], _Attr | None]] = []
        for node in op.seq:
            part, attr = self._taken(node)
            if groups and _same(groups[-1][1], attr):
                groups[-1][0].append(part)
            else:
                groups.append(([part], attr))
        if len(groups) == 1:
            parts, self._lifted = groups[0]
            return stmt.stmt_seq(*parts)
        return stmt.stmt_seq(
            *(self._wrapped(stmt.stmt_seq(*parts), attr) for parts, attr in groups)
        )

    def visit_if_then_else_(self, op: stmt.IfThenElse) -> stmt.Stmt:
        then_case, attr = self._taken(op.then_case)
        if op.else_case is None:
            self._lifted = attr
            return stmt.IfThenElse(op.condition, then_case, None)
        else_case, other = self._taken(op.else_case)
        if _same(attr, other):
            self._lifted = attr
            return stmt.IfThenElse(op.condition, then_case, else_case)
        return stmt.IfThenElse(
            op.condition, self._wrapped(then_case, attr), self._wrapped(else_case, other)
        )


def _same(one: _Attr | None, other: _Attr | None) -> bool:
    if one is None or other is None:
        return one is other
    return one[0].same_as(other[0]) and structural_equal(one[1], other[1])


def _uses(attr: _Attr, variable: Any) -> bool:
    if variable is None:
        return False
    terms = [part for part in attr if isinstance(part, expr.PrimExpr)]
    used = [var for term in terms for var in undefined_vars(stmt.Evaluate(term))]
    return any(var.same_as(variable) for var in used)


def LiftAttrScope(attr_key: str) -> Pass:
    """Put attributes of one key that are the same for neighbours around all of them.

    ``attr A: f(); attr A: g()`` becomes ``attr A: {f(); g()}``, and an attribute that stands for
    all of a loop or of a branch stands around it. It stays inside of what allocates memory, of
    blocks, and of loops over a variable that it depends on.

    Parameters
    ----------
    attr_key : such as "coproc_scope", of the parts of a program that a coprocessor runs.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        body = _Lifter(attr_key).run(func.body)
        return func if structural_equal(body, func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.LiftAttrScope")
