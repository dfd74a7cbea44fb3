"""Conditions of element-wise functions that only keep padding as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.arith import Analyzer
from tvm.ir import PrimExpr
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..block import Block
from ..buffer import Buffer
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from ..stmt_functor import substitute
from .function_pass import prim_func_pass
from .reduce_branching import alternatives, is_safe, loads_of

__all__ = ["UseAssumeToReduceBranches"]

_PATTERN = "op_pattern"
_BROADCAST = 1  # element-wise functions have 0


@dataclass
class _Fact:
    """That ``buffer[indices]`` is `value` for all values of `axes` where none of `unless` holds."""

    axes: list[expr.Var]
    buffer: Buffer
    indices: list[PrimExpr]
    value: PrimExpr
    unless: list[PrimExpr]


class _Facts(StmtExprVisitor):
    """What the blocks of a function assume of elements that it never writes."""

    def __init__(self) -> None:
        self._axes: list[expr.Var] = []
        self._conditions = 0
        self._found: list[_Fact] = []
        self._written: set[expr.Var] = set()

    def known(self, func: PrimFunc) -> list[_Fact]:
        self.visit(func.body)
        return [fact for fact in self._found if fact.buffer.data not in self._written]

    def visit_block_(self, op: Block) -> None:
        outer, self._axes = self._axes, [axis.var for axis in op.iter_vars]
        self.visit(op.body)
        self._axes = outer

    def visit_if_then_else_(self, op: stmt.IfThenElse) -> None:
        self._conditions += 1
        self._visit_below(op)
        self._conditions -= 1

    def visit_buffer_store_(self, op: stmt.BufferStore) -> None:
        self._written.add(op.buffer.data)
        self._visit_below(op)

    def visit_var_(self, op: expr.Var) -> None:
        # Whoever has the pointer may write.
        if str(op.dtype) == "handle":
            self._written.add(op)

    def visit_call_(self, op: expr.Call) -> None:
        if getattr(op.op, "name", "") == "tir.assume" and self._conditions == 0:
            parts = alternatives(op.args[0])
            for fact in parts:
                unless = [part for part in parts if not part.same_as(fact)]
                self._add(fact, unless)
        self._visit_below(op)

    def _add(self, fact: PrimExpr, unless: list[PrimExpr]) -> None:
        if not isinstance(fact, expr.EQ):
            return
        for load, value in ((fact.a, fact.b), (fact.b, fact.a)):
            if isinstance(load, expr.BufferLoad) and not any(map(loads_of, [value, *unless])):
                indices = list(load.indices)
                self._found.append(_Fact(self._axes, load.buffer, indices, value, unless))


class _Known(StmtExprMutator):
    """The values of elements in the place of loads."""

    def __init__(self, facts: list[_Fact], analyzer: Analyzer) -> None:
        self._facts, self._analyzer = facts, analyzer

    def visit_buffer_load_(self, op: expr.BufferLoad) -> PrimExpr:
        for fact in self._facts:
            if not op.buffer.same_as(fact.buffer):
                continue
            place = self._place(fact, list(op.indices))
            if place is not None and all(self._fails(part, place) for part in fact.unless):
                return substitute(fact.value, place)
        return self._visit_below(op)

    def _place(self, fact: _Fact, indices: list[PrimExpr]) -> dict[expr.Var, PrimExpr] | None:
        """The values of a fact's axes at which it speaks of an element."""
        place: dict[expr.Var, PrimExpr] = {}
        for said, index in zip(fact.indices, indices):
            if isinstance(said, expr.Var) and said in fact.axes and said not in place:
                place[said] = index
            elif not self._analyzer.can_prove_equal(said, index):
                return None
        free = set(fact.axes) - set(place)
        used = [v for part in [fact.value, *fact.unless] for v in _variables(part)]
        return None if free.intersection(used) else place

    def _fails(self, part: PrimExpr, place: dict[expr.Var, PrimExpr]) -> bool:
        part = substitute(part, place)
        opposite = part.a if isinstance(part, expr.Not) else expr.Not(part)
        return bool(self._analyzer.can_prove(opposite))


def _variables(value: PrimExpr) -> list[expr.Var]:
    found: list[expr.Var] = []

    class Variables(StmtExprVisitor):
        def visit_var_(self, op: expr.Var) -> None:
            found.append(op)

    Variables().visit(value)
    return found


class _Reducer(StmtExprMutator):
    def __init__(self, facts: list[_Fact]) -> None:
        self._facts = facts
        self._analyzer = Analyzer()

    def visit_block_(self, op: Block) -> Any:
        for axis in op.iter_vars:
            self._analyzer.bind(axis.var, axis.dom, True)
        return self._visit_below(op)

    def visit_call_(self, op: expr.Call) -> PrimExpr:
        call = self._visit_below(op)
        if getattr(call.op, "name", "") != "tir.if_then_else":
            return call
        condition, yes, no = call.args
        for test, always, other in ((condition, no, yes), (expr.Not(condition), yes, no)):
            if self._same(test, always, other):
                return always
        return call

    def _same(self, test: PrimExpr, always: PrimExpr, other: PrimExpr) -> bool:
        """Whether `always` is safe to compute, and is `other` where the test holds."""
        with self._analyzer.constraint_scope(test):
            if not is_safe(stmt.Evaluate(always), self._analyzer):
                return False
            known = _Known(self._facts, self._analyzer)
            difference = [self._analyzer.simplify(known.visit(e)) for e in (always, other)]
            return bool(self._analyzer.can_prove_equal(*difference))


def UseAssumeToReduceBranches() -> Pass:
    """Compute padding like any other element, where that leaves in it what is there.

    For functions with the attribute ``op_pattern`` of element-wise or broadcasting ones (0 or 1).
    A value ``T.if_then_else(condition, padding, f(A[i]))`` becomes ``f(A[i])`` where what
    ``T.assume`` says of the elements of A makes both the same. Loops without the condition can be
    vectorized.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        pattern = None if func.attrs is None else func.attrs.get(_PATTERN)
        if pattern is None or int(pattern) > _BROADCAST:
            return func
        facts = _Facts().known(func)
        if not facts:
            return func
        body = _Reducer(facts).visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.UseAssumeToReduceBranches")
