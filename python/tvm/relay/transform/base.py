"""Passes over relay: from functions of functions or modules to passes with a name and a level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm.ir import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, module_pass, pass_decorator

from ..analysis.infer import infer_module
from ..expr import Function

__all__ = ["FunctionPass", "expression_pass", "function_pass", "relay_functions"]

FunctionPass = ModulePass
"""A pass over the functions of a module one by one."""


def relay_functions(mod: IRModule) -> list[tuple[Any, Function]]:
    """The relay functions of a module with their names."""
    return [(gv, f) for gv, f in mod.functions.items() if isinstance(f, Function)]


def _is_foreign(func: Function) -> bool:
    return func.attrs is not None and "Compiler" in func.attrs


def expression_pass(
    rewrite: Callable[..., Any], opt_level: int, name: str, required: Sequence[str] = ("InferType",)
) -> Pass:
    """A pass that rewrites each function: ``rewrite(function, module)`` gives the new one.

    Types are known before it where it requires "InferType", and always after it. Functions of other
    compilers are left alone.
    """

    @module_pass(opt_level=opt_level, name=name)
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if "InferType" in required:
            mod = infer_module(mod)
        result = mod.clone()
        for gvar, func in relay_functions(mod):
            if not _is_foreign(func):
                result[str(gvar.name_hint)] = rewrite(func, mod)
        return infer_module(result)

    return run


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> Any:
    """A pass from a function ``(Function, IRModule, PassContext) -> Function``; also a decorator.

    A class is accepted too: its instances are passes, made with the arguments of its constructor
    and run through its method ``transform_function``.

    Raises
    ------
    ValueError : opt_level is missing.
    """
    if opt_level is None:
        raise tvm.error.ValueError("relay.transform.function_pass: give opt_level")

    def pass_of(run: Callable[..., Any], pass_name: str) -> Pass:
        @module_pass(opt_level=opt_level, name=pass_name, required=list(required or ()))
        def over_functions(mod: IRModule, ctx: PassContext) -> IRModule:
            result = mod.clone()
            for gvar, func in relay_functions(mod):
                result[str(gvar.name_hint)] = run(func, mod, ctx)
            return infer_module(result)

        return over_functions

    make = pass_decorator(pass_of, "transform_function", name)
    return make if pass_func is None else make(pass_func)
