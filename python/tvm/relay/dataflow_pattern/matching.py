"""Matching patterns to expressions, and finding matches that do not overlap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm.ir import RelayExpr

from ..expr_functor import operands, post_order_visit

__all__ = ["Match", "Matcher", "non_overlapping"]


class Matcher:
    """What the parts of a pattern are bound to while an expression is matched.

    A part that is bound matches that expression only. Bindings of an attempt that fails are undone.
    """

    def __init__(self) -> None:
        self.bound: dict[Any, list[RelayExpr]] = {}
        self._trail: list[tuple[Any, list[RelayExpr] | None]] = []

    def match(self, pattern: Any, expr: RelayExpr) -> bool:
        """Whether a pattern matches, with bindings kept if it does."""
        if pattern in self.bound:
            return self.bound[pattern][0].same_as(expr)
        mark = self.mark()
        if not pattern.matches(expr, self):
            self.undo(mark)
            return False
        self.bind(pattern, [expr, *self.bound.get(pattern, [])])
        return True

    def match_all(self, patterns: Any, exprs: Any) -> bool:
        """Whether patterns match as many expressions one by one."""
        if len(patterns) != len(exprs):
            return False
        mark = self.mark()
        if all(self.match(p, e) for p, e in zip(patterns, exprs)):
            return True
        self.undo(mark)
        return False

    def match_apart(self, pattern: Any, expr: RelayExpr) -> bool:
        """Whether a pattern matches whatever its parts are bound to outside."""
        inner = Matcher()
        if not inner.match(pattern, expr):
            return False
        for part, exprs in inner.bound.items():
            self.bind(part, [*self.bound.get(part, []), *exprs])
        return True

    def bind(self, pattern: Any, exprs: list[RelayExpr]) -> None:
        """Note what a pattern stands for."""
        self._trail.append((pattern, self.bound.get(pattern)))
        self.bound[pattern] = exprs

    def mark(self) -> int:
        """A point to undo to."""
        return len(self._trail)

    def undo(self, mark: int) -> None:
        """Forget what was bound after a mark."""
        while len(self._trail) > mark:
            pattern, before = self._trail.pop()
            if before is None:
                del self.bound[pattern]
            else:
                self.bound[pattern] = before

    def match_path(self, path: Any, between: list[RelayExpr]) -> bool:
        """Whether a pattern matches every one of some expressions, each by itself."""
        for expr in between:
            mark = self.mark()
            if not self.match(path, expr):
                return False
            self.undo(mark)
        self.bind(path, between)
        return True


class Match:
    """One match.

    Attributes
    ----------
    root : the expression. bound : expressions by pattern. inner : the expressions that the pattern
    names itself, the root among them, without what its open ends match.
    """

    def __init__(self, root: RelayExpr, bound: dict[Any, list[RelayExpr]]) -> None:
        self.root = root
        self.bound = bound
        ends = {e for p, exprs in bound.items() if p.open_end for e in exprs}
        named = {e for p, exprs in bound.items() if not p.open_end for e in exprs}
        self.inner = set(_within(root, ends - named))


def _within(root: RelayExpr, ends: set[RelayExpr]) -> Iterator[RelayExpr]:
    pending, seen = [root], set()
    while pending:
        expr = pending.pop()
        if expr in seen or (expr in ends and not expr.same_as(root)):
            continue
        seen.add(expr)
        yield expr
        pending.extend(operands(expr))


def non_overlapping(pattern: Any, expr: RelayExpr) -> list[Match]:
    """Matches in an expression, the outer ones first; those that share a part with one before are
    left out."""
    order: list[RelayExpr] = []
    post_order_visit(expr, order.append)
    taken: set[RelayExpr] = set()
    found: list[Match] = []
    for candidate in reversed(order):
        if candidate in taken:
            continue
        matcher = Matcher()
        if not matcher.match(pattern, candidate):
            continue
        match = Match(candidate, matcher.bound)
        parts = {e for e in match.inner if operands(e)}
        if not parts & taken:
            taken |= parts
            found.append(match)
    return found
