"""Passes over modules as functions of single expressions."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr, Type
from tvm.ir.transform import Pass

from ..analysis.variables import free_vars
from ..expr import Function
from .infer_type import InferType
from .normal_forms import ToANormalForm, ToBasicBlockNormalForm
from .simplify import FoldConstant

__all__ = ["FoldConstantExpr", "InferTypeLocal", "ToANormalFormExpr", "ToBasicBlockNormalFormExpr"]


def _through(run: Pass, expr: RelayExpr, mod: IRModule | None = None) -> RelayExpr:
    """What a pass makes of an expression, which may call functions of a module."""
    around = IRModule() if mod is None else mod.clone()
    is_function = isinstance(expr, Function)
    name = "expression"
    around[name] = expr if is_function else Function(free_vars(expr), expr)
    new = run(around)[name]
    return new if is_function else new.body


def FoldConstantExpr(expr: RelayExpr, mod: IRModule, fold_qnn: bool = False) -> RelayExpr:
    """The expression with parts that follow from constants computed.

    Parameters
    ----------
    mod : functions that it calls by name.
    fold_qnn : whether quantised operators are computed as well.
    """
    return _through(FoldConstant(fold_qnn), expr, mod)


def ToANormalFormExpr(e: RelayExpr) -> RelayExpr:
    """The expression with every value named by let."""
    return _through(ToANormalForm(), e)


def ToBasicBlockNormalFormExpr(e: RelayExpr) -> RelayExpr:
    """The expression with what several blocks use named by let."""
    return _through(ToBasicBlockNormalForm(), e)


def InferTypeLocal(expr: RelayExpr) -> Type:
    """The type of an expression, whose variables have annotations.

    Raises
    ------
    TypeError, ValueError : parts do not fit together.
    """
    return _through(InferType(), expr).checked_type
