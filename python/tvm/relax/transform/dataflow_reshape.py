"""Kernels that only reshape, as reshapes."""

from __future__ import annotations

from tvm import tir
from tvm.ir import IRModule, RelayExpr

from ..analysis.reshape_pattern import has_reshape_pattern
from ..expr import BindingBlock, Call, DataflowBlock, Function, Tuple
from ..expr_functor import PyExprMutator, mutator
from ..op import get_op, reshape
from ..struct_info import TensorStructInfo
from .graph_pass import graph_pass

__all__ = ["RewriteDataflowReshape"]


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self._mod = mod
        self._in_dataflow = False

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self._in_dataflow = True
        new = super().visit_dataflow_block_(block)
        self._in_dataflow = False
        return new

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not self._in_dataflow or not call.op.same_as(get_op("call_tir")):
            return call
        kernel = self._mod.functions[call.args[0]]
        info = call.struct_info
        operands = list(call.args[1].fields) if isinstance(call.args[1], Tuple) else []
        if not operands or not isinstance(kernel, tir.PrimFunc):
            return call
        given = operands[0].struct_info
        if not isinstance(info, TensorStructInfo) or not isinstance(given, TensorStructInfo):
            return call
        if str(info.dtype) != str(given.dtype) or not has_reshape_pattern(kernel):
            return call
        return reshape(operands[0], info.shape)


@graph_pass("RewriteDataflowReshape")
def RewriteDataflowReshape(mod: IRModule) -> IRModule:
    """The module with ``reshape`` for kernels in dataflow blocks that only copy in order.

    The virtual machine reshapes without copying: the result shares the operand's memory. Outside of
    dataflow blocks somebody might write into it, so kernels stay there.
    """
    functions = {
        gvar: _Rewriter(mod).visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    return mod.with_functions(functions)
