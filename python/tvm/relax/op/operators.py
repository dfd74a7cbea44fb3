"""Python's operators on graph values."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from ..expr import Call, ExprWithOp, TupleGetItem
from ..struct_info import TupleStructInfo
from . import binary, create, unary

__all__: list[str] = []


def _operation(compute: Any, reverse: bool = False) -> Any:
    def apply(self: RelayExpr, other: Any) -> Call:
        if not isinstance(other, (RelayExpr, int, float)):
            return NotImplemented
        return compute(other, self) if reverse else compute(self, other)

    return apply


def _field(self: RelayExpr, index: int) -> RelayExpr:
    """A field of a tuple.

    Raises
    ------
    TypeError : the value is known to be no tuple.
    IndexError : there is no such field.
    """
    info = self.struct_info
    if info is not None and not isinstance(info, TupleStructInfo):
        raise error.TypeError(f"relax: only tuples have fields, got {info}")
    if info is not None and not 0 <= index < len(info.fields):
        raise error.IndexError(f"relax: field {index} of a tuple of {len(info.fields)}")
    return TupleGetItem(self, index)


def _install() -> None:
    members = {
        "__neg__": lambda self: unary.negative(self),
        "__getitem__": _field,
        "astype": lambda self, dtype: create.astype(self, dtype),
        "__lt__": _operation(binary.less),
        "__le__": _operation(binary.less_equal),
        "__gt__": _operation(binary.greater),
        "__ge__": _operation(binary.greater_equal),
    }
    for name, compute in (
        ("add", binary.add), ("sub", binary.subtract), ("mul", binary.multiply),
        ("truediv", binary.divide), ("floordiv", binary.floor_divide), ("mod", binary.mod),
        ("pow", binary.power),
    ):  # fmt: skip
        members[f"__{name}__"] = _operation(compute)
        members[f"__r{name}__"] = _operation(compute, reverse=True)
    for name, member in members.items():
        setattr(ExprWithOp, name, member)


_install()
