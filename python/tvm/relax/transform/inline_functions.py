"""Bodies of private functions in the place of their calls."""

from __future__ import annotations

from collections.abc import Mapping

import tvm._ffi
from tvm import error, tir
from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..analysis import defined_symbolic_vars, detect_recursion
from ..expr import Call, Function
from ..expr_functor import PyExprMutator
from ..fresh_variables import FreshVariables
from ..struct_info_relations import unify_struct_info
from .bind import bind_function
from .dead_code import DeadCodeElimination
from .graph_pass import graph_pass

__all__ = ["InlinePrivateFunctions"]


class _Inliner(PyExprMutator):
    def __init__(self, mod: IRModule, inlined: dict[str, Function]) -> None:
        super().__init__(mod)
        self._mod = mod
        self._inlined = inlined

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or not isinstance(call.op, GlobalVar):
            return call
        func = self._inlined.get(str(call.op.name_hint))
        return call if func is None else self._body_for(func, call)

    def _body_for(self, func: Function, call: Call) -> RelayExpr:
        extents: dict[tir.Var, tir.PrimExpr] = {}
        for param, arg in zip(func.params, call.args):
            unify_struct_info(param.struct_info, arg.struct_info, extents)
        unknown = [v for v in defined_symbolic_vars(func) if v not in extents]
        fresh = {v: tir.Var(str(v.name), str(v.dtype)) for v in unknown}
        given = dict(zip(func.params, call.args))
        bound = bind_function(func, given, {**extents, **fresh}, self._mod)
        return self.visit_expr(FreshVariables(self._mod).visit_expr(bound).body)


@tvm._ffi.register_func("relax.FunctionInlineFunctions")
def _inline_functions(func: Function, function_map: Mapping[str | GlobalVar, Function]) -> Function:
    """The function with bodies in the place of calls; see ``relax.Function.inline_functions``."""
    inlined: dict[str, Function] = {}
    for key, value in function_map.items():
        name = str(key.name_hint) if isinstance(key, GlobalVar) else str(key)
        if name in inlined:
            raise error.ValueError(f"inline_functions: '{name}' is given twice")
        if not isinstance(value, Function):
            raise error.TypeError(
                f"inline_functions: '{name}' is {type(value).__name__}, only graph functions have "
                "a body to inline"
            )
        inlined[name] = value
    names = {name: GlobalVar(name) for name in inlined}
    given = IRModule({names[name]: value for name, value in inlined.items()})
    circles = detect_recursion(given)
    if circles:
        raise error.ValueError(
            "inline_functions: functions call each other in a circle: "
            + ", ".join(str(gvar.name_hint) for gvar in circles[0])
        )
    return _Inliner(given, inlined).visit_expr(func)


@graph_pass("InlinePrivateFunctions")
def InlinePrivateFunctions(mod: IRModule) -> IRModule:
    """The module with the body of each private graph function in the place of its calls.

    Private functions, without a global symbol, that nothing calls any more are gone. Those that are
    single kernels, or parts for other compilers, stay.

    Raises
    ------
    ValueError : private functions call each other in a circle.
    """
    kept = ("global_symbol", "Primitive", "Composite", "Codegen")
    private = {
        str(gvar.name_hint): func
        for gvar, func in mod.functions.items()
        if isinstance(func, Function) and not any(key in func.attrs for key in kept)
    }
    for circle in detect_recursion(mod):
        names = [str(gvar.name_hint) for gvar in circle]
        if any(name in private for name in names):
            raise error.ValueError(
                "InlinePrivateFunctions: functions call each other in a circle: " + ", ".join(names)
            )
    if not private:
        return mod
    inliner = _Inliner(mod, private)
    functions = {
        gvar: inliner.visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
        if str(gvar.name_hint) not in private
    }
    return DeadCodeElimination()(mod.with_functions(functions))
