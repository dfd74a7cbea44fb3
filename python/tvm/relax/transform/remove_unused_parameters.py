"""Parameters of private functions that nothing depends on."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tir
from tvm.ir import GlobalVar, IRModule, PrimExpr, RelayExpr

from ..analysis.variables import free_symbolic_vars, free_vars
from ..expr import Call, Function, PrimValue, Var
from ..expr_functor import PyExprMutator, mutator
from ..struct_info import PrimStructInfo
from ..struct_info_relations import (
    definable_tir_vars_in_struct_info,
    tir_vars_in_struct_info,
    unify_struct_info,
)
from .function_uses import FunctionUses
from .graph_pass import graph_pass

__all__ = ["RemoveUnusedParameters"]


@dataclass
class _Signature:
    """What a function takes from now on.

    Attributes
    ----------
    kept : positions of the parameters that stay. extents : symbolic extents that follow, each as a
        number of its own.
    """

    function: Function
    kept: list[int]
    extents: list[tir.Var]

    def arguments(self, call: Call) -> list[RelayExpr] | None:
        """Arguments of a call; None where it does not say what an extent is."""
        values: dict[tir.Var, PrimExpr] = {}
        for param, arg in zip(self.function.params, call.args):
            unify_struct_info(param.struct_info, arg.struct_info, values)
        if not all(extent in values for extent in self.extents):
            return None
        return [call.args[i] for i in self.kept] + [PrimValue(values[v]) for v in self.extents]

    def shortened(self) -> Function:
        func = self.function
        params = [func.params[i] for i in self.kept]
        params += [Var(f"param_{v.name}", PrimStructInfo(value=v)) for v in self.extents]
        return Function(params, func.body, func.ret_struct_info, func.is_pure, func.attrs)


def _definable(params: list[Var]) -> set[tir.Var]:
    return {v for param in params for v in definable_tir_vars_in_struct_info(param.struct_info)}


def _shorter(func: Function) -> _Signature | None:
    """The signature without unused parameters; None if there are none."""
    used = set(free_vars(func.body))
    kept = [i for i, param in enumerate(func.params) if param in used]
    params = [func.params[i] for i in kept]
    bare = Function(params, func.body, func.ret_struct_info, func.is_pure, func.attrs)
    needed = [*free_symbolic_vars(bare), *tir_vars_in_struct_info(func.ret_struct_info)]
    for param in params:
        needed += tir_vars_in_struct_info(param.struct_info)
    known = _definable(params)
    missing = [v for v in dict.fromkeys(needed) if v not in known]
    # A number that is a parameter already stays where it is.
    for i, param in enumerate(func.params):
        info = param.struct_info
        if i not in kept and isinstance(info, PrimStructInfo) and info.value in missing:
            kept.append(i)
            missing.remove(info.value)
    if len(kept) == len(func.params):
        return None
    return _Signature(func, sorted(kept), missing)


@mutator
class _Caller(PyExprMutator):
    """Gives functions the arguments that they still take."""

    def __init__(self, mod: IRModule, signatures: dict[GlobalVar, _Signature]) -> None:
        super().__init__(mod)
        self._signatures = signatures

    def visit_call_(self, op: Call) -> RelayExpr:
        signature = self._signatures.get(op.op) if isinstance(op.op, GlobalVar) else None
        if signature is None:
            return super().visit_call_(op)
        arguments = signature.arguments(op)
        assert arguments is not None
        args = [self.visit_expr(arg) for arg in arguments]
        return Call(op.op, args, op.attrs, op.sinfo_args)


def _is_private(func: object) -> bool:
    return isinstance(func, Function) and "global_symbol" not in (func.attrs or {})


@graph_pass("RemoveUnusedParameters")
def RemoveUnusedParameters(mod: IRModule) -> IRModule:
    """The module with parameters of private functions that nothing depends on taken away.

    Of a parameter that only says what symbolic extents are these remain, as numbers, unless other
    parameters say it too. Functions that are exported, or are values, keep what they take.
    """
    while True:
        uses = FunctionUses()
        for func in mod.functions.values():
            if isinstance(func, Function):
                uses.visit_expr(func)
        signatures: dict[GlobalVar, _Signature] = {}
        for gvar, func in mod.functions.items():
            if not _is_private(func) or gvar in uses.values or gvar not in uses.calls:
                continue
            signature = _shorter(func)
            if signature is not None and all(
                signature.arguments(call) is not None for call in uses.calls[gvar]
            ):
                signatures[gvar] = signature
        if not signatures:
            return mod
        functions = {
            gvar: signatures[gvar].shortened() if gvar in signatures else func
            for gvar, func in mod.functions.items()
        }
        caller = _Caller(mod.with_functions(functions), signatures)
        for gvar, func in functions.items():
            if isinstance(func, Function):
                caller.builder_.update_func(gvar, caller.visit_expr(func))
        mod = caller.builder_.get()
