"""Names of functions in a module as the outside knows them."""

from __future__ import annotations

from tvm import error
from tvm.ir import BaseFunc, GlobalVar, IRModule, RelayExpr

from ..expr import Function
from ..expr_functor import PyExprMutator, mutator
from .graph_pass import graph_pass

__all__ = ["NormalizeGlobalVar", "rename_functions"]


@mutator
class _Renamer(PyExprMutator):
    def __init__(self, mod: IRModule, names: dict[GlobalVar, GlobalVar]) -> None:
        super().__init__(mod)
        self._names = names

    def visit_global_var_(self, op: GlobalVar) -> RelayExpr:
        return self._names.get(op, op)


def rename_functions(mod: IRModule, names: dict[GlobalVar, GlobalVar]) -> IRModule:
    """The module with functions under other names, in calls of graph functions too."""
    if not names:
        return mod
    functions = {names.get(gvar, gvar): func for gvar, func in mod.functions.items()}
    renamer = _Renamer(mod.with_functions(functions), names)
    for gvar, func in functions.items():
        if isinstance(func, Function):
            functions[gvar] = renamer.visit_expr(func)
    return mod.with_functions(functions)


def _symbol(func: BaseFunc) -> str | None:
    symbol = func.attrs.get("global_symbol", None) if func.attrs is not None else None
    return None if symbol is None else str(symbol)


def _fresh(name: str, taken: set[str]) -> str:
    number, new = 0, name
    while new in taken:
        number += 1
        new = f"{name}_{number}"
    return new


@graph_pass("NormalizeGlobalVar")
def NormalizeGlobalVar(mod: IRModule) -> IRModule:
    """The module with every public function under its ``global_symbol``.

    A private function that has that name already gets a number behind its own.

    Raises
    ------
    ValueError : two functions have one global symbol.
    """
    public: dict[str, GlobalVar] = {}
    for gvar, func in mod.functions.items():
        symbol = _symbol(func)
        if symbol is not None and public.setdefault(symbol, gvar) is not gvar:
            raise error.ValueError(
                f"NormalizeGlobalVar: {public[symbol].name_hint} and {gvar.name_hint} have the "
                f'global symbol "{symbol}"'
            )
    names: dict[GlobalVar, GlobalVar] = {}
    taken = set(public) | {str(gvar.name_hint) for gvar in mod.functions}
    for gvar, func in mod.functions.items():
        symbol, old = _symbol(func), str(gvar.name_hint)
        new = symbol if symbol is not None else _fresh(old, taken) if old in public else old
        if new != old:
            taken.add(new)
            names[gvar] = GlobalVar(new)
    return rename_functions(mod, names)
