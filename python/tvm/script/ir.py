"""The dialect of modules: ``from tvm.script import ir as I``."""

from __future__ import annotations

import sys
from typing import Any

from tvm import error
from tvm.ir import GlobalVar, IRModule

from .decorate import read_object

__all__ = ["GlobalVar", "ir_module", "module_attrs"]


def ir_module(cls: type) -> IRModule:
    """Decorator: the module of the functions in a class.

    Raises
    ------
    DiagnosticError : the class is not a module; the message has the place.
    """
    if not isinstance(cls, type):
        raise error.TypeError(f"I.ir_module decorates a class, got {type(cls).__name__}")
    return read_object(cls, sys._getframe(1))


def module_attrs(attrs: dict[str, Any]) -> None:
    """Attributes of the module; the decorator of the class reads them from the text."""
