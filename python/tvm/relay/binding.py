"""Putting expressions in the place of variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from .analysis.variables import free_vars
from .expr import Function, Var, exact_const
from .expr_functor import PostOrderMutator

__all__ = ["bind", "bind_params_by_name", "substituted"]


class _Bind(PostOrderMutator):
    def __init__(self, values: Mapping[Var, RelayExpr]) -> None:
        super().__init__()
        self.memo_map.update(values)

    def visit_function(self, func: Function) -> RelayExpr:
        params = [p for p in func.params if p not in self.memo_map]
        for param in params:
            self.memo_map[param] = param
        body = self.visit(func.body)
        if len(params) == len(func.params) and body.same_as(func.body):
            return func
        return Function(params, body, func.ret_type, func.type_params, func.attrs)


def substituted(expr: RelayExpr, values: Mapping[Var, RelayExpr]) -> RelayExpr:
    """The expression with others in the place of variables, which may leave more of them free."""
    return _Bind(values).visit(expr)


def bind(expr: RelayExpr, binds: Mapping[Var, RelayExpr]) -> RelayExpr:
    """The expression with others in the place of variables.

    A function keeps the parameters that are not bound, and gets those that the new expressions
    have free.
    """
    new = substituted(expr, binds)
    if isinstance(expr, Function) and isinstance(new, Function):
        more = [v for v in free_vars(new) if v not in free_vars(expr)]
        if more:
            attrs = new.attrs
            return Function([*new.params, *more], new.body, new.ret_type, new.type_params, attrs)
    return new


def bind_params_by_name(func: Function, params: Mapping[str, Any]) -> Function:
    """The function with values in the place of parameters; names that it has not are left out.

    Raises
    ------
    ValueError : two parameters have a name that is given.
    """
    values: dict[Var, RelayExpr] = {}
    for param in func.params:
        name = str(param.name_hint)
        if name in params:
            if any(str(known.name_hint) == name for known in values):
                raise error.ValueError(f"relay: there are two parameters '{name}'")
            value = params[name]
            values[param] = value if isinstance(value, RelayExpr) else exact_const(value)
    return bind(func, values)
