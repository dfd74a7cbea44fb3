"""Tuples that private functions take, as parameters of their own."""

from __future__ import annotations

from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..block_builder import merged_blocks
from ..expr import (
    BindingBlock,
    Call,
    Function,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprMutator, mutator
from ..struct_info import StructInfo, TupleStructInfo
from .function_uses import FunctionUses
from .graph_pass import graph_pass

__all__ = ["ExpandTupleArguments"]


def _leaves(var: Var, out: list[Var]) -> RelayExpr:
    """A parameter as an expression over parameters that are no tuples, which `out` gets."""
    info = var.struct_info
    if not isinstance(info, TupleStructInfo):
        out.append(var)
        return var
    fields = []
    for i, field in enumerate(info.fields):
        fields.append(_leaves(Var(f"{var.name_hint}_{i}", field), out))
    return Tuple(fields)


def _has_tuples(func: Function) -> bool:
    return any(isinstance(param.struct_info, TupleStructInfo) for param in func.params)


def _expanded(func: Function) -> Function:
    params: list[Var] = []
    bindings = []
    for param in func.params:
        value = _leaves(param, params)
        if not value.same_as(param):
            bindings.append(VarBinding(param, value))
    blocks = merged_blocks([BindingBlock(bindings), *func.body.blocks])
    body = SeqExpr(blocks, func.body.body)
    return Function(params, body, func.ret_struct_info, func.is_pure, func.attrs)


@mutator
class _Caller(PyExprMutator):
    def __init__(self, mod: IRModule, expanded: set[GlobalVar]) -> None:
        super().__init__(mod)
        self._expanded = expanded

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or call.op not in self._expanded:
            return call
        args: list[RelayExpr] = []
        for arg in call.args:
            self._flatten(arg, arg.struct_info, args)
        return Call(call.op, args, call.attrs, call.sinfo_args)

    def _flatten(self, value: RelayExpr, info: StructInfo, out: list[RelayExpr]) -> None:
        if not isinstance(info, TupleStructInfo):
            out.append(value)
            return
        known = self.lookup_binding(value) if isinstance(value, Var) else value
        for i, field in enumerate(info.fields):
            part = known.fields[i] if isinstance(known, Tuple) else TupleGetItem(value, i)
            self._flatten(part, field, out)


@graph_pass("ExpandTupleArguments")
def ExpandTupleArguments(mod: IRModule) -> IRModule:
    """The module with private functions that take the fields of tuples instead of the tuples.

    A field is called after the parameter and its place ("args_0"), and tuples inside of tuples go
    the same way. Calls give the fields. Functions that are used otherwise than by calling them stay
    as they are.
    """
    uses = FunctionUses()
    for func in mod.functions.values():
        if isinstance(func, Function):
            uses.visit_expr(func)
    functions = dict(mod.functions.items())
    expanded = set()
    for gvar, func in mod.functions.items():
        is_private = isinstance(func, Function) and "global_symbol" not in (func.attrs or {})
        if is_private and _has_tuples(func) and gvar not in uses.values:
            functions[gvar] = _expanded(func)
            expanded.add(gvar)
    if not expanded:
        return mod
    caller = _Caller(mod.with_functions(functions), expanded)
    for gvar, func in functions.items():
        if isinstance(func, Function):
            caller.builder_.update_func(gvar, caller.visit_expr(func))
    return caller.builder_.get()
