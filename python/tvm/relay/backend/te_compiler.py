"""Relay functions as tensor programs."""

from __future__ import annotations

from typing import Any

from tvm import relax, te
from tvm.ir import IRModule
from tvm.relax.te_lowering import function_to_te
from tvm.target import Target
from tvm.tir import PrimFunc

from .. import transform
from ..expr import Function
from .to_relax import to_relax

__all__ = ["lower_to_primfunc"]


def lower_to_primfunc(relay_func: Function, target: Any) -> PrimFunc:
    """One tensor program, in blocks, that computes what a relay function does.

    Its parameters are those of the function, then the results. The program is not scheduled;
    `target` becomes its attribute.

    Raises
    ------
    TypeError, ValueError : the function is no graph of known shapes; the error names the operator.
    """
    typed = transform.InferType()(IRModule.from_expr(relay_func))
    graph = relax.transform.CanonicalizeBindings()(to_relax(typed["main"]))
    computation = function_to_te(graph["main"])
    func = te.create_prim_func(computation.args)
    return func.with_attr("target", Target(target))
