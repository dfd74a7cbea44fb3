"""Types of results as rules that operators of users may name: `Op.add_type_rel("Identity")`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error
from tvm._ffi import register_func
from tvm.ir import TensorType, Type

from .shapes import broadcast, tensor

__all__: list[str] = []


@register_func("tvm.relay.type_relation.Identity")
def _identity(types: Sequence[Type], attrs: Any) -> Type:
    """The type of the first operand."""
    return types[0]


@register_func("tvm.relay.type_relation.Broadcast")
def _broadcast(types: Sequence[Type], attrs: Any) -> Type:
    """Two tensors of one element type, whose shapes broadcast."""
    a, b = (tensor("relay: Broadcast", t) for t in types)
    if str(a.dtype) != str(b.dtype):
        raise error.TypeError(f"relay: Broadcast: operands are {a.dtype} and {b.dtype}; cast one")
    return TensorType(broadcast("relay: Broadcast", a.shape, b.shape), str(a.dtype))


@register_func("tvm.relay.type_relation.BroadcastComp")
def _broadcast_comparison(types: Sequence[Type], attrs: Any) -> Type:
    """As Broadcast, of truth values."""
    return TensorType(_broadcast(types, attrs).shape, "bool")
