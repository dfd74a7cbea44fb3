"""Functions for other compilers as modules that those make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import error
from tvm.ir import BaseFunc, GlobalVar, IRModule, RelayExpr

from ..analysis import all_global_vars
from ..expr import Call, Constant, Function
from ..expr_functor import PyExprMutator, post_order_visit
from ..op import call_dps_packed
from .attach_extern import EXTERN_MODULES
from .graph_pass import graph_pass

__all__ = ["RunCodegen"]


class _Calls(PyExprMutator):
    """Calls of functions for a compiler become calls of functions of its module."""

    def __init__(self, mod: IRModule, symbols: Mapping[str, str]) -> None:
        super().__init__(mod)
        self._symbols = symbols

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or not isinstance(call.op, GlobalVar):
            return call
        symbol = self._symbols.get(str(call.op.name_hint))
        if symbol is None:
            return call
        return call_dps_packed(symbol, list(call.args), op.struct_info)


def _compiled(
    codegen: str, functions: Sequence[Function], options: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The modules of a compiler, and the constants of its functions by name."""
    compiler = tvm.get_global_func(f"relax.ext.{codegen}", allow_missing=True)
    if compiler is None:
        raise error.ValueError(
            f"RunCodegen: nothing compiles functions for '{codegen}'; register a function from "
            "(functions, options, names of constants) to modules as "
            f"'relax.ext.{codegen}'"
        )
    names: dict[RelayExpr, str] = {}
    constants: dict[str, Any] = {}

    def look(expr: RelayExpr) -> None:
        if isinstance(expr, Constant) and expr not in names:
            names[expr] = f"{codegen}_{symbol}_const_{len(names)}"
            constants[names[expr]] = expr.data

    for function in functions:
        symbol = str(function.attrs["global_symbol"])
        post_order_visit(function, look)
    return list(compiler(list(functions), dict(options), names)), constants


@graph_pass("RunCodegen")
def RunCodegen(
    mod: IRModule,
    target_options: Mapping[str, Mapping[str, Any]] | None = None,
    entry_functions: Sequence[str] | None = None,
) -> IRModule:
    """The module without its functions of attribute "Codegen", which other compilers have compiled.

    What calls them calls functions of the runtime instead (``call_dps_packed``). The compilers'
    modules are the attribute "external_mods" of the module, which `relax.build` links into what it
    builds; "const_name_to_constant" has the constants that they know by name.

    Parameters
    ----------
    target_options : for each compiler, settings that it gets.
    entry_functions : functions that stay although nothing calls them; those with a global symbol
        do in any case.

    Raises
    ------
    ValueError : there is no such compiler: no global function ``relax.ext.<name>``, which takes the
        functions, the settings and the names of their constants, and gives modules.
    """
    by_compiler: dict[str, list[Function]] = {}
    symbols: dict[str, str] = {}
    for gvar, func in mod.functions.items():
        codegen = func.attrs.get("Codegen") if isinstance(func, Function) else None
        if codegen is not None:
            symbols[str(gvar.name_hint)] = str(func.attrs.get("global_symbol", str(gvar.name_hint)))
            by_compiler.setdefault(str(codegen), []).append(
                func.with_attr("global_symbol", symbols[str(gvar.name_hint)])
            )
    if not symbols:
        return mod
    modules: list[Any] = list((mod.attrs or {}).get(EXTERN_MODULES, ()))
    constants = dict((mod.attrs or {}).get("const_name_to_constant", {}))
    for codegen, functions in by_compiler.items():
        made, own = _compiled(codegen, functions, (target_options or {}).get(codegen, {}))
        modules += made
        constants.update(own)
    calls = _Calls(mod, symbols)
    kept: dict[GlobalVar, BaseFunc] = {}
    for gvar, func in mod.functions.items():
        if str(gvar.name_hint) not in symbols:
            kept[gvar] = calls.visit_expr(func) if isinstance(func, Function) else func
    attrs: dict[str, Any] = {EXTERN_MODULES: modules}
    if constants:
        attrs["const_name_to_constant"] = constants
    return mod.with_functions(_called(kept, entry_functions or ())).with_attrs(attrs)


def _called(
    functions: Mapping[GlobalVar, BaseFunc], entries: Sequence[str]
) -> dict[GlobalVar, BaseFunc]:
    """The functions that have a global symbol or are called, by others that stay."""
    by_name = {str(gvar.name_hint): func for gvar, func in functions.items()}
    wanted = [n for n, f in by_name.items() if n in entries or f.attrs.get("global_symbol")]
    reached: set[str] = set()
    while wanted:
        name = wanted.pop()
        func = by_name.get(name)
        if name not in reached and func is not None:
            reached.add(name)
            if isinstance(func, Function):
                wanted += [str(gvar.name_hint) for gvar in all_global_vars(func)]
    return {gvar: func for gvar, func in functions.items() if str(gvar.name_hint) in reached}
