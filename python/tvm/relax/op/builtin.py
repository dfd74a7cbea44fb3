"""Operators that lowering puts in for memory, and those of the virtual machine."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tvm import error
from tvm.ir import GlobalVar, RelayExpr

from ..expr import Call, DataTypeImm, PrimValue, ShapeExpr, StringImm, Tuple
from ..struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from .base import make_call
from .registry import get_op, register_rule
from .view import ensure_zero_offset, view

__all__ = ["builtin", "memory", "vm"]


def _prim(value: int | RelayExpr) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else PrimValue(value)


def _text(value: str | RelayExpr) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else StringImm(value)


def _dtype(value: str | RelayExpr) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else DataTypeImm(value)


def _shape(value: Sequence[Any] | RelayExpr) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else ShapeExpr(list(value))


def _alloc_tensor(
    shape: Sequence[Any] | RelayExpr,
    dtype: str | RelayExpr,
    runtime_device_index: int | RelayExpr,
    storage_scope: str | RelayExpr = "global",
) -> Call:
    """A tensor in memory of its own.

    Parameters
    ----------
    runtime_device_index : number of the device among those of the virtual machine.
    """
    return make_call(
        "builtin.alloc_tensor", _shape(shape), _dtype(dtype), _prim(runtime_device_index),
        _text(storage_scope),
    )  # fmt: skip


def _stop_lift_params(x: RelayExpr) -> Call:
    """The value, which lifting of parameters leaves in the function that uses it."""
    return make_call("builtin.stop_lift_params", x)


def _memory_alloc_storage(
    size: Sequence[Any] | RelayExpr,
    virtual_device_index: int | RelayExpr,
    storage_scope: str | RelayExpr,
    dtype: str | RelayExpr,
) -> Call:
    """Memory of a number of bytes, which tensors are put into."""
    return make_call(
        "memory.alloc_storage", _shape(size), _prim(virtual_device_index), _text(storage_scope),
        _dtype(dtype),
    )  # fmt: skip


def _memory_alloc_tensor(
    storage: RelayExpr,
    offset: int | RelayExpr,
    shape: Sequence[Any] | RelayExpr,
    dtype: str | RelayExpr,
) -> Call:
    """A tensor in memory that is there already, from a byte on."""
    return make_call("memory.alloc_tensor", storage, _prim(offset), _shape(shape), _dtype(dtype))


def _kill_storage(storage: RelayExpr) -> Call:
    """Say that memory is used no more."""
    return make_call("memory.kill_storage", storage)


def _kill_tensor(tensor: RelayExpr) -> Call:
    """Say that a tensor is used no more."""
    return make_call("memory.kill_tensor", tensor)


def _vm_alloc_storage(
    shape: Sequence[Any] | RelayExpr,
    runtime_device_index: int | RelayExpr,
    dtype: str | RelayExpr = "uint8",
    storage_scope: str | RelayExpr = "global",
) -> Call:
    """Memory of a number of bytes, as the virtual machine allocates it."""
    return make_call(
        "vm.alloc_storage", _shape(shape), _prim(runtime_device_index), _dtype(dtype),
        _text(storage_scope),
    )  # fmt: skip


def _vm_alloc_tensor(
    storage: RelayExpr,
    offset: int | RelayExpr,
    shape: Sequence[Any] | RelayExpr,
    dtype: str | RelayExpr,
) -> Call:
    """A tensor in such memory, from a byte on."""
    return make_call("vm.alloc_tensor", storage, _prim(offset), _shape(shape), _dtype(dtype))


def _kill_object(obj: RelayExpr) -> Call:
    """Let go of an object."""
    return make_call("vm.kill_object", obj)


def _call_tir_dyn(func: GlobalVar, args: RelayExpr | Sequence[RelayExpr]) -> Call:
    """Call of a tensor function that takes symbolic extents behind its tensors."""
    operands = args if isinstance(args, RelayExpr) else Tuple(list(args))
    return Call(get_op("vm.call_tir_dyn"), [func, operands], None, (), TupleStructInfo([]))


def _tensor_of(shape_at: int, dtype_at: int) -> Any:
    def infer(call: Call) -> StructInfo:
        dtype = call.args[dtype_at]
        kind = str(dtype.value) if isinstance(dtype, DataTypeImm) else "void"
        shape = call.args[shape_at]
        info = shape.struct_info
        if not isinstance(info, ShapeStructInfo):
            raise error.TypeError(f"{call.op.name}: operand {shape_at} must be a shape, got {info}")
        if isinstance(shape, ShapeExpr):
            return TensorStructInfo(shape, kind)
        return TensorStructInfo(None, kind, ndim=info.ndim)

    return infer


def _object(call: Call) -> StructInfo:
    return ObjectStructInfo()


def _nothing(call: Call) -> StructInfo:
    return TupleStructInfo([])


def _same(call: Call) -> StructInfo:
    return call.args[0].struct_info


register_rule("builtin.alloc_tensor", _tensor_of(0, 1))
register_rule("builtin.stop_lift_params", _same)
register_rule("memory.alloc_storage", _object)
register_rule("memory.alloc_tensor", _tensor_of(2, 3))
register_rule("memory.kill_storage", _nothing, pure=False)
register_rule("memory.kill_tensor", _nothing, pure=False)
register_rule("vm.alloc_storage", _object)
register_rule("vm.alloc_tensor", _tensor_of(2, 3))
register_rule("vm.kill_object", _nothing, pure=False)
register_rule("vm.call_tir_dyn", _nothing, pure=False)

builtin = SimpleNamespace(alloc_tensor=_alloc_tensor, stop_lift_params=_stop_lift_params)
memory = SimpleNamespace(
    alloc_storage=_memory_alloc_storage,
    alloc_tensor=_memory_alloc_tensor,
    ensure_zero_offset=ensure_zero_offset,
    kill_storage=_kill_storage,
    kill_tensor=_kill_tensor,
    view=view,
)
vm = SimpleNamespace(
    alloc_storage=_vm_alloc_storage,
    alloc_tensor=_vm_alloc_tensor,
    kill_object=_kill_object,
    call_tir_dyn=_call_tir_dyn,
)
