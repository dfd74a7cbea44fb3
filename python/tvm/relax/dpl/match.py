"""One attempt to find the expression that each part of a pattern stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import tir
from tvm.arith import Analyzer
from tvm.ir import PrimExpr, RelayExpr

from ..expr import Tuple, TupleGetItem, Var

__all__ = ["Matcher", "same_extents"]


def same_extents(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether extents are equal one by one, whatever their variables stand for."""

    def as_wide(extent: Any) -> PrimExpr:
        if not isinstance(extent, PrimExpr):
            return tir.const(int(extent), "int64")
        return extent if extent.dtype == "int64" else extent.astype("int64")

    analyzer = Analyzer()
    return len(a) == len(b) and all(
        analyzer.can_prove_equal(as_wide(x), as_wide(y)) for x, y in zip(a, b)
    )


class Matcher:
    """What parts of a pattern have been found to stand for, so far.

    Patterns ask it for their parts; a part that has been found already must be the same again.

    Parameters
    ----------
    var2val : what variables are bound to, to look through them; empty not to.
    found : what is known from before.
    """

    def __init__(
        self,
        var2val: Mapping[Var, RelayExpr] | None = None,
        found: Mapping[Any, RelayExpr] | None = None,
    ) -> None:
        self.var2val = var2val or {}
        self.found: dict[Any, RelayExpr] = dict(found or {})

    def match(self, pattern: Any, expr: RelayExpr) -> bool:
        """Whether the expression is like the pattern; what a failed attempt found is forgotten."""
        if pattern in self.found:
            return self._same(self.found[pattern], expr)
        return self.attempt(lambda: pattern.accepts(expr, self) and self._keep(pattern, expr))

    def _keep(self, pattern: Any, expr: RelayExpr) -> bool:
        self.found[pattern] = expr
        return True

    def _same(self, a: RelayExpr, b: RelayExpr) -> bool:
        return a.same_as(b) or self.value(a).same_as(self.value(b))

    def attempt(self, trial: Callable[[], bool]) -> bool:
        """What a trial says; unless that is true, what was found meanwhile is forgotten."""
        before = dict(self.found)
        if trial():
            return True
        self.found = before
        return False

    def match_all(self, patterns: Sequence[Any], exprs: Sequence[RelayExpr]) -> bool:
        """Whether expressions are like patterns, one by one."""
        return len(patterns) == len(exprs) and self.attempt(
            lambda: all(self.match(p, e) for p, e in zip(patterns, exprs))
        )

    def value(self, expr: RelayExpr) -> RelayExpr:
        """What an expression stands for: through variables, and through fields of known tuples."""
        while True:
            if isinstance(expr, Var) and expr in self.var2val:
                expr = self.var2val[expr]
            elif isinstance(expr, TupleGetItem):
                whole = self.value(expr.tuple_value)
                if not isinstance(whole, Tuple):
                    return expr
                expr = whole.fields[expr.index]
            else:
                return expr
