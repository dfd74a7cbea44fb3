"""Writing lets and branches statement by statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tvm import error
from tvm.ir import RelayExpr, Type

from .expr import If, Let, Tuple, Var, as_expr

__all__ = ["ScopeBuilder"]


class _Scope:
    def __init__(self) -> None:
        self.bindings: list[tuple[Var, RelayExpr]] = []
        self.result: RelayExpr | None = None
        self.open = False


class ScopeBuilder:
    """Collects bindings and a result.

    >>> sb = tvm.relay.ScopeBuilder()
    >>> x = sb.let("x", tvm.relay.const(1.0))
    >>> sb.ret(tvm.relay.add(x, x))
    >>> expr = sb.get()
    """

    def __init__(self) -> None:
        self._scopes = [_Scope()]

    def let(self, var: Var | str | tuple[str, Type], value: Any) -> Var:
        """Give a value a name; the variable, or one of the name."""
        if isinstance(var, (tuple, list)):
            var = Var(var[0], var[1])
        elif isinstance(var, str):
            var = Var(var)
        self._scopes[-1].bindings.append((var, as_expr(value)))
        return var

    @contextmanager
    def if_scope(self, cond: RelayExpr) -> Iterator[None]:
        """Inside, what happens if the condition holds; `else_scope` must follow."""
        self._scopes.append(_Scope())
        yield
        branch = self._finish(self._scopes.pop())
        self._scopes[-1].result = If(cond, branch, Tuple([]))
        self._scopes[-1].open = True

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Inside, what happens otherwise.

        Raises
        ------
        RuntimeError : there was no `if_scope` before it.
        """
        outer = self._scopes[-1]
        if not outer.open:
            raise error.RuntimeError("ScopeBuilder: else_scope must follow if_scope")
        self._scopes.append(_Scope())
        yield
        branch = self._finish(self._scopes.pop())
        assert isinstance(outer.result, If)
        outer.result = If(outer.result.cond, outer.result.true_branch, branch)
        outer.open = False

    def ret(self, value: Any) -> None:
        """The result of the scope.

        Raises
        ------
        RuntimeError : it has one already.
        """
        if self._scopes[-1].result is not None:
            raise error.RuntimeError("ScopeBuilder: the scope has a result already")
        self._scopes[-1].result = as_expr(value)

    def _finish(self, scope: _Scope) -> RelayExpr:
        if scope.result is None:
            raise error.RuntimeError("ScopeBuilder: the scope has no result; call ret")
        result = scope.result
        for var, value in reversed(scope.bindings):
            result = Let(var, value, result)
        return result

    def get(self) -> RelayExpr:
        """The expression.

        Raises
        ------
        RuntimeError : there is no result, or an else_scope is missing.
        """
        if self._scopes[-1].open:
            raise error.RuntimeError("ScopeBuilder: else_scope is missing")
        return self._finish(self._scopes[-1])

    def type_of(self, expr: Any) -> Any:
        """What is known of the type of an expression."""
        if isinstance(expr, Var):
            return expr.type_annotation
        return expr.checked_type
