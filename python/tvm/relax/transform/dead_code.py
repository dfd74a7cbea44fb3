"""Removal of bindings whose value nobody reads, and of functions that nobody calls."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import error
from tvm.ir import IRModule

from ..analysis import all_global_vars
from ..analysis.dead_code import without_dead_code
from ..expr import Function
from .graph_pass import graph_pass

__all__ = ["DeadCodeElimination"]


@graph_pass("DeadCodeElimination")
def DeadCodeElimination(mod: IRModule, entry_functions: Sequence[str] | None = None) -> IRModule:
    """The module without bindings that no result depends on, and without uncalled functions.

    Parameters
    ----------
    entry_functions : functions that stay although nobody calls them, by name; those that have a
        global symbol stay in any case, and graph functions that are no single kernel unless some
        function has one.

    Raises
    ------
    ValueError : there is no such function.
    """
    functions = {
        gvar: without_dead_code(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    by_name = {str(gvar.name_hint): func for gvar, func in functions.items()}
    wanted = list(entry_functions or ())
    for name in wanted:
        if name not in by_name:
            raise error.ValueError(
                f"DeadCodeElimination: there is no function '{name}'; the functions are: "
                + ", ".join(by_name)
            )
    wanted += [n for n, f in by_name.items() if f.attrs and f.attrs.get("global_symbol")]
    if not wanted:
        wanted = [
            name
            for name, func in by_name.items()
            if isinstance(func, Function) and not func.attrs.get("Primitive", 0)
        ]
    called: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in called and name in by_name:
            called.add(name)
            func = by_name[name]
            if isinstance(func, Function):
                wanted += [str(gvar.name_hint) for gvar in all_global_vars(func)]
    kept = {gvar: func for gvar, func in functions.items() if str(gvar.name_hint) in called}
    return mod.with_functions(kept)
