"""Modules under construction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import error
from tvm.ir import BaseFunc, GlobalVar, IRModule

from .base import IRBuilder, IRBuilderFrame

__all__ = [
    "IRModuleFrame",
    "decl_function",
    "def_function",
    "ir_module",
    "lookup_global_var",
    "module_attrs",
]


class IRModuleFrame(IRBuilderFrame):
    """A module; functions that are finished inside of it become its functions."""

    def __init__(self) -> None:
        super().__init__()
        self.global_vars: dict[str, GlobalVar] = {}
        self.functions: dict[GlobalVar, BaseFunc] = {}
        self.attrs: dict[str, Any] = {}
        # Functions by the name the text has for them, which may differ from that in the module.
        self.aliases: dict[str, GlobalVar] = {}

    def closed(self) -> None:
        missing = [name for name, var in self.global_vars.items() if var not in self.functions]
        if missing:
            raise error.ValueError(f"ir_module: `{missing[0]}` is declared but not defined")
        functions = {var: self.functions[var] for var in self.global_vars.values()}
        IRBuilder.current().result = IRModule(functions, attrs=self.attrs)


def ir_module() -> IRModuleFrame:
    """A module, for a ``with``."""
    return IRModuleFrame()


def _module() -> IRModuleFrame:
    frame = IRBuilder.current().find(IRModuleFrame)
    if frame is None:
        raise error.ValueError("this belongs into a module; open `with I.ir_module():` around")
    return frame


def decl_function(name: str, signature: BaseFunc | None = None) -> GlobalVar:
    """Announce a function, so that others can call it.

    Raises
    ------
    ValueError : the module has a function of this name.
    """
    frame = _module()
    if name in frame.global_vars:
        raise error.ValueError(f"ir_module: there are two functions `{name}`")
    var = frame.global_vars[name] = GlobalVar(name)
    if signature is not None:
        frame.functions[var] = signature
    return var


def def_function(name: str, func: BaseFunc) -> GlobalVar:
    """Define a function, announced or not."""
    frame = _module()
    var = frame.global_vars.get(name) or decl_function(name)
    frame.functions[var] = func
    return var


def lookup_global_var(name: str) -> GlobalVar:
    """The variable of a function of the module.

    Raises
    ------
    ValueError : the module has no such function.
    """
    frame = _module()
    if name not in frame.global_vars:
        raise error.ValueError(f"ir_module: there is no function `{name}`")
    return frame.global_vars[name]


def module_attrs(attrs: Mapping[str, Any], allow_overwrite: bool = False) -> None:
    """Attributes of the module.

    Raises
    ------
    ValueError : an attribute is given twice, unless `allow_overwrite`.
    """
    frame = _module()
    for name, value in attrs.items():
        if name in frame.attrs and not allow_overwrite:
            raise error.ValueError(f"module_attrs: `{name}` is given twice")
        frame.attrs[name] = value
