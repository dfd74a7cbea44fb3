"""The pass that replaces operators by kernels."""

from __future__ import annotations

from collections.abc import Mapping

from tvm.ir import IRModule, Op, RelayExpr

from ...expr import Call, Function
from ...expr_functor import PyExprMutator
from ..graph_pass import graph_pass
from .common import Legalization, default_legalization, registered

__all__ = ["LegalizeOps"]


class _Legalizer(PyExprMutator):
    def __init__(self, mod: IRModule, own: Mapping[str, Legalization]) -> None:
        super().__init__(mod)
        self._own = own

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            return call
        if call.struct_info is None:
            call = self.builder_.normalize(call)
        name = str(call.op.name)
        legal = self._own.get(name) or registered(name) or default_legalization(call)
        return call if legal is None else self.builder_.normalize(legal(self.builder_, call))


@graph_pass("relax.LegalizeOps")
def LegalizeOps(mod: IRModule, customize_legalize_map: Mapping | None = None) -> IRModule:
    """The module with operators as calls of kernels that it has then.

    Operators without a computation, and those of operands whose shape is unknown, stay. Constants
    of no dimension become part of the kernel.

    Parameters
    ----------
    customize_legalize_map : operator's name ("relax.add") to a function of the BlockBuilder and the
        call that gives what stands in its place; these go before those that `register_legalize` was
        told of, and these before the operator's own computation.
    """
    mutator = _Legalizer(mod, dict(customize_legalize_map or {}))
    for var, function in mod.functions.items():
        if isinstance(function, Function):
            mutator.builder_.update_func(var, mutator.visit_expr(function))
    return mutator.builder_.finalize()
