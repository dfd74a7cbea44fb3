"""Allocated tensors as storage and tensors in it."""

from __future__ import annotations

from tvm import tir
from tvm.ir import IRModule, PrimExpr, RelayExpr
from tvm.runtime import DataType

from ..expr import Call, DataTypeImm, Function, ShapeExpr
from ..expr_functor import PyExprMutator, mutator
from ..op import get_op
from ..op.builtin import memory
from .graph_pass import graph_pass

__all__ = ["LowerAllocTensor", "bytes_of"]


def bytes_of(shape: ShapeExpr, dtype: str) -> PrimExpr:
    """How much memory a tensor takes."""
    kind = DataType(dtype)
    size: PrimExpr = tir.const((int(kind.bits) * int(kind.lanes) + 7) // 8, "int64")
    for extent in shape.values:
        size = size * extent
    return size


@mutator
class _Lowering(PyExprMutator):
    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not call.op.same_as(get_op("builtin.alloc_tensor")):
            return call
        shape, dtype, device, scope = call.args
        if not isinstance(shape, ShapeExpr) or not isinstance(dtype, DataTypeImm):
            return call
        size = [bytes_of(shape, str(dtype.value))]
        storage = self.builder_.emit(memory.alloc_storage(size, device, scope, dtype), "storage")
        return memory.alloc_tensor(storage, 0, shape, dtype)


@graph_pass("LowerAllocTensor")
def LowerAllocTensor(mod: IRModule) -> IRModule:
    """The module with storage for each allocated tensor that no plan of memory gave storage.

    ``builtin.alloc_tensor`` becomes ``memory.alloc_storage`` of as many bytes as the tensor has,
    and ``memory.alloc_tensor`` in it.
    """
    functions = {
        gvar: _Lowering(mod).visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    return mod.with_functions(functions)
