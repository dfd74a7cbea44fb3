"""Gradients without the zeros and ones that they begin with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tvm.ir import RelayExpr
from tvm.ir.transform import Pass

from ..expr import Call, const
from ..op import full
from .base import expression_pass
from .simplify_expr import Rule, Simplifier, filling, identity

__all__ = ["LazyGradientInit"]


def _zeros(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """x * 0 and 0 / x."""
    is_product = s.name_of(call) == "multiply"
    factors = call.args if is_product else list(call.args)[:1]
    return _filled(s, call, 0.0) if 0.0 in [filling(s, factor) for factor in factors] else None


def _moved(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """Elements that are all one number, in another order or repeated."""
    return _filled(s, call, filling(s, call.args[0]))


def _filled(s: Simplifier, call: Call, number: float | None) -> RelayExpr | None:
    if number is None or not s.is_known(call):
        return None
    type_ = s.type_of(call)
    dtype = str(type_.dtype)
    return full(const(number, dtype), [int(extent) for extent in type_.shape], dtype)


_RULES: dict[str, tuple[Rule, ...]] = {
    "add": (identity,),
    "subtract": (identity,),
    "multiply": (identity, _zeros),
    "divide": (identity, _zeros),
    **dict.fromkeys(("broadcast_to", "expand_dims", "reshape", "squeeze", "transpose"), (_moved,)),
}


def _rules(name: str) -> Iterable[Rule]:
    return _RULES.get(name, ())


def LazyGradientInit() -> Pass:
    """Make zeros and ones, with which gradients begin, only where something depends on them.

    Sums with zeros and products with ones are the other operand, and products with zeros are zeros,
    also where the other factor is infinite. The others of `SimplifyExpr`'s rules are left to it.
    """
    return expression_pass(lambda func, mod: Simplifier(_rules).visit(func), 0, "LazyGradientInit")
