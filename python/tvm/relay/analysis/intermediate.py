"""Single values of programs, and the types of all."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import IRModule, RelayExpr, TensorType, TupleType

from ..expr import Call, Function, Tuple, TupleGetItem
from ..expr_functor import post_order_visit
from .infer import infer_module
from .variables import free_vars

__all__ = ["all_dtypes", "extract_intermdeiate_expr"]


def all_dtypes(expr: RelayExpr) -> set[str]:
    """Element types of all tensors in a program whose types are known (``InferType``)."""
    found: set[str] = set()

    def add(type_: Any) -> None:
        if isinstance(type_, TensorType):
            found.add(str(type_.dtype))
        elif isinstance(type_, TupleType):
            for field in type_.fields:
                add(field)

    def look(node: RelayExpr) -> None:
        add(node.checked_type_)
        if isinstance(node, Function):
            for param in node.params:
                add(param.checked_type_)

    post_order_visit(expr, look)
    return found


def extract_intermdeiate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """A module whose ``main`` gives one value of the module's ``main``.

    Parameters
    ----------
    expr_id : which of the calls, tuples and fields, counted from zero as they are computed; that is
        the number that the printed text has for them (``%0``).

    Raises
    ------
    IndexError : there are not that many.
    """
    values: list[RelayExpr] = []

    def look(node: RelayExpr) -> None:
        if isinstance(node, (Call, Tuple, TupleGetItem)):
            values.append(node)

    post_order_visit(mod["main"].body, look)
    if not 0 <= expr_id < len(values):
        raise error.IndexError(
            f"extract_intermdeiate_expr: there are {len(values)} values, from 0 on; got {expr_id}"
        )
    value = values[expr_id]
    used = free_vars(value)
    params = [p for p in mod["main"].params if any(p.same_as(v) for v in used)]
    result = mod.clone()
    result["main"] = Function(params, value)
    return infer_module(result)
