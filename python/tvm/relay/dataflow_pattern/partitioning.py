"""Cutting what patterns match out as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.ir import Op, RelayExpr

from ..expr import Call, Constant, Function, Var
from ..expr_functor import PostOrderMutator, operands, post_order_visit
from .matching import Match, non_overlapping

__all__ = ["partition"]


class _Body(PostOrderMutator):
    """The inside of a match, with parameters where others' values come in."""

    def __init__(self, match: Match, number: int, embedded: set[RelayExpr]) -> None:
        super().__init__()
        self._match = match
        self._number = number
        self._embedded = embedded
        self.params: list[Var] = []
        self.inputs: list[RelayExpr] = []
        self.names: list[str] = []

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        return super().visited_first(expr) if expr in self._match.inner else []

    def dispatch(self, expr: RelayExpr) -> Any:
        inside = expr in self._match.inner and not isinstance(expr, (Var, Constant))
        if inside or expr in self._embedded or isinstance(expr, Op):
            new = super().dispatch(expr)
            if isinstance(expr, Call) and isinstance(expr.op, Op):
                self.names.append(f"{expr.op.name}_")
            return new
        name = f"FunctionVar_{self._number}_{len(self.params)}"
        self.params.append(Var(name, expr.checked_type_ or getattr(expr, "type_annotation", None)))
        self.inputs.append(expr)
        return self.params[-1]


class _Partitioner(PostOrderMutator):
    def __init__(self, matches: list[Match], attrs: Mapping[str, Any]) -> None:
        super().__init__()
        self._matches = {m.root: (k, m) for k, m in enumerate(matches)}
        self._attrs = attrs

    def _inside(self, expr: RelayExpr) -> tuple[_Body, RelayExpr]:
        number, match = self._matches[expr]
        constants = {e for p, exprs in match.bound.items() if p.embedded for e in exprs}
        body = _Body(match, number, constants)
        return body, body.visit(expr)

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if expr in self._matches:
            return self._inside(expr)[0].inputs
        return super().visited_first(expr)

    def dispatch(self, expr: RelayExpr) -> Any:
        if expr not in self._matches:
            return super().dispatch(expr)
        body, result = self._inside(expr)
        attrs = {"PartitionedFromPattern": "".join(body.names), **self._attrs}
        func = Function(body.params, result, attrs=attrs)
        return Call(func, [self.visit(e) for e in body.inputs])


def _used_outside(expr: RelayExpr, matches: list[Match]) -> set[RelayExpr]:
    """Roots of matches with an inner value that something outside of them uses."""
    owner = {e: m for m in matches for e in m.inner if operands(e)}
    found: set[RelayExpr] = set()

    def look(user: RelayExpr) -> None:
        used = [user.body] if isinstance(user, Function) else operands(user)
        for value in used:
            match = owner.get(value)
            if match is not None and not value.same_as(match.root) and user not in match.inner:
                found.add(match.root)

    post_order_visit(expr, look)
    return found


def _in_made_functions(expr: RelayExpr) -> set[RelayExpr]:
    """What is inside of functions that were cut out before, which are left as they are."""
    found: set[RelayExpr] = set()

    def look(node: RelayExpr) -> None:
        attrs = node.attrs if isinstance(node, Function) else None
        if attrs is not None and "PartitionedFromPattern" in attrs:
            post_order_visit(node.body, found.add)

    post_order_visit(expr, look)
    return found


def partition(
    pattern: Any,
    expr: RelayExpr,
    attrs: Mapping[str, Any] | None = None,
    check: Callable[[RelayExpr], bool] = lambda _: True,
) -> RelayExpr:
    """The expression with every match as the call of a function.

    What open ends of the pattern (`wildcard`, `is_var`, `is_expr`) match becomes arguments, what
    `is_constant` matches stays inside. Matches with an inner value that is used outside are left,
    and so are functions that were cut out before.

    Parameters
    ----------
    attrs : attributes of the functions beside "PartitionedFromPattern", the operators' names.
    check : whether to take a match, given its expression.
    """
    made = _in_made_functions(expr)
    matches = [m for m in non_overlapping(pattern, expr) if m.root not in made and check(m.root)]
    outside = _used_outside(expr, matches)
    matches = [m for m in matches if m.root not in outside]
    return _Partitioner(matches, attrs or {}).visit(expr) if matches else expr
