"""Operators, registered by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm._ffi

from . import _ffi_api
from .expr import RelayExpr

__all__ = ["Op", "register_intrin_lowering", "register_op", "register_op_attr"]


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

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """Set an attribute of the operator, unless it was set at a higher level before."""
        _ffi_api.OpSetAttr(self, attr_name, value, plevel)

    def reset_attr(self, name: str) -> None:
        """Remove an attribute of the operator."""
        _ffi_api.OpResetAttr(self, name)

    def add_type_rel(self, rel_name: str, type_rel_func: Any = None) -> Op:
        """Say the type of calls in relay: a function from the operands' types and the attributes
        to the type of the result. Returns the operator."""
        if type_rel_func is None:
            type_rel_func = tvm._ffi.get_global_func(f"tvm.relay.type_relation.{rel_name}")
        self.set_attr("relay.type_rel", type_rel_func)
        return self

    def add_argument(self, name: str, type: str, description: str) -> Op:
        """Describe the next operand. Returns the operator."""
        known = self.get_attr("arguments") or []
        self.set_attr("arguments", [*known, [name, type, description]], 20)
        return self

    def set_num_inputs(self, n: int) -> Op:
        """Say how many operands there are. Returns the operator."""
        self.set_attr("num_inputs", n)
        return self

    def set_support_level(self, level: int) -> Op:
        """Note how well the operator is supported, from 1 for best. Returns the operator."""
        self.set_attr("support_level", level)
        return self

    @property
    def num_inputs(self) -> int:
        """How many operands there are, -1 where that is not said."""
        noted = self.get_attr("num_inputs")
        return int(RelayExpr.__getattr__(self, "num_inputs") if noted is None else noted)

    @property
    def support_level(self) -> int:
        """What `set_support_level` noted; 10 where nothing did."""
        return int(self.get_attr("support_level") or 10)

    def set_attrs_type_key(self, key: str) -> Op:
        """Note the kind of the attributes. Returns the operator."""
        self.set_attr("attrs_type_key", key)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Op.get, (self.name,)


def register_op(name: str, description: str = "") -> Op:
    """A new operator.

    Raises
    ------
    ValueError : the name is taken.
    """
    return _ffi_api.RegisterOp(name, description)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Set an attribute of an operator; without a value, a decorator for functions.

    An operator there is none of yet is made by its first attribute. A value set at a lower level
    than the present one changes nothing.

    >>> pure = tvm.tir.CallEffectKind.Pure
    >>> _ = tvm.ir.register_op_attr("tir.my_log", "TCallEffectKind", pure)
    """

    def register(value: Any) -> Any:
        op = Op.get(op_name) if Op.exists(op_name) else register_op(op_name)
        op.set_attr(attr_key, value, level)
        return value

    return register if value is None else register(value)


def register_intrin_lowering(
    op_name: str, target: str, *, f: Callable[[Any], Any] | None = None, level: int = 10
) -> Any:
    """Say how calls of an intrinsic are expressed for a kind of target; also a decorator.

    Parameters
    ----------
    op_name : the intrinsic, such as "tir.exp".
    target : kind of target, or "default" for those without a rule of their own.
    f : from a call to the expression that `LowerIntrin` puts in its place; None or the call itself
        keeps the call.
    level : a rule of a lower level than the present one changes nothing.

    Raises
    ------
    ValueError : there is no such intrinsic; the message suggests similar names.

    >>> @tvm.ir.register_intrin_lowering("tir.rsqrt", "my_device")
    ... def lower_rsqrt(call):
    ...     return tvm.tir.call_pure_extern(call.dtype, "fast_rsqrt", call.args[0])
    """
    Op.get(op_name)
    return register_op_attr(op_name, f"{target}.FLowerIntrinsic", f, level)
