"""Other struct info for parameters."""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir import IRModule, RelayExpr

from ..expr import Function, Var
from ..expr_functor import PyExprMutator, mutator
from ..struct_info import StructInfo
from .graph_pass import graph_pass

__all__ = ["UpdateParamStructInfo"]


@mutator
class _Updater(PyExprMutator):
    def __init__(self, mod: IRModule, info_of: Callable[[Var], StructInfo | None]) -> None:
        super().__init__(mod)
        self._info_of = info_of

    def visit_function_(self, op: Function) -> RelayExpr:
        params = []
        for param in op.params:
            info = self._info_of(param)
            new = param if info is None else self.with_struct_info(param, info)
            if not new.same_as(param):
                self.set_var_remap(param, new)
            params.append(new)
        if all(a.same_as(b) for a, b in zip(params, op.params)):
            return super().visit_function_(op)
        body = self.visit_with_new_scope(op.body, params)
        # What the function gives follows from its parameters, so it is found out again.
        return Function(params, body, None, op.is_pure, op.attrs)


@graph_pass("UpdateParamStructInfo")
def UpdateParamStructInfo(
    mod: IRModule, sinfo_func: Callable[[Var], StructInfo | None]
) -> IRModule:
    """The module with other struct info for parameters, and what follows from it.

    Parameters
    ----------
    sinfo_func : from a parameter of a graph function to its new struct info, None to keep it.
    """
    updater = _Updater(mod, sinfo_func)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            updater.builder_.update_func(gvar, updater.visit_expr(func))
    return updater.builder_.get()
