"""Attributes of operators for the length of a scope."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tvm.ir import Op, register_op_attr

__all__ = ["TempOpAttr"]


class TempOpAttr:
    """Inside ``with TempOpAttr(name, key, value)`` an operator has an attribute; after it, what it
    had before."""

    def __init__(self, op_name: str, attr_key: str, attr_value: Any) -> None:
        self.op = Op.get(op_name)
        self.attr_key = attr_key
        self.attr_value = attr_value

    def __enter__(self) -> TempOpAttr:
        self.older = self.op.get_attr(self.attr_key)
        self.op.reset_attr(self.attr_key)
        register_op_attr(str(self.op.name), self.attr_key, self.attr_value)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.op.reset_attr(self.attr_key)
        if self.older is not None:
            register_op_attr(str(self.op.name), self.attr_key, self.older)
