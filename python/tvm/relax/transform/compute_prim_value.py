"""Scalars that have to be computed when a function runs, as calls of functions that do it."""

from __future__ import annotations

from tvm import tir
from tvm.ir import GlobalVar, IRModule, PrimExpr, PrimType, RelayExpr

from ..expr import Call, Function, PrimValue
from ..expr_functor import PyExprMutator, mutator
from .graph_pass import graph_pass

__all__ = ["ComputePrimValue"]


@mutator
class _Computer(PyExprMutator):
    def visit_prim_value_(self, op: PrimValue) -> RelayExpr:
        if isinstance(op.value, (tir.Var, tir.IntImm, tir.FloatImm)):
            return op
        inputs = list(tir.analysis.undefined_vars(op.value))
        call = Call(self._function(inputs, op.value), [PrimValue(var) for var in inputs])
        return self.builder_.normalize_argument(self.builder_.normalize(call))

    def _function(self, inputs: list[tir.Var], value: PrimExpr) -> GlobalVar:
        body = tir.Evaluate(tir.ret(value))
        func = tir.PrimFunc(inputs, body, PrimType(str(value.dtype)))
        # It is called where the program runs, whatever device its kernels are for.
        func = func.with_attr("tir.is_host_func", True)
        # Variables belong to one function each.
        func = tir.stmt_functor.renew_defs(func)
        return self.builder_.add_func(func, "compute_symbolic_expr")


@graph_pass("ComputePrimValue")
def ComputePrimValue(mod: IRModule) -> IRModule:
    """The module with expressions of symbolic extents, as values, computed by functions.

    Numbers and single extents stay. A function ``compute_symbolic_expr`` takes the extents that the
    expression has, and gives its value.
    """
    computer = _Computer(mod)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            computer.builder_.update_func(gvar, computer.visit_expr(func))
    return computer.builder_.get()
