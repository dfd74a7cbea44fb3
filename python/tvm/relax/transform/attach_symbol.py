"""Names under which functions are exported."""

from __future__ import annotations

from tvm import tir
from tvm.ir import BaseFunc, GlobalVar, IRModule

from ..expr import Function
from .graph_pass import graph_pass
from .normalize_global_var import rename_functions

__all__ = ["AttachGlobalSymbol", "with_symbols"]


def _symbol(func: BaseFunc) -> str | None:
    symbol = func.attrs.get("global_symbol", None) if func.attrs is not None else None
    return None if symbol is None else str(symbol)


def with_symbols(mod: IRModule) -> IRModule:
    """The module with kernels exported by their names, and public graph functions by theirs.

    Private graph functions stay private.
    """
    functions = {}
    for gvar, func in mod.functions.items():
        name, symbol = str(gvar.name_hint), _symbol(func)
        is_public = isinstance(func, Function) and symbol is not None
        if (isinstance(func, tir.PrimFunc) or is_public) and symbol != name:
            func = func.with_attr("global_symbol", name)
        functions[gvar] = func
    return mod.with_functions(functions)


@graph_pass("AttachGlobalSymbol")
def AttachGlobalSymbol(mod: IRModule) -> IRModule:
    """The module with every function exported by its name: its ``global_symbol`` is that.

    In a module with the attribute "system_lib_prefix", kernels and calls of them get names that
    begin with it.
    """
    prefix = mod.attrs.get("system_lib_prefix", None) if mod.attrs is not None else None
    functions = {}
    names: dict[GlobalVar, GlobalVar] = {}
    for gvar, func in mod.functions.items():
        name = str(gvar.name_hint)
        if isinstance(func, tir.PrimFunc) and prefix and not name.startswith(str(prefix)):
            name = f"{prefix}{name}"
            names[gvar] = GlobalVar(name)
        if isinstance(func, (tir.PrimFunc, Function)) and _symbol(func) != name:
            func = func.with_attr("global_symbol", name)
        functions[gvar] = func
    return rename_functions(mod.with_functions(functions), names)
