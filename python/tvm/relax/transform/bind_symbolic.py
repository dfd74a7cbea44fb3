"""Symbolic extents of a module as numbers or expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import error, tir
from tvm.ir import IRModule

from ..analysis.variables import defined_symbolic_vars, free_symbolic_vars
from ..expr import Function
from .bind import bind_symbolic_vars
from .graph_pass import graph_pass

__all__ = ["BindSymbolicVars"]


@graph_pass("BindSymbolicVars")
def BindSymbolicVars(
    mod: IRModule, binding_map: Mapping[str | tir.Var, Any], func_name: str | None = None
) -> IRModule:
    """The module with expressions in place of symbolic extents.

    Parameters
    ----------
    binding_map : by extent or its name, an int or an expression.
    func_name : the function to look at; all of them by default, where an extent must be that of one
        function at least.

    Raises
    ------
    ValueError : there is no such extent, or more than one in a function.
    """
    functions = dict(mod.functions.items())
    used: set[Any] = set()
    for gvar, func in mod.functions.items():
        if not isinstance(func, Function):
            continue
        if func_name is not None:
            if str(gvar.name_hint) == func_name:
                used.update(binding_map)
                functions[gvar] = bind_symbolic_vars(func, binding_map)
            continue
        known = [*defined_symbolic_vars(func), *free_symbolic_vars(func)]
        own = {
            key: value
            for key, value in binding_map.items()
            if any(var.same_as(key) or str(var.name) == key for var in known)
        }
        used.update(own)
        if own:
            functions[gvar] = bind_symbolic_vars(func, own)
    left = [str(key) for key in binding_map if key not in used]
    if left:
        raise error.ValueError(f"BindSymbolicVars: no function has the extent '{left[0]}'")
    return mod.with_functions(functions)
