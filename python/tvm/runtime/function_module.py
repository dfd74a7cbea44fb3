"""Modules put together from Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _ffi_api
from .module import Module

__all__ = ["add_function", "module_from_functions"]


def module_from_functions(
    kind: str,
    functions: Mapping[str, Callable[..., Any]],
    source: str | Callable[[], str] = "",
    fmt: str = "c",
) -> Module:
    """What a code generator written in Python returns.

    Parameters
    ----------
    kind : the module's `type_key`.
    functions : by name. A device kernel is called with the addresses of its arrays, its scalars,
        and the extents of its thread axes, all as integers and floats.
    source : what `get_source` shows, or a function that gives it when it is wanted. It is
        also what an exported library carries: register
        ``runtime.module.loadbinary_<kind>``, a function from this text to a module, to load it.
    fmt : the source's format.
    """
    return _ffi_api.ModuleFromFunctions(kind, dict(functions), source, fmt)


def add_function(module: Module, name: str, function: Callable[..., Any]) -> None:
    """Give a module of `module_from_functions` one more function, or another one of that name.

    Raises
    ------
    TypeError : the module is of another kind.
    """
    _ffi_api.FunctionModuleAdd(module, name, function)
