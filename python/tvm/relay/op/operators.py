"""Python's operators on expressions."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from ..expr import Call, ExprWithOp
from . import elementwise

__all__: list[str] = []


def _operation(name: str, reverse: bool = False) -> Any:
    compute = getattr(elementwise, name)

    def apply(self: RelayExpr, other: Any) -> Call:
        if isinstance(other, (int, float)):
            raise error.TypeError(
                f'relay: to convert {other} to an expression, write relay.const({other}, "dtype")'
            )
        if not isinstance(other, RelayExpr):
            return NotImplemented
        return compute(other, self) if reverse else compute(self, other)

    return apply


def _install() -> None:
    members = {
        "__neg__": lambda self: elementwise.negative(self),
        "astype": lambda self, dtype: elementwise.cast(self, dtype),
        "__lt__": _operation("less"),
        "__le__": _operation("less_equal"),
        "__gt__": _operation("greater"),
        "__ge__": _operation("greater_equal"),
    }
    for name, compute in (
        ("add", "add"),
        ("sub", "subtract"),
        ("mul", "multiply"),
        ("truediv", "divide"),
        ("div", "divide"),
    ):
        members[f"__{name}__"] = _operation(compute)
        members[f"__r{name}__"] = _operation(compute, reverse=True)
    for name, member in members.items():
        setattr(ExprWithOp, name, member)


_install()
