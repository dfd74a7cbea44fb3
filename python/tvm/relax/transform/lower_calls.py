"""Calls of kernels as allocations and plain calls."""

from __future__ import annotations

from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..expr import Call, ExternFunc, Function, Tuple, VarBinding
from ..expr_functor import PyExprMutator
from ..op.builtin import builtin, vm
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .graph_pass import graph_pass

__all__ = ["CallTIRRewrite"]

_REWRITTEN = ("relax.call_tir", "relax.call_tir_inplace", "relax.call_dps_packed")


class _Rewriter(PyExprMutator):
    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        name = str(getattr(value.op, "name", "")) if isinstance(value, Call) else ""
        if name not in _REWRITTEN:
            super().visit_var_binding_(binding)
            return
        call = self.visit_expr_post_order(value)
        self.reemit_binding(binding, self._results_of(call, name))

    def _results_of(self, call: Call, name: str) -> RelayExpr:
        """What a call gives, after what computes it has been emitted."""
        callee, args = call.args[0], call.args[1]
        info = call.sinfo_args[0]
        fields = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
        given = list(args.fields) if isinstance(args, Tuple) else [args]
        inplace = [-1] * len(fields)
        if name == "relax.call_tir_inplace":
            inplace = [int(index) for index in call.attrs["inplace_indices"]]
        results: list[RelayExpr] = []
        outputs: list[RelayExpr] = []
        for field, index in zip(fields, inplace):
            if index >= 0:
                results.append(given[index])
                continue
            results.append(self.builder_.emit(self._allocated(field), "alloc"))
            outputs.append(results[-1])
        operands = [*given, *outputs]
        if len(call.args) > 2 and isinstance(callee, GlobalVar):
            lowered = vm.call_tir_dyn(callee, [*operands, call.args[2]])
        else:
            nothing = TupleStructInfo([])
            infos = [nothing] if isinstance(callee, ExternFunc) else []
            lowered = Call(callee, operands, None, infos, nothing)
        self.builder_.emit(lowered, "_")
        return results[0] if not isinstance(info, TupleStructInfo) else Tuple(results)

    @staticmethod
    def _allocated(info: StructInfo) -> Call:
        assert isinstance(info, TensorStructInfo)
        device = 0 if info.vdevice is None else int(info.vdevice.vdevice_id)
        scope = "global" if info.vdevice is None else str(info.vdevice.memory_scope)
        return builtin.alloc_tensor(info.shape, str(info.dtype), device, scope)


@graph_pass("CallTIRRewrite")
def CallTIRRewrite(mod: IRModule) -> IRModule:
    """The module with tensors allocated for what ``call_tir`` and its like give, and plain calls.

    Expects plain blocks, as `ToNonDataflow` leaves them, and functions that may have effects, as
    `RemovePurityChecking` leaves them. Kernels that take symbolic extents behind their tensors are
    called by ``vm.call_tir_dyn``; a tensor that is written in place is its own result.
    """
    functions = {
        gvar: _Rewriter(mod).visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    return mod.with_functions(functions)
