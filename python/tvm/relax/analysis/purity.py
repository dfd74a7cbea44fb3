"""Which calls have an effect beside their result."""

from __future__ import annotations

from tvm.ir import GlobalVar, IRModule, Op, RelayExpr

from ..expr import (
    BindingBlock,
    Call,
    ExternFunc,
    Function,
    If,
    SeqExpr,
    Var,
)
from ..op import is_pure
from ..struct_info import FuncStructInfo

__all__ = ["contains_impure_call", "find_impure_call", "is_impure_call"]


def is_impure_call(call: Call, mod: IRModule | None = None) -> bool:
    """Whether a call may have an effect.

    Parameters
    ----------
    mod : where functions that are called by name are found. One that is not found is taken to be
        without effects.
    """
    callee = call.op
    if isinstance(callee, Op):
        return not is_pure(callee)
    if isinstance(callee, GlobalVar):
        name = str(callee.name_hint)
        func = mod[name] if mod is not None and name in mod else None
        if isinstance(func, Function):
            return not func.is_pure and not func.attrs.get("relax.force_pure", False)
        return False
    info = callee.struct_info
    if isinstance(callee, ExternFunc):
        return not (isinstance(info, FuncStructInfo) and info.purity)
    return isinstance(info, FuncStructInfo) and not info.purity


def contains_impure_call(
    expr: RelayExpr, own_name: Var | GlobalVar | None = None, mod: IRModule | None = None
) -> bool:
    """Whether an expression, or the body of a function, has a call that may have an effect.

    Functions that are defined inside count where they are called, not where they are defined.

    Parameters
    ----------
    own_name : the variable of a function that calls itself; such calls have no effects of their
        own.
    """
    return find_impure_call(expr, own_name, mod) is not None


def find_impure_call(
    expr: RelayExpr, own_name: Var | GlobalVar | None = None, mod: IRModule | None = None
) -> Call | None:
    """The first call of an expression that may have an effect, None if there is none."""
    if isinstance(expr, Function):
        expr = expr.body
    if isinstance(expr, Call):
        if own_name is not None and expr.op.same_as(own_name):
            return None
        return expr if is_impure_call(expr, mod) else None
    if isinstance(expr, If):
        for branch in (expr.true_branch, expr.false_branch):
            found = find_impure_call(branch, own_name, mod)
            if found is not None:
                return found
    if isinstance(expr, SeqExpr):
        for block in expr.blocks:
            found = _in_block(block, own_name, mod)
            if found is not None:
                return found
        return find_impure_call(expr.body, own_name, mod)
    return None


def _in_block(
    block: BindingBlock, own_name: Var | GlobalVar | None, mod: IRModule | None
) -> Call | None:
    for binding in block.bindings:
        if isinstance(binding.value, Function):
            continue
        found = find_impure_call(binding.value, own_name, mod)
        if found is not None:
            return found
    return None
