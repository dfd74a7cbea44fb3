"""Names under which functions are exported."""

from __future__ import annotations

from tvm import tir
from tvm.ir import IRModule

from ..expr import Function
from .graph_pass import graph_pass

__all__ = ["AttachGlobalSymbol"]


@graph_pass("relax.AttachGlobalSymbol")
def AttachGlobalSymbol(mod: IRModule) -> IRModule:
    """The module with a ``global_symbol``, its name, on each function that has none or another.

    Graph functions that have none are private and stay so, except for ``main``.
    """
    functions = {}
    for gvar, func in mod.functions.items():
        name = str(gvar.name_hint)
        symbol = func.attrs.get("global_symbol", None) if func.attrs is not None else None
        wanted = isinstance(func, tir.PrimFunc) or (
            isinstance(func, Function) and symbol is not None
        )
        if wanted and str(symbol) != name:
            func = func.with_attr("global_symbol", name)
        functions[gvar] = func
    return mod.with_functions(functions)
