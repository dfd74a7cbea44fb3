"""Operators, registered by name."""

from __future__ import annotations

from typing import Any

import tvm._ffi

from . import _ffi_api
from .expr import RelayExpr

__all__ = ["Op", "register_op", "register_op_attr"]


@tvm._ffi.register_object("Op")
class Op(RelayExpr):
    """An operator. There is one object for each name."""

    @staticmethod
    def get(name: str) -> Op:
        """The operator of that name.

        Raises
        ------
        ValueError : there is none; the message suggests similar names.
        """
        return _ffi_api.GetOp(name)

    @staticmethod
    def exists(name: str) -> bool:
        """Whether an operator of that name is registered."""
        return _ffi_api.OpExists(name)

    @staticmethod
    def list_op_names() -> list[str]:
        """Names of all operators, sorted."""
        return list(_ffi_api.ListOpNames())

    def get_attr(self, name: str) -> Any:
        """An attribute of the operator, or None."""
        return _ffi_api.OpGetAttr(self, name)

    def has_attr(self, name: str) -> bool:
        """Whether the operator has the attribute."""
        return self.get_attr(name) is not None

    def set_attr(self, name: str, value: Any) -> None:
        """Set an attribute of the operator."""
        _ffi_api.OpSetAttr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Op.get, (self.name,)


def register_op(name: str, description: str = "") -> Op:
    """A new operator.

    Raises
    ------
    ValueError : the name is taken.
    """
    return _ffi_api.RegisterOp(name, description)


def register_op_attr(name: str, attr: str, value: Any = None) -> Any:
    """Set an attribute of an operator; without a value, a decorator for functions."""

    def register(value: Any) -> Any:
        Op.get(name).set_attr(attr, value)
        return value

    return register if value is None else register(value)
