"""Rewriting what patterns match by callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error
from tvm.ir import IRModule, RelayExpr, structural_equal

from ..analysis.infer import infer_function
from ..analysis.variables import free_vars
from ..expr import Function, set_checked_type
from ..expr_functor import PostOrderMutator
from .matching import Match, non_overlapping

__all__ = ["DFPatternCallback", "rewrite"]

_LIMIT = 100


class DFPatternCallback:
    """A pattern and what its matches become; derived classes set `pattern` and write `callback`.

    Parameters
    ----------
    require_type : whether types are known in the expressions that the callback gets.
    rewrite_once : rewrite by one walk; otherwise until nothing changes.
    """

    pattern: Any = None

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def callback(self, pre: RelayExpr, post: RelayExpr, node_map: dict) -> RelayExpr:
        """The new expression.

        Parameters
        ----------
        pre, post : the match as it was, and with its operands rewritten. Where the types of one
            are known, those of the other are.
        node_map : lists of rewritten expressions by pattern.
        """
        raise NotImplementedError(f"{type(self).__name__} writes callback")

    def rewrite(self, expr: RelayExpr) -> RelayExpr:
        """The expression with matches rewritten; see :func:`rewrite`."""
        return rewrite(self, expr)


class _Rewriter(PostOrderMutator):
    def __init__(self, callback: DFPatternCallback, matches: Sequence[Match]) -> None:
        super().__init__()
        self._callback = callback
        self._matches = {m.root: m for m in matches}

    def dispatch(self, expr: RelayExpr) -> Any:
        post = super().dispatch(expr)
        known = expr.checked_type_
        if known is not None and type(post) is type(expr) and post.checked_type_ is None:
            # Rewrites keep types, so callbacks may ask for those of expressions around others.
            set_checked_type(post, known)
        match = self._matches.get(expr)
        if match is None:
            return post
        memo = self.memo_map
        nodes = {
            p: [post if e.same_as(expr) else memo.get(e, e) for e in exprs]
            for p, exprs in match.bound.items()
        }
        return self._callback.callback(expr, post, nodes)


def _typed(expr: RelayExpr, mod: IRModule | None) -> RelayExpr:
    if isinstance(expr, Function):
        return infer_function(expr, mod, {})
    typed = infer_function(Function(free_vars(expr), expr), mod, {})
    # The variables keep their identity, so the body stands for the expression.
    return typed.body


def rewrite(
    callbacks: DFPatternCallback | Sequence[DFPatternCallback],
    expr: RelayExpr,
    mod: IRModule | None = None,
) -> RelayExpr:
    """The expression with what patterns match rewritten, until nothing changes.

    Parameters
    ----------
    callbacks : one, or several that are run one after the other.
    mod : has the functions that the expression names, where types are required.

    Raises
    ------
    ValueError : the callbacks undo each other's work, or one's result matches without end.
    """
    group = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    once = {id(c) for c in group if c.rewrite_once}
    for round_number in range(_LIMIT):
        before = expr
        for callback in group:
            if callback.pattern is None:
                raise error.ValueError(f"{type(callback).__name__}: set pattern")
            if round_number and id(callback) in once:
                continue
            if callback.require_type:
                expr = _typed(expr, mod)
            expr = _Rewriter(callback, non_overlapping(callback.pattern, expr)).visit(expr)
        if structural_equal(before, expr, map_free_vars=True):
            return expr
    raise error.ValueError(
        f"relay.dataflow_pattern.rewrite: still changing after {_LIMIT} walks; use rewrite_once"
    )
