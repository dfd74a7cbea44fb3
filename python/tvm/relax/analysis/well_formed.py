"""Questions about graph modules."""

from __future__ import annotations

import tvm._ffi
from tvm.error import InternalError
from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..expr import (
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    ExternFunc,
    Function,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)

__all__ = ["check_well_formed", "well_formed"]


def well_formed(mod: IRModule) -> bool:
    """Whether every graph function of the module is well formed; see :func:`check_well_formed`."""
    try:
        check_well_formed(mod)
    except ValueError:
        return False
    return True


def check_well_formed(mod: IRModule) -> None:
    """Refuse a module that the passes and the build could misread.

    In every graph function, variables are bound once and before they are read, dataflow variables
    are read in their own block only, arguments of calls are not calls themselves, bound values have
    struct info, and the functions that are called exist.

    Raises
    ------
    ValueError : the first fault, with the function and the binding it is in.
    """
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            _FunctionCheck(mod, str(gvar.name_hint), func).run()


@tvm._ffi.register_func("relax.analysis.verify_after_pass")
def _verify_after_pass(name: str, before: IRModule, after: IRModule) -> None:
    """For the option "ir.verify": looks at graph functions that a pass changed."""
    for gvar, func in after.functions.items():
        old = before.functions.get(gvar)
        if not isinstance(func, Function) or (old is not None and old.same_as(func)):
            continue
        try:
            _FunctionCheck(after, str(gvar.name_hint), func).run()
        except ValueError as fault:
            try:
                check_well_formed(before)
            except ValueError as error:
                raise ValueError(f"pass {name} was given a faulty module: {error}") from None
            raise InternalError(f"pass {name} left a faulty module: {fault}") from fault


class _FunctionCheck:
    def __init__(self, mod: IRModule, name: str, func: Function) -> None:
        self._functions = {str(gvar.name_hint) for gvar in mod.get_global_vars()}
        self._name = name
        self._func = func
        self._visible: set[Var] = set()

    def run(self) -> None:
        for param in self._func.params:
            self._bind(param, "the parameters")
        if not isinstance(self._func.body, SeqExpr):
            self._refuse("its body", "is not a sequence of blocks")
        for block in self._func.body.blocks:
            local = []
            for binding in block.bindings:
                where = f"the binding of '{binding.var.name_hint}'"
                self._check_value(binding.value, where)
                self._bind(binding.var, where)
                if isinstance(binding.var, DataflowVar):
                    local.append(binding.var)
                    if not isinstance(block, DataflowBlock):
                        self._refuse(where, "makes a dataflow variable outside a dataflow block")
            self._visible.difference_update(local)
        self._check_argument(self._func.body.body, "the result")

    def _bind(self, var: Var, where: str) -> None:
        if var in self._visible:
            self._refuse(where, f"binds '{var.name_hint}' a second time")
        if var.struct_info is None:
            self._refuse(where, f"leaves '{var.name_hint}' without struct info")
        self._visible.add(var)

    def _check_value(self, value: RelayExpr, where: str) -> None:
        if isinstance(value, Call):
            if isinstance(value.op, GlobalVar):
                self._check_argument(value.op, where)
            for arg in value.args:
                self._check_argument(arg, where)
        elif isinstance(value, TupleGetItem):
            self._check_argument(value.tuple_value, where)
        else:
            self._check_argument(value, where)

    def _check_argument(self, expr: RelayExpr, where: str) -> None:
        if isinstance(expr, Tuple):
            for field in expr.fields:
                self._check_argument(field, where)
        elif isinstance(expr, GlobalVar):
            if str(expr.name_hint) not in self._functions:
                self._refuse(where, f"calls '{expr.name_hint}', which the module does not have")
        elif isinstance(expr, Var):
            if expr not in self._visible:
                self._refuse(where, f"reads '{expr.name_hint}', which is not visible there")
        elif not isinstance(expr, (Constant, ShapeExpr, ExternFunc)):
            self._refuse(where, f"has {type(expr).__name__} as an argument; bind it first")

    def _refuse(self, where: str, what: str) -> None:
        raise ValueError(f"relax: function '{self._name}': {where} {what}")
