"""Whether graph functions keep to the rules that passes and the build rely on."""

from __future__ import annotations

import sys

import tvm._ffi
from tvm import error, tir
from tvm.error import InternalError
from tvm.ir import GlobalVar, IRModule, Op, RelayExpr

from ..expr import (
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from ..struct_info import FuncStructInfo, StructInfo
from ..struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in_struct_info
from .purity import find_impure_call

__all__ = ["check_well_formed", "well_formed"]


def well_formed(obj: IRModule | Function, check_struct_info: bool = True) -> bool:
    """Whether a module or function is well formed; what is not is told on the error stream.

    See :func:`check_well_formed`.
    """
    try:
        check_well_formed(obj, check_struct_info)
    except error.ValueError as fault:
        print(f"not well formed: {fault}", file=sys.stderr)
        return False
    return True


def check_well_formed(obj: IRModule | Function, check_struct_info: bool = True) -> None:
    """Refuse graphs that the passes and the build could misread.

    In every graph function, variables and symbolic extents are bound once and before they are used,
    in one function only, dataflow variables are read in their own block only, operands are no calls
    themselves, bound values have struct info, dataflow blocks and pure functions have no effects,
    and the functions that are called exist.

    Parameters
    ----------
    obj : a module, or a function, whose calls of others are not looked up.
    check_struct_info : whether everything must have struct info.

    Raises
    ------
    ValueError : the first fault, with the function and the binding it is in.
    """
    if isinstance(obj, Function):
        name = str(obj.attrs.get("global_symbol", "main"))
        _FunctionCheck(None, name, obj, check_struct_info, {}).run()
        return
    owners: dict[object, str] = {}
    for gvar, func in obj.functions.items():
        if not isinstance(func, Function):
            continue
        name = str(gvar.name_hint)
        symbol = func.attrs.get("global_symbol", None)
        if symbol is not None and str(symbol) != name:
            raise error.ValueError(
                f"relax: function '{name}': its global_symbol is '{symbol}', which must be its name"
            )
        _FunctionCheck(obj, name, func, check_struct_info, owners).run()


@tvm._ffi.register_func("relax.analysis.verify_after_pass")
def _verify_after_pass(name: str, before: IRModule, after: IRModule) -> None:
    """For the option "ir.verify": looks at graph functions that a pass changed."""
    for gvar, func in after.functions.items():
        old = before.functions.get(gvar)
        if not isinstance(func, Function) or (old is not None and old.same_as(func)):
            continue
        try:
            _FunctionCheck(after, str(gvar.name_hint), func, True, {}).run()
        except ValueError as fault:
            try:
                check_well_formed(before)
            except ValueError as reason:
                raise error.ValueError(f"pass {name} was given a faulty module: {reason}") from None
            raise InternalError(f"pass {name} left a faulty module: {fault}") from fault


_LEAVES = (
    Constant, ShapeExpr, ExternFunc, PrimValue, StringImm, DataTypeImm, Op,
)  # fmt: skip


class _FunctionCheck:
    """Walks one function of a module.

    Parameters
    ----------
    owners : for variables and extents of the functions looked at before, the function's name.
    """

    def __init__(
        self,
        mod: IRModule | None,
        name: str,
        func: Function,
        check_struct_info: bool,
        owners: dict[object, str],
    ) -> None:
        self._mod = mod
        self._functions = (
            None if mod is None else {str(gvar.name_hint) for gvar in mod.get_global_vars()}
        )
        self._name = name
        self._func = func
        self._check_info = check_struct_info
        self._owners = owners
        self._visible: set[Var] = set()
        self._bound: set[Var] = set()
        self._extents: set[tir.Var] = set()
        # A function that is being defined may be called in its own body.
        self._recursive: set[Var] = set()

    def run(self) -> None:
        self._check_function(self._func, "the parameters")

    def _check_function(self, func: Function, where: str) -> None:
        outer = set(self._extents)
        visible = set(self._visible)
        # Extents of parameters are known from any of them that is a plain variable.
        for param in func.params:
            if param.struct_info is not None:
                self._define_extents(param.struct_info, where)
        for param in func.params:
            if isinstance(param, DataflowVar):
                self._refuse(where, f"have the dataflow variable '{param.name_hint}'")
            self._bind(param, where)
        if not isinstance(func.body, SeqExpr):
            self._refuse("its body", "is not a sequence of blocks")
        forced = bool(func.attrs.get("relax.force_pure", False))
        if forced and not func.is_pure:
            self._refuse("relax.force_pure", "is for functions that are pure")
        if func.is_pure and not forced:
            impure = find_impure_call(func, None, self._mod)
            if impure is not None:
                self._refuse(f"the call {impure}", "may have an effect, but the function is pure")
        self._check_sequence(func.body, "the result")
        if func.ret_struct_info is not None:
            self._check_extents(func.ret_struct_info, "the result")
        elif self._check_info:
            self._refuse("the result", "has no struct info")
        self._extents = outer
        self._visible = visible

    def _check_sequence(self, body: SeqExpr, result: str) -> None:
        for block in body.blocks:
            local = []
            dataflow = isinstance(block, DataflowBlock)
            for binding in block.bindings:
                where = f"the binding of '{binding.var.name_hint}'"
                value = binding.value
                if dataflow:
                    self._check_effects(value, where)
                if isinstance(value, Function):
                    self._recursive.add(binding.var)
                self._check_value(value, where)
                if isinstance(binding, MatchCast):
                    self._define_extents(binding.struct_info, where)
                self._bind(binding.var, where)
                if isinstance(binding.var, DataflowVar):
                    local.append(binding.var)
                    if not dataflow:
                        self._refuse(where, "makes a dataflow variable outside a dataflow block")
            self._visible.difference_update(local)
        self._check_argument(body.body, result)

    def _check_effects(self, value: RelayExpr, where: str) -> None:
        if isinstance(value, If):
            self._refuse(where, "has a conditional in a dataflow block")
        impure = None if isinstance(value, Function) else find_impure_call(value, None, self._mod)
        if impure is not None:
            self._refuse(where, f"calls {impure} in a dataflow block, which may have an effect")

    def _bind(self, var: Var, where: str) -> None:
        if var in self._bound:
            self._refuse(where, f"binds '{var.name_hint}' a second time")
        self._own(var, str(var.name_hint), where)
        if var.struct_info is None:
            if self._check_info:
                self._refuse(where, f"leaves '{var.name_hint}' without struct info")
        else:
            self._check_extents(var.struct_info, where)
        self._bound.add(var)
        self._visible.add(var)

    def _own(self, what: object, name: str, where: str) -> None:
        owner = self._owners.setdefault(what, self._name)
        if owner != self._name:
            self._refuse(where, f"uses '{name}', which belongs to function '{owner}'")

    def _define_extents(self, info: StructInfo, where: str) -> None:
        for extent in definable_tir_vars_in_struct_info(info):
            self._own(extent, str(extent.name), where)
            self._extents.add(extent)

    def _check_extents(self, info: StructInfo, where: str) -> None:
        if isinstance(info, FuncStructInfo):
            return
        for extent in tir_vars_in_struct_info(info):
            if extent not in self._extents:
                self._refuse(where, f"uses the extent '{extent.name}', which is not known there")

    def _check_value(self, value: RelayExpr, where: str) -> None:
        if isinstance(value, Call):
            if not isinstance(value.op, Op):
                self._check_argument(value.op, where)
            for arg in value.args:
                self._check_argument(arg, where)
            for info in value.sinfo_args:
                self._check_extents(info, where)
            if self._check_info and value.struct_info is None:
                self._refuse(where, "calls something of whose result nothing is known")
        elif isinstance(value, TupleGetItem):
            self._check_argument(value.tuple_value, where)
        elif isinstance(value, If):
            self._check_argument(value.cond, where)
            for branch in (value.true_branch, value.false_branch):
                if not isinstance(branch, SeqExpr):
                    self._refuse(where, "has a branch that is not a sequence of blocks")
                visible, extents = set(self._visible), set(self._extents)
                self._check_sequence(branch, where)
                self._visible, self._extents = visible, extents
        elif isinstance(value, Function):
            self._check_function(value, where)
        else:
            self._check_argument(value, where)

    def _check_argument(self, expr: RelayExpr, where: str) -> None:
        if isinstance(expr, Tuple):
            for field in expr.fields:
                self._check_argument(field, where)
        elif isinstance(expr, GlobalVar):
            if self._functions is not None and str(expr.name_hint) not in self._functions:
                self._refuse(where, f"calls '{expr.name_hint}', which the module does not have")
        elif isinstance(expr, Var):
            if expr not in self._visible and expr not in self._recursive:
                self._refuse(where, f"reads '{expr.name_hint}', which is not visible there")
        elif isinstance(expr, ShapeExpr):
            self._check_extents(expr.struct_info, where)
        elif not isinstance(expr, _LEAVES):
            self._refuse(where, f"has {type(expr).__name__} as an argument; bind it first")

    def _refuse(self, where: str, what: str) -> None:
        raise error.ValueError(f"relax: function '{self._name}': {where} {what}")
