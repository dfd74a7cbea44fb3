"""Removal of bindings whose value nobody reads."""

from __future__ import annotations

from tvm.ir import GlobalVar, IRModule

from ..expr import Call, DataflowBlock, Function, SeqExpr, Var
from ..rewriter import map_functions, uses_of
from .graph_pass import graph_pass

__all__ = ["DeadCodeElimination"]


def _eliminate(func: Function) -> Function:
    live: set[Var] = set(uses_of(func.body.body))
    blocks = []
    for block in reversed(list(func.body.blocks)):
        is_dataflow = isinstance(block, DataflowBlock)
        kept = []
        for binding in reversed(list(block.bindings)):
            # Outside dataflow blocks a call may be there for its side effect.
            if binding.var in live or not is_dataflow:
                kept.append(binding)
                live.update(uses_of(binding.value))
        if kept:
            blocks.append(type(block)(kept[::-1]))
    return Function(
        func.params,
        SeqExpr(blocks[::-1], func.body.body),
        is_pure=func.is_pure,
        attrs=func.attrs,
    )


@graph_pass("relax.DeadCodeElimination")
def DeadCodeElimination(mod: IRModule) -> IRModule:
    """The module without bindings that no result depends on, and without uncalled kernels."""
    mod = map_functions(mod, _eliminate)
    called: set[GlobalVar] = set()
    for func in mod.functions.values():
        if isinstance(func, Function):
            for block in func.body.blocks:
                for binding in block.bindings:
                    if isinstance(binding.value, Call):
                        called.update(_globals_of(binding.value))
    kept = {
        gvar: func
        for gvar, func in mod.functions.items()
        if gvar in called or (isinstance(func, Function) and not func.attrs.get("Primitive", 0))
    }
    return IRModule(kept)


def _globals_of(call: Call) -> list[GlobalVar]:
    return [e for e in (call.op, *call.args) if isinstance(e, GlobalVar)]
