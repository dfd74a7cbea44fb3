"""Expressions that a program computes more than once get a name."""

from __future__ import annotations

from typing import Any

from tvm.arith import Analyzer
from tvm.ir import FloatImm, IntImm, structural_equal, structural_hash
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..analysis import CallEffectKind, side_effect
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from .function_pass import prim_func_pass

__all__ = ["CommonSubexprElimTIR"]

_LEAVES = (IntImm, FloatImm, expr.StringImm, expr.Var, expr.Ramp, expr.Broadcast)


class _Term:
    """An expression by its value: equal ones have one key."""

    def __init__(self, value: expr.PrimExpr) -> None:
        self.value = value
        self._hash = structural_hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Term) and structural_equal(self.value, other.value)


class _Facts(StmtExprVisitor):
    """How large an expression is, whether it can be named, and the variables it needs."""

    def __init__(self) -> None:
        self.size = 0
        self.variables: set[expr.Var] = set()
        self.plain = True

    def visit_expr(self, node: expr.PrimExpr) -> None:
        self.size += 1
        if isinstance(node, expr.Var):
            self.variables.add(node)
        self.plain = self.plain and not isinstance(
            node, (expr.Call, expr.BufferLoad, expr.Let, expr.Reduce)
        )
        super().visit_expr(node)


class _Counter(StmtExprVisitor):
    """The terms of a statement that are computed wherever the statement runs, with their counts.

    What only one branch of a condition computes is not among them.
    """

    def __init__(self, names: _Names) -> None:
        self._names = names
        self.counts: dict[_Term, int] = {}
        self._bound: set[expr.Var] = set()

    def visit_expr(self, node: expr.PrimExpr) -> None:
        term = self._names.term(node)
        if term is not None and not (self._names.variables(term) & self._bound):
            self.counts[term] = self.counts.get(term, 0) + 1
        super().visit_expr(node)

    def visit_let_stmt_(self, op: stmt.LetStmt) -> None:
        self.visit(op.value)
        self._bound.add(op.var)
        self.visit(op.body)

    def visit_let_(self, op: expr.Let) -> None:
        self.visit(op.value)
        self._bound.add(op.var)
        self.visit(op.body)

    def visit_for_(self, op: stmt.For) -> None:
        self.visit(op.min)
        self.visit(op.extent)
        self._bound.add(op.loop_var)
        self.visit(op.body)

    def visit_attr_stmt_(self, op: stmt.AttrStmt) -> None:
        self.visit(op.value)
        if isinstance(op.node, expr.IterVar):
            self._bound.add(op.node.var)
        self.visit(op.body)

    def visit_block_realize_(self, op: Any) -> None:
        for value in op.iter_values:
            self.visit(value)
        self.visit(op.predicate)
        self._bound.update(axis.var for axis in op.block.iter_vars)
        self.visit(op.block.body)

    def visit_if_then_else_(self, op: stmt.IfThenElse) -> None:
        self.visit(op.condition)
        branches = []
        for case in (op.then_case, op.else_case):
            if case is None:
                return
            inner = _Counter(self._names)
            inner._bound = self._bound
            inner.visit(case)
            branches.append(inner.counts)
        first, second = branches
        for term, count in first.items():
            if term in second:
                self.counts[term] = self.counts.get(term, 0) + count + second[term]

    def visit_select_(self, op: expr.Select) -> None:
        self.visit(op.condition)

    def visit_while_(self, op: stmt.While) -> None:
        pass


class _Distributed(StmtExprMutator):
    """Products of integers over the sums in them: ``x*(y + z)`` is ``x*y + x*z``.

    Floating-point sums round, so they stay as they are.
    """

    def visit_mul_(self, op: expr.Mul) -> expr.PrimExpr:
        a, b = self.visit_expr(op.a), self.visit_expr(op.b)
        if "int" not in op.dtype:
            return expr.Mul(a, b)
        for whole, other in ((a, b), (b, a)):
            if isinstance(whole, expr.Add | expr.Sub):
                parts = [
                    self.visit_expr(expr.Mul(part, other) if whole is a else expr.Mul(other, part))
                    for part in (whole.a, whole.b)
                ]
                return type(whole)(*parts)
        return expr.Mul(a, b)


class _Names:
    """What terms are, remembered; and the numbers of the new variables."""

    def __init__(self, equivalent: bool) -> None:
        self._analyzer = Analyzer() if equivalent else None
        self._terms: dict[expr.PrimExpr, _Term | None] = {}
        self._facts: dict[_Term, _Facts] = {}
        self._made = 0

    def term(self, node: expr.PrimExpr) -> _Term | None:
        """The key of an expression, or None of one that gets no name."""
        if isinstance(node, _LEAVES):
            return None
        if node not in self._terms:
            facts = _Facts()
            facts.visit(node)
            named = facts.plain and side_effect(node) <= CallEffectKind.Pure
            value = node
            if named and self._analyzer is not None:
                value = self._analyzer.simplify(_Distributed().visit_expr(node))
                named = not isinstance(value, _LEAVES)
            term = _Term(value) if named else None
            if term is not None:
                self._facts.setdefault(term, facts)
            self._terms[node] = term
        return self._terms[node]

    def variables(self, term: _Term) -> set[expr.Var]:
        return self._facts[term].variables

    def size(self, term: _Term) -> int:
        return self._facts[term].size

    def fresh(self, dtype: str) -> expr.Var:
        self._made += 1
        return expr.Var(f"cse_var_{self._made}", dtype)


class _Replacer(StmtExprMutator):
    def __init__(self, names: _Names, term: _Term, var: expr.Var) -> None:
        self._names, self._term, self._var = names, term, var

    def visit_expr(self, node: expr.PrimExpr) -> expr.PrimExpr:
        if self._names.term(node) == self._term:
            return self._var
        return super().visit_expr(node)


class _Eliminator(StmtExprMutator):
    """Names what a statement computes twice, from the outermost statement inwards."""

    def __init__(self, names: _Names) -> None:
        self._names = names

    def visit_stmt(self, node: stmt.Stmt) -> stmt.Stmt:
        bindings: list[tuple[expr.Var, expr.PrimExpr]] = []
        while True:
            counter = _Counter(self._names)
            for _, value in bindings:
                counter.visit(value)
            counter.visit(node)
            repeated = [term for term, count in counter.counts.items() if count > 1]
            if not repeated:
                break
            # The largest first: parts of it that stand elsewhere too are named after it.
            term = max(repeated, key=self._names.size)
            var = self._names.fresh(str(term.value.dtype))
            replacer = _Replacer(self._names, term, var)
            node = replacer.visit(node)
            bindings = [(old, replacer.visit(value)) for old, value in bindings]
            bindings.append((var, term.value))
        node = super().visit_stmt(node)
        for var, value in bindings:
            node = stmt.LetStmt(var, value, node)
        return node

    def visit_block_realize_(self, op: Any) -> stmt.Stmt:
        # A block is entered, but nothing stands between it and the values it gets.
        return self._visit_below(op)

    def visit_block_(self, op: Any) -> stmt.Stmt:
        return self._visit_below(op)


def CommonSubexprElimTIR(enable_cse_tir: bool = True, identify_equiv_terms: bool = False) -> Pass:
    """Bind pure expressions that are computed more than once to variables ``cse_var_<n>``.

    A name stands around the innermost statement with all of its uses. What only one branch of a
    condition computes is named in that branch. Lowering does not run this pass: the compilers
    behind the code generators do the same.

    Parameters
    ----------
    enable_cse_tir : False for a pass that does nothing, as with the option ``tir.disable_cse_tir``.
    identify_equiv_terms : compare expressions by their simplified form, in which products of
        integers are distributed over sums, and which the name gets; also asked for by the option
        ``tir.enable_equiv_terms_in_cse_tir``.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        if not enable_cse_tir or ctx.config.get("tir.disable_cse_tir", False):
            return func
        equivalent = identify_equiv_terms or ctx.config.get(
            "tir.enable_equiv_terms_in_cse_tir", False
        )
        body = _Eliminator(_Names(bool(equivalent))).visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.CommonSubexprElimTIR")
