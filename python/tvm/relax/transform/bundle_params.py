"""Weights of a function as one tuple."""

from __future__ import annotations

from tvm import error
from tvm.ir import IRModule, RelayExpr

from ..expr import DataflowVar, Function, TupleGetItem, Var
from ..expr_functor import PyExprMutator, mutator
from ..struct_info import TupleStructInfo
from .graph_pass import graph_pass

__all__ = ["BundleModelParams", "inputs_of"]


def inputs_of(func: Function) -> int | None:
    """How many parameters are given at each run; None if the function does not say so.

    Raises
    ------
    ValueError : the function has fewer parameters.
    """
    count = func.attrs.get("num_input", None) if func.attrs is not None else None
    if count is None:
        return None
    if not 0 <= int(count) <= len(func.params):
        raise error.ValueError(
            f'relax: the attribute "num_input" is {int(count)}, but the function has '
            f"{len(func.params)} parameters"
        )
    return int(count)


@mutator
class _Bundler(PyExprMutator):
    def __init__(self, mod: IRModule, name: str) -> None:
        super().__init__(mod)
        self._name = name
        self._fields: dict[Var, TupleGetItem] = {}

    def visit_function_(self, op: Function) -> RelayExpr:
        count = inputs_of(op)
        if count is None:
            return op
        weights = list(op.params)[count:]
        bundle = Var(self._name, TupleStructInfo([p.struct_info for p in weights]))
        self._fields = {p: TupleGetItem(bundle, i) for i, p in enumerate(weights)}
        params = [*list(op.params)[:count], bundle]
        body = self.visit_with_new_scope(op.body, params)
        return Function(params, body, op.ret_struct_info, op.is_pure, op.attrs)

    def visit_var_(self, op: Var) -> RelayExpr:
        field = self._fields.get(op)
        if field is None:
            return super().visit_var_(op)
        return self.builder_.emit(field, str(op.name_hint))

    def visit_dataflow_var_(self, op: DataflowVar) -> RelayExpr:
        return super().visit_var_(op)


@graph_pass("BundleModelParams")
def BundleModelParams(mod: IRModule, param_tuple_name: str = "model_params") -> IRModule:
    """The module with the parameters behind the inputs of each function as one, which is a tuple.

    Inputs are the parameters that the attribute "num_input" counts; functions without it stay as
    they are. A field is taken out of the tuple where it is read.

    Parameters
    ----------
    param_tuple_name : name of the new parameter.

    Raises
    ------
    ValueError : a function has fewer parameters than "num_input" says.
    """
    functions = {
        gvar: _Bundler(mod, param_tuple_name).visit_expr(func)
        if isinstance(func, Function)
        else func
        for gvar, func in mod.functions.items()
    }
    return mod.with_functions(functions)
