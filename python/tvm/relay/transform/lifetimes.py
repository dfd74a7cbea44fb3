"""Where variables are read for the last time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tvm.ir import IRModule, RelayExpr
from tvm.ir.transform import Pass

from ..adt import Clause, Match, pattern_vars
from ..analysis.variables import free_vars
from ..expr import Function, If, Let, Var
from ..op.memory import is_kill, kill
from .base import expression_pass

__all__ = ["ManifestLifetimes"]

Vars = dict[Var, None]
"""Variables in an order that is the same each time."""


def _vars(found: Iterable[Var]) -> Vars:
    return dict.fromkeys(found)


def _without(some: Iterable[Var], others: Vars) -> list[Var]:
    return [var for var in some if var not in others]


def _killing(dead: Sequence[Var], body: RelayExpr) -> RelayExpr:
    for var in reversed(dead):
        body = Let(Var("_"), kill(var), body)
    return body


def _block(expr: RelayExpr, kept: Vars, entering: Sequence[Var] = ()) -> RelayExpr:
    """A chain of bindings with the ends of its variables' lifetimes.

    Parameters
    ----------
    kept : variables that are read behind the block.
    entering : those that are not, and may be read in it.
    """
    bindings = []
    node = expr
    while isinstance(node, Let):
        bindings.append(node)
        node = node.body
    live = {**kept, **_vars(free_vars(node))}
    result = _branches(node, kept)
    for let in reversed(bindings):
        used = _vars(free_vars(let.value))
        dead = [] if is_kill(let.value) else _without([let.var], live)
        value = _branches(let.value, live)
        if value.same_as(let.value) and not is_kill(let.value):
            # What a choice reads for the last time ends in its branches.
            dead = _without(used, live) + dead
        result = Let(let.var, value, _killing(dead, result))
        live = {**used, **{var: None for var in live if not var.same_as(let.var)}}
    return _killing(_without(entering, live), result)


def _branches(expr: RelayExpr, kept: Vars) -> RelayExpr:
    """A choice with the ends of lifetimes in its branches; others come back as they are."""
    if not isinstance(expr, (If, Match)):
        return expr
    ending = _without(free_vars(expr), kept)
    if isinstance(expr, If):
        then, other = (_block(p, kept, ending) for p in (expr.true_branch, expr.false_branch))
        return If(expr.cond, then, other, expr.span)
    clauses = [
        Clause(c.lhs, _block(c.rhs, kept, [*ending, *pattern_vars(c.lhs)])) for c in expr.clauses
    ]
    return Match(expr.data, clauses, expr.complete)


def ManifestLifetimes() -> Pass:
    """Call `relay.op.memory.kill` for each variable behind the place where it is read for the last
    time, and at the beginning of branches that do not read it.

    Programs are in the form of `ToANormalForm`; functions inside of others stay as they are.
    """

    def rewrite(func: Function, mod: IRModule) -> RelayExpr:
        body = _block(func.body, {}, list(func.params))
        return Function(func.params, body, func.ret_type, func.type_params, func.attrs, func.span)

    return expression_pass(rewrite, 0, "ManifestLifetimes")
