"""Leaving the promises of dataflow blocks and pure functions behind."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr

from ..expr import BindingBlock, Call, DataflowBlock, DataflowVar, Function, Var
from ..expr_functor import PyExprMutator
from ..op import invoke_closure
from .graph_pass import graph_pass

__all__ = ["RemovePurityChecking", "ToNonDataflow"]


class _Plain(PyExprMutator):
    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        # Also where all variables are outputs, so that no binding changes.
        return BindingBlock(self.visit_binding_block_(block).bindings)

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Var:
        new = Var(str(var.name_hint), var.struct_info)
        self.set_var_remap(var, new)
        return new


def _of_functions(mod: IRModule, make: type[PyExprMutator]) -> IRModule:
    functions = {
        gvar: make(mod).visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    return mod.with_functions(functions)


@graph_pass("ToNonDataflow")
def ToNonDataflow(mod: IRModule) -> IRModule:
    """The module with plain blocks and variables in place of dataflow blocks and theirs."""
    return _of_functions(mod, _Plain)


class _Unchecked(PyExprMutator):
    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        assert isinstance(call, Call)
        name = str(getattr(call.op, "name", ""))
        if name == "relax.call_pure_packed":
            return Call(call.args[0], list(call.args[1:]), call.attrs, call.sinfo_args)
        if name == "relax.invoke_pure_closure":
            return invoke_closure(call.args[0], call.args[1], call.sinfo_args)
        return call

    def visit_function_(self, op: Function) -> RelayExpr:
        new = super().visit_function_(op)
        if new.is_pure and not new.attrs.get("relax.force_pure", False):
            new = new.with_attr("relax.force_pure", True)
        return new


@graph_pass("RemovePurityChecking")
def RemovePurityChecking(mod: IRModule) -> IRModule:
    """The module with "relax.force_pure" on every pure function, those inside of others too.

    Calls that were only said to have no effects (``call_pure_packed``, ``invoke_pure_closure``)
    become plain ones.

    Lowering puts in calls that have effects, memory for instance, which are no concern of callers.
    """
    return _of_functions(mod, _Unchecked)
