"""The dialect of tensor programs: ``from tvm.script import tir as T``."""

from __future__ import annotations

from typing import Any

from .annotations import Annotation, ScalarType, construct
from .decorate import function_decorator
from .tir_types import is_dtype

__all__ = ["Buffer", "handle", "prim_func"]

prim_func = function_decorator("T.prim_func")
Buffer = Annotation("T.Buffer")
handle = Annotation("T.handle")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'tvm.script.tir' has no attribute {name!r}")
    return ScalarType(name) if is_dtype(name) else construct(f"T.{name}")
