"""Loops, which are functions that call themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import error
from tvm.ir import RelayExpr

from .expr import Function, Let, Tuple, Var
from .scope_builder import ScopeBuilder

__all__ = ["while_loop"]


def while_loop(
    cond: Callable[..., RelayExpr],
    loop_vars: Sequence[RelayExpr],
    loop_bodies: Callable[..., Sequence[RelayExpr]],
) -> RelayExpr:
    """A function of first values that gives, as a tuple, the values a loop ends with.

    Parameters
    ----------
    cond : from variables to a bool scalar: whether there is another round.
    loop_vars : variables, or expressions whose types are known, that say how many values there are
        and of which types.
    loop_bodies : from variables to their values in the next round.

    Raises
    ------
    ValueError : there are no variables. TypeError : the body gives another number of values.
    """
    if not loop_vars:
        raise error.ValueError("relay.while_loop: a loop needs variables")
    sb = ScopeBuilder()
    loop = Var("while_loop")
    params = [
        Var(v.name if isinstance(v, Var) else f"arg{k}", sb.type_of(v))
        for k, v in enumerate(loop_vars)
    ]
    with sb.if_scope(cond(*params)):
        following = list(loop_bodies(*params))
        if len(following) != len(params):
            raise error.TypeError(
                f"relay.while_loop: the body gives {len(following)} values for {len(params)} "
                "variables"
            )
        sb.ret(loop(*following))
    with sb.else_scope():
        sb.ret(Tuple(params))
    return Let(loop, Function(params, sb.get()), loop)
