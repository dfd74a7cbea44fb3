"""Approximations in the place of functions that take long."""

from __future__ import annotations

from tvm import topi
from tvm.ir import IRModule, RelayExpr

from ..expr import Call, Function
from ..expr_functor import PyExprMutator, mutator
from ..op import get_op
from .graph_pass import graph_pass

__all__ = ["FastMathTransform"]


@mutator
class _Approximate(PyExprMutator):
    _REPLACED = {
        "exp": topi.fast_exp, "tanh": topi.fast_tanh, "erf": topi.fast_erf,
        "nn.softmax": topi.nn.fast_softmax,
    }  # fmt: skip

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        for name, function in self._REPLACED.items():
            if call.op.same_as(get_op(name)):
                settings = {"axis": int(call.attrs["axis"])} if name == "nn.softmax" else {}
                return self.builder_.call_te(function, call.args[0], **settings)
        return call


@graph_pass("FastMathTransform")
def FastMathTransform(mod: IRModule) -> IRModule:
    """The module with kernels that approximate exp, tanh, erf and softmax.

    `topi.fast_exp`, `fast_tanh`, `fast_erf` and `nn.fast_softmax` say how exact they are.
    """
    approximate = _Approximate(mod)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            approximate.builder_.update_func(gvar, approximate.visit_expr(func))
    return approximate.builder_.get()
