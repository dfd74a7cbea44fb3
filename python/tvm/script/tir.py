"""The dialect of tensor programs: ``from tvm.script import tir as T``."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from typing import Any

from tvm import error

from .decorate import function_decorator, text_around
from .ir_builder import tir as _builder
from .macro import Macro

__all__ = ["macro", "prim_func"]

prim_func = function_decorator("T.prim_func")


def macro(func: Callable[..., Any] | None = None, *, hygienic: bool = True) -> Any:
    """Decorator: a function whose body is read wherever a ``T.prim_func`` calls it.

    Parameters
    ----------
    hygienic : names in the body mean what they mean here; otherwise those of the caller come first.
    """
    frame = sys._getframe(1)

    def decorate(inner: Callable[..., Any]) -> Macro:
        if not inspect.isfunction(inner):
            raise error.TypeError(f"T.macro decorates a function, got {type(inner).__name__}")
        source, around = text_around(inner, frame)
        definition = source.tree().body[0]
        assert isinstance(definition, ast.FunctionDef)
        return Macro(source, definition, around, hygienic)

    return decorate if func is None else decorate(func)


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else getattr(_builder, name, None)
    if found is None:
        raise AttributeError(f"module 'tvm.script.tir' has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_builder)})
