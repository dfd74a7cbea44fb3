"""Values in place of parameters and symbolic extents of a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm import arith, error, tir
from tvm.ir import IRModule, PrimExpr, RelayExpr

from ..analysis.variables import defined_symbolic_vars, free_symbolic_vars
from ..expr import Call, Function, Var, dict_attrs
from ..expr_functor import PyExprMutator
from ..struct_info import StructInfo, TensorStructInfo
from ..struct_info_relations import unify_struct_info

__all__ = ["bind_function", "bind_values", "bind_symbolic_vars", "extents_of"]


def extents_of(name: str, info: StructInfo | None, shape: Sequence[int]) -> dict[tir.Var, int]:
    """Values of the symbolic extents of a parameter that is given a tensor of a shape.

    Raises
    ------
    ValueError : one extent would have two values.
    """
    found: dict[tir.Var, int] = {}
    if not isinstance(info, TensorStructInfo) or info.shape is None:
        return found
    for extent, value in zip(info.shape.values, shape):
        if isinstance(extent, tir.Var) and found.setdefault(extent, int(value)) != int(value):
            raise error.ValueError(
                f"BindParams: '{name}' has shape {tuple(shape)}, which makes its extent {extent} "
                f"both {found[extent]} and {value}"
            )
    return found


class _Binder(PyExprMutator):
    def __init__(
        self,
        values: Mapping[Var, RelayExpr],
        extents: Mapping[tir.Var, PrimExpr],
        mod: IRModule | None,
    ) -> None:
        super().__init__(mod)
        self._given = dict(values)
        self._extents = dict(extents)
        self._analyzer = arith.Analyzer()

    def visit_var_(self, op: Var) -> RelayExpr:
        return self._given[op] if op in self._given else super().visit_var_(op)

    def visit_function_(self, op: Function) -> RelayExpr:
        params = [self.visit_var_def(param) for param in op.params if param not in self._given]
        body = self.visit_with_new_scope(op.body, params)
        info = op.ret_struct_info
        info = None if info is None else self.visit_struct_info(info)
        return Function(params, body, info, op.is_pure, op.attrs)

    def visit_call_(self, op: Call) -> RelayExpr:
        call = super().visit_call_(op)
        if not self._extents or not isinstance(call, Call) or call.attrs is None:
            return call
        # Limits of slices, for instance, are settings.
        settings = dict(call.attrs.items())
        changed = {name: self._setting(value) for name, value in settings.items()}
        if all(changed[name] is value for name, value in settings.items()):
            return call
        return Call(call.op, call.args, dict_attrs(changed), call.sinfo_args)

    def _setting(self, value: Any) -> Any:
        if isinstance(value, PrimExpr):
            new = self.visit_prim_expr(value)
            return value if new.same_as(value) else new
        if isinstance(value, Sequence) and not isinstance(value, str):
            items = [self._setting(item) for item in value]
            return value if all(a is b for a, b in zip(items, value)) else items
        return value

    def visit_prim_expr(self, expr: PrimExpr) -> PrimExpr:
        new = tir.stmt_functor.substitute(expr, self._extents)
        return expr if new.same_as(expr) else self._analyzer.simplify(new)


def bind_function(
    func: Function,
    values: Mapping[Var, RelayExpr],
    extents: Mapping[tir.Var, PrimExpr | int],
    mod: IRModule | None = None,
) -> Function:
    """The function without the parameters that get a value, extents replaced in all of it.

    Parameters
    ----------
    mod : has the functions that it calls by name.
    """
    return bind_values(func, values, extents, mod)


def bind_values(
    expr: RelayExpr,
    values: Mapping[Var, RelayExpr],
    extents: Mapping[tir.Var, PrimExpr | int],
    mod: IRModule | None = None,
) -> RelayExpr:
    """An expression with values in the place of variables and extents."""
    known = {
        var: tir.const(int(value), str(var.dtype)) if not isinstance(value, PrimExpr) else value
        for var, value in extents.items()
    }
    if not values and not known:
        return expr
    return _Binder(values, known, mod).visit_expr(expr)


@tvm._ffi.register_func("relax.FunctionBindParams")
def _bind_params(func: Function, values: Mapping[Var, RelayExpr]) -> Function:
    extents: dict[tir.Var, PrimExpr] = {}
    for param, value in values.items():
        if param.struct_info is not None and value.struct_info is not None:
            unify_struct_info(param.struct_info, value.struct_info, extents)
    return bind_function(func, values, extents)


@tvm._ffi.register_func("relax.FunctionBindSymbolicVars")
def bind_symbolic_vars(func: Function, binding_map: Mapping[str | tir.Var, Any]) -> Function:
    """The function with expressions in place of symbolic extents; see
    ``relax.Function.bind_symbolic_vars``.
    """
    known = list(dict.fromkeys([*defined_symbolic_vars(func), *free_symbolic_vars(func)]))
    extents: dict[tir.Var, Any] = {}
    for key, value in binding_map.items():
        if isinstance(key, tir.Var):
            found = [var for var in known if var.same_as(key)]
        else:
            found = [var for var in known if str(var.name) == key]
        if len(found) != 1:
            what = "no" if not found else "more than one"
            raise error.ValueError(
                f"relax: the function has {what} symbolic extent '{key}'; there are "
                f"{[str(var.name) for var in known]}"
            )
        if found[0] in extents:
            raise error.ValueError(f"relax: the extent '{found[0].name}' is given twice")
        extents[found[0]] = value
    return bind_function(func, {}, extents)
