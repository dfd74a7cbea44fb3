"""The dialect of tensor programs: ``from tvm.script import tir as T``."""

from __future__ import annotations

from typing import Any

from .decorate import function_decorator, macro_decorator
from .ir_builder import tir as _builder

__all__ = ["macro", "prim_func"]

prim_func = function_decorator("T.prim_func", ("private", "check_well_formed"))
macro = macro_decorator("T.macro")


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else getattr(_builder, name, None)
    if found is None:
        raise AttributeError(f"module 'tvm.script.tir' has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_builder)})
