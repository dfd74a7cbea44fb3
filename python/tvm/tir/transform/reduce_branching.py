"""Conditions that decide nothing, because both branches come to the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.arith import Analyzer
from tvm.ir import IRModule, PrimExpr, Range, structural_equal
from tvm.ir.transform import Pass, PassContext

from .. import expr, stmt
from ..buffer import Buffer
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from ..stmt_functor import pre_order_visit, substitute
from . import transform
from .function_pass import prim_func_pass

__all__ = ["ReduceBranchingThroughOvercompute", "alternatives", "is_safe", "loads_of"]

_OPTION = "tir.ReduceBranchingThroughOvercompute"


class _AtBranch(StmtExprMutator):
    """The program with another statement in the place of its `number`-th branch."""

    def __init__(self, number: int, replace: Callable[[stmt.IfThenElse], stmt.Stmt]) -> None:
        self._left, self._replace = number, replace
        self.found: stmt.IfThenElse | None = None

    def visit_if_then_else_(self, op: stmt.IfThenElse) -> stmt.Stmt:
        self._left -= 1
        if self._left == -1:
            self.found = op
            return self._replace(op)
        return self._visit_below(op)


@dataclass
class _Known:
    """That ``buffer[loop variables]`` is `value` in all trips of the loops in which none of
    `unless` holds."""

    loops: list[stmt.For]
    buffer: Buffer
    indices: list[PrimExpr]
    value: PrimExpr
    unless: list[PrimExpr]


def alternatives(condition: PrimExpr) -> list[PrimExpr]:
    """What a condition is the disjunction of."""
    if isinstance(condition, expr.Or):
        return [*alternatives(condition.a), *alternatives(condition.b)]
    return [condition]


class _Loads(StmtExprVisitor):
    def __init__(self) -> None:
        self.found: list[expr.BufferLoad] = []
        self.divisors: list[PrimExpr] = []

    def visit_buffer_load_(self, op: expr.BufferLoad) -> None:
        self.found.append(op)
        self._visit_below(op)

    def _divide(self, op: Any) -> None:
        self.divisors.append(op.b)
        self._visit_below(op)

    visit_div_ = visit_mod_ = visit_floor_div_ = visit_floor_mod_ = _divide


def loads_of(node: Any) -> list[expr.BufferLoad]:
    """Elements that a statement or an expression reads."""
    loads = _Loads()
    loads.visit(node)
    return loads.found


def is_safe(body: stmt.Stmt, analyzer: Analyzer) -> bool:
    """Whether a statement stays in its buffers, also where it was not reached before."""
    loads = _Loads()
    loads.visit(body)
    return all(
        analyzer.can_prove(index >= 0) and analyzer.can_prove(index < extent)
        for load in loads.found
        for index, extent in zip(load.indices, load.buffer.shape)
    ) and all(analyzer.can_prove(expr.NE(divisor, 0)) for divisor in loads.divisors)


class _Assumptions(StmtExprVisitor):
    """What a function assumes of elements that it never writes."""

    def __init__(self) -> None:
        self._loops: list[stmt.For] = []
        self._conditions = 0
        self._found: list[_Known] = []
        self._written: set[Any] = set()

    def known(self, func: PrimFunc) -> list[_Known]:
        self.visit(func.body)
        return [known for known in self._found if known.buffer.data not in self._written]

    def visit_for_(self, op: stmt.For) -> None:
        self._loops.append(op)
        self._visit_below(op)
        self._loops.pop()

    def _skip(self, op: Any) -> None:
        # What is assumed here holds under conditions, or is said in variables of this place.
        self._conditions += 1
        self._visit_below(op)
        self._conditions -= 1

    visit_if_then_else_ = visit_while_ = visit_let_stmt_ = visit_attr_stmt_ = visit_block_ = _skip

    def visit_buffer_store_(self, op: stmt.BufferStore) -> None:
        self._written.add(op.buffer.data)
        self._visit_below(op)

    def visit_var_(self, op: expr.Var) -> None:
        # Whoever has the pointer may write.
        if str(op.dtype) == "handle":
            self._written.add(op)

    def visit_call_(self, op: expr.Call) -> None:
        name = getattr(op.op, "name", "")
        if name == "tir.assume" and self._conditions == 0:
            self._add(op.args[0])
        elif name == "tir.address_of":
            self._written.add(op.args[0].buffer.data)
        self._visit_below(op)

    def _add(self, condition: PrimExpr) -> None:
        parts = alternatives(condition)
        facts = [part for part in parts if isinstance(part, expr.EQ)]
        for fact in facts:
            for load, value in ((fact.a, fact.b), (fact.b, fact.a)):
                unless = [part for part in parts if not part.same_as(fact)]
                # Only of what is the same wherever it is evaluated.
                if isinstance(load, expr.BufferLoad) and not any(map(loads_of, [value, *unless])):
                    indices = list(load.indices)
                    self._found.append(
                        _Known(list(self._loops), load.buffer, indices, value, unless)
                    )


class _Insert(StmtExprMutator):
    """The values of elements in the place of loads, where it is proved that they are there."""

    def __init__(self, known: list[_Known], analyzer: Analyzer) -> None:
        self._known, self._analyzer = known, analyzer

    def visit_buffer_load_(self, op: expr.BufferLoad) -> PrimExpr:
        for known in self._known:
            if op.buffer.same_as(known.buffer):
                value = self._value(known, list(op.indices))
                if value is not None:
                    return value
        return self._visit_below(op)

    def _value(self, known: _Known, indices: list[PrimExpr]) -> PrimExpr | None:
        place = dict(zip(known.indices, indices))
        variables = {loop.loop_var for loop in known.loops}
        if len(place) != len(indices) or set(place) != variables:
            return None
        prove = self._analyzer.can_prove
        for loop in known.loops:
            index = place[loop.loop_var]
            if not (prove(index >= loop.min) and prove(index < loop.min + loop.extent)):
                return None
        if not all(prove(expr.Not(substitute(part, place))) for part in known.unless):
            return None
        return substitute(known.value, place)


def _simplified(func: PrimFunc) -> PrimFunc:
    mod = transform.Simplify()(IRModule({"main": func}))
    return transform.RemoveNoOp()(mod)["main"]


def _without_branch(func: PrimFunc, number: int, known: list[_Known]) -> stmt.Stmt | None:
    """The body with the `number`-th branch taken always, or None if that changes what it does."""
    place = _AtBranch(number, lambda op: op)
    place.visit(func.body)
    branch = place.found
    assert branch is not None
    otherwise = stmt.Evaluate(0) if branch.else_case is None else branch.else_case
    analyzer = Analyzer()

    def bind(node: Any) -> bool:
        if isinstance(node, stmt.For):
            analyzer.bind(node.loop_var, Range.from_min_extent(node.min, node.extent), True)
        return True

    pre_order_visit(func.body, bind)

    def within(condition: PrimExpr, body: stmt.Stmt) -> stmt.Stmt:
        with analyzer.constraint_scope(condition):
            return _Insert(known, analyzer).visit(body)

    def replaced(new: stmt.Stmt) -> stmt.Stmt:
        return _AtBranch(number, lambda op: new).visit(func.body)

    condition = branch.condition
    # Where the condition fails, the first branch has to do what the second one did; or the other
    # way round.
    for test, always, other in (
        (expr.Not(condition), branch.then_case, otherwise),
        (condition, otherwise, branch.then_case),
    ):
        with analyzer.constraint_scope(test):
            if not is_safe(always, analyzer):
                continue
        before, after = (
            _simplified(func.with_body(replaced(stmt.IfThenElse(test, within(test, body), None))))
            for body in (other, always)
        )
        if structural_equal(before.body, after.body):
            return replaced(always)
    return None


def ReduceBranchingThroughOvercompute() -> Pass:
    """Drop conditions where one branch, taken always, leaves the same behind.

    A branch may then compute more than it did, such as products with zeros that were padded: the
    option ``tir.ReduceBranchingThroughOvercompute`` is a dict; ``use_dataflow_analysis`` asks what
    ``T.assume`` tells of elements that are only read.
    """

    def run(func: PrimFunc, mod: Any, ctx: PassContext) -> PrimFunc:
        config = ctx.config
        given = dict(config[_OPTION]) if _OPTION in config else {}
        unknown = set(given) - {"use_dataflow_analysis"}
        if unknown:
            raise ValueError(
                f"{_OPTION} has no option {sorted(unknown)[0]}; there is use_dataflow_analysis"
            )
        dataflow = bool(given.get("use_dataflow_analysis", False))
        known = _Assumptions().known(func) if dataflow else []
        number = 0
        while True:
            counter = _AtBranch(number, lambda op: op)
            counter.visit(func.body)
            if counter.found is None:
                return func
            body = _without_branch(func, number, known)
            if body is None:
                number += 1
            else:
                func = func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.ReduceBranchingThroughOvercompute")
