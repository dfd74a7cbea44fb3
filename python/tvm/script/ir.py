"""The dialect of modules: ``from tvm.script import ir as I``."""

from __future__ import annotations

import sys
from typing import Any

from tvm import error
from tvm.ir import GlobalVar, IRModule, Range

from .decorate import read_object
from .ir_builder.ir import dummy_global_info, vdevice

__all__ = [
    "GlobalVar",
    "Range",
    "dummy_global_info",
    "ir_module",
    "module_attrs",
    "module_global_infos",
    "vdevice",
]


def ir_module(cls: type | None = None, *, check_well_formed: bool = True) -> Any:
    """Decorator: the module of the functions in a class.

    Parameters
    ----------
    check_well_formed : refuse tensor programs whose variables are not bound once before their use.

    Raises
    ------
    DiagnosticError : the class is not a module; the message has the place.
    """
    frame = sys._getframe(1)

    def decorate(thing: type) -> IRModule:
        if not isinstance(thing, type):
            raise error.TypeError(f"I.ir_module decorates a class, got {type(thing).__name__}")
        module = read_object(thing, frame, check_well_formed)
        module.__name__ = thing.__name__
        return module

    return decorate if cls is None else decorate(cls)


def module_attrs(attrs: dict[str, Any]) -> None:
    """Attributes of the module; the decorator of the class reads them from the text."""


def module_global_infos(global_infos: dict[str, Any]) -> None:
    """Global information of the module, read from the text like its attributes.

    >>> I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0)]})
    """
