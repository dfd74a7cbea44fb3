"""What programs that make graphs ask for now and then."""

from __future__ import annotations

from typing import Any

from tvm import error, tir
from tvm.ir import RelayExpr

from .analysis import defined_symbolic_vars
from .expr import Function, PrimValue, ShapeExpr, StringImm, Tuple
from .fresh_variables import FreshVariables
from .transform.bind import bind_function

__all__ = ["convert_to_expr", "copy_with_new_vars"]


def copy_with_new_vars(func: Function) -> Function:
    """The function with parameters, variables and symbolic extents of its own.

    Both may then stand in one module, or in each other.
    """
    extents = {var: tir.Var(str(var.name), str(var.dtype)) for var in defined_symbolic_vars(func)}
    return FreshVariables().visit_expr(bind_function(func, {}, extents))


def convert_to_expr(value: Any) -> RelayExpr:
    """A value of Python as a graph expression.

    Integers and scalar expressions become ``PrimValue``, texts ``StringImm``; lists and tuples
    become shapes where all of them are extents, and tuples otherwise. Graph expressions stay.

    Raises
    ------
    TypeError : it is something else.
    """
    if isinstance(value, RelayExpr) and not isinstance(value, tir.PrimExpr):
        return value
    if isinstance(value, (bool, int, float, tir.PrimExpr)):
        return PrimValue(value)
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (list, tuple)):
        is_shape = all(
            isinstance(v, (int, tir.PrimExpr)) and not isinstance(v, bool) for v in value
        )
        if is_shape and len(value):
            return ShapeExpr(list(value))
        return Tuple([convert_to_expr(v) for v in value])
    raise error.TypeError(
        f"convert_to_expr: {type(value).__name__} is no graph value; use relax.const for arrays"
    )
