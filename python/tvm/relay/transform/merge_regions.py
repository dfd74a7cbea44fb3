"""Regions of one compiler made larger ones, where no region would then need its own results."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr
from tvm.ir.transform import Pass

from ..adt import Match
from ..expr import Call, Function, If, Let
from ..expr_functor import PostOrderMutator, computed_first
from .base import expression_pass
from .regions import Regions, compiler_of, mark_of

__all__ = ["MergeCompilerRegions"]


def _used_by(expr: RelayExpr) -> list[RelayExpr]:
    """What an expression is made of, branches too."""
    if isinstance(expr, Function):
        return [*expr.params, expr.body]
    if isinstance(expr, Let):
        return [expr.var, expr.value, expr.body]
    if isinstance(expr, If):
        return [expr.cond, expr.true_branch, expr.false_branch]
    if isinstance(expr, Match):
        return [expr.data, *(clause.rhs for clause in expr.clauses)]
    return computed_first(expr)


def _uses(func: Function) -> dict[RelayExpr, list[RelayExpr]]:
    """What each expression uses, branches too, in an order in which that comes before it."""
    found: dict[RelayExpr, list[RelayExpr]] = {}
    pending: list[tuple[RelayExpr, bool]] = [(func, False)]
    while pending:
        expr, ready = pending.pop()
        if expr in found:
            continue
        used = _used_by(expr)
        if ready or not used:
            found[expr] = used
        else:
            pending.append((expr, True))
            pending.extend((part, False) for part in reversed(used))
    return found


class _Merged:
    """The regions of a function, joined as far as it goes."""

    def __init__(self, func: Function) -> None:
        uses = _uses(func)
        self._regions = Regions(func.body, default=True)
        self._next: dict[RelayExpr, set[RelayExpr]] = {}
        for expr, used in uses.items():
            if not mark_of(expr):
                targets = {self._node(u) for u in used}
                self._next.setdefault(self._node(expr), set()).update(targets)
        for user, used in uses.items():
            for begin in used:
                if mark_of(begin) == "compiler_begin" and mark_of(begin.args[0]) == "compiler_end":
                    self._try(begin, begin.args[0].args[0], user)

    def _node(self, expr: RelayExpr) -> RelayExpr:
        """What stands for an expression in the graph of regions: its region, or itself."""
        while mark_of(expr):
            expr = expr.args[0]
        region = self._regions.of(expr)
        return expr if region is None else region

    def _try(self, begin: RelayExpr, inner: RelayExpr, user: RelayExpr) -> None:
        if compiler_of(begin) != compiler_of(begin.args[0]):
            return
        before, behind = self._regions.of(inner), self._regions.of(user)
        if before is None or behind is None or before.same_as(behind):
            return
        if not self._reaches_around(behind, before):
            self._regions.join(before, behind)
            self._next[self._node(user)] = self._after(behind) | self._after(before)

    def _after(self, node: RelayExpr) -> set[RelayExpr]:
        return {self._node(n) for n in self._next.get(node, set())}

    def _reaches_around(self, start: RelayExpr, goal: RelayExpr) -> bool:
        """Whether there is a way from one region to another through something else."""
        pending = [n for n in self._after(start) if not n.same_as(goal) and not n.same_as(start)]
        seen = set(pending)
        while pending:
            for following in self._after(pending.pop()):
                if following.same_as(goal):
                    return True
                if following not in seen and not following.same_as(start):
                    seen.add(following)
                    pending.append(following)
        return False

    def are_one(self, a: RelayExpr, b: RelayExpr) -> bool:
        """Whether two expressions are in one region now."""
        first, second = self._regions.of(a), self._regions.of(b)
        return first is not None and second is not None and first.same_as(second)


class _Unmarking(PostOrderMutator):
    """Drops the marks between expressions of one region."""

    def __init__(self, merged: _Merged) -> None:
        super().__init__()
        self._merged = merged

    def _operand(self, user: RelayExpr, arg: RelayExpr) -> RelayExpr:
        if mark_of(arg) == "compiler_begin" and mark_of(arg.args[0]) == "compiler_end":
            inner = arg.args[0].args[0]
            if self._merged.are_one(inner, user):
                return self.visit(inner)
        return self.visit(arg)

    def visit_call(self, call: Call) -> RelayExpr:
        op = self.visit(call.op)
        args = [self._operand(call, a) for a in call.args]
        if op.same_as(call.op) and all(a.same_as(b) for a, b in zip(args, call.args)):
            return call
        return Call(op, args, call.attrs, call.type_args)

    def visit_tuple(self, tup: RelayExpr) -> RelayExpr:
        return type(tup)([self._operand(tup, f) for f in tup.fields])

    def visit_tuple_getitem(self, item: RelayExpr) -> RelayExpr:
        return type(item)(self._operand(item, item.tuple_value), item.index)


def MergeCompilerRegions() -> Pass:
    """Join regions of one compiler, which `AnnotateTarget` makes of single calls.

    A region takes over one that it uses unless something else lies between the two: a function
    made of both would need a result that needs its own.
    """

    def rewrite(func: Function, mod: IRModule) -> RelayExpr:
        return _Unmarking(_Merged(func)).visit(func)

    return expression_pass(rewrite, 0, "MergeCompilerRegions")
