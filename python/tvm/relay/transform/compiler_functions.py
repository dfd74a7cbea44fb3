"""Moving functions of other compilers out of and into the functions that call them."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import error
from tvm.ir import GlobalVar, IRModule, RelayExpr
from tvm.ir.transform import Pass, PassContext, module_pass

from ..analysis.infer import infer_module
from ..expr import Call, Function
from ..expr_functor import PostOrderMutator
from .base import relay_functions

__all__ = [
    "InlineCompilerFunctionsBoundTo",
    "MarkCompilerFunctionsAsExtern",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols",
]


def _compiler(func: object) -> str:
    attrs = func.attrs if isinstance(func, Function) else None
    return "" if attrs is None else str(attrs.get("Compiler", ""))


def _is_of(func: object, compiler: str) -> bool:
    found = _compiler(func)
    return bool(found) and (not compiler or found == compiler)


class _Outliner(PostOrderMutator):
    def __init__(self, compiler: str, mod: IRModule) -> None:
        super().__init__()
        self._compiler, self._mod = compiler, mod
        self.functions: dict[str, Function] = {}

    def visit_call(self, call: Call) -> RelayExpr:
        func = call.op
        if not isinstance(func, Function) or not _is_of(func, self._compiler):
            return super().visit_call(call)
        name = str((func.attrs or {}).get("global_symbol", ""))
        if not name:
            return super().visit_call(call)
        if name in self._mod or name in self.functions:
            raise error.ValueError(
                f"OutlineCompilerFunctionsWithExistingGlobalSymbols: there is a function {name} "
                "already"
            )
        self.functions[name] = func
        return Call(GlobalVar(name), [self.visit(arg) for arg in call.args])


def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> Pass:
    """Make functions of other compilers that are called where they stand functions of the module.

    Parameters
    ----------
    compiler_filter : value of the attribute "Compiler" of those that are meant; empty for all.
        They are named by their "global_symbol".

    Raises
    ------
    ValueError : the module has a function of that name.
    """

    @module_pass(opt_level=0, name="OutlineCompilerFunctionsWithExistingGlobalSymbols")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        result = mod.clone()
        for gvar, func in relay_functions(mod):
            outliner = _Outliner(compiler_filter, result)
            result[str(gvar.name_hint)] = outliner.visit(func)
            for name, outlined in outliner.functions.items():
                result[name] = outlined
        return infer_module(result)

    return run


def MarkCompilerFunctionsAsExtern(compiler_filter: str = "") -> Pass:
    """Say of the module's functions of other compilers that they are compiled elsewhere.

    Their attributes are "Extern" and the "global_symbol" then.
    """

    @module_pass(opt_level=0, name="MarkCompilerFunctionsAsExtern")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        result = mod.clone()
        for gvar, func in relay_functions(mod):
            if not _is_of(func, compiler_filter):
                continue
            name = str(gvar.name_hint)
            attrs = {"Extern": 1, "global_symbol": func.attrs.get("global_symbol", name)}
            result[name] = Function(func.params, func.body, func.ret_type, func.type_params, attrs)
        return result

    return run


class _Inliner(PostOrderMutator):
    def __init__(self, functions: dict[str, Function]) -> None:
        super().__init__()
        self._functions = functions

    def visit_call(self, call: Call) -> RelayExpr:
        name = str(call.op.name_hint) if isinstance(call.op, GlobalVar) else ""
        if name not in self._functions:
            return super().visit_call(call)
        func = self._functions[name]
        attrs = {"global_symbol": name, **(func.attrs or {})}
        inlined = Function(func.params, func.body, func.ret_type, func.type_params, attrs)
        return Call(inlined, [self.visit(arg) for arg in call.args])


def InlineCompilerFunctionsBoundTo(global_vars: Sequence[GlobalVar]) -> Pass:
    """The other way: calls of these functions of other compilers become calls of what they are."""

    @module_pass(opt_level=0, name="InlineCompilerFunctionsBoundTo")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        names = {str(gvar.name_hint) for gvar in global_vars}
        moved = {
            str(gvar.name_hint): func
            for gvar, func in relay_functions(mod)
            if str(gvar.name_hint) in names and _compiler(func)
        }
        kept = {g: f for g, f in mod.functions.items() if str(g.name_hint) not in moved}
        result = mod.with_functions(kept)
        for gvar, func in relay_functions(result):
            result[str(gvar.name_hint)] = _Inliner(moved).visit(func)
        return infer_module(result)

    return run
