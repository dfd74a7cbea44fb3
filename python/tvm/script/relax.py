"""The dialect of graphs: ``from tvm.script import relax as R``."""

from __future__ import annotations

from typing import Any

from .annotations import Annotation, construct
from .decorate import function_decorator

__all__ = ["Object", "Prim", "Shape", "Tensor", "Tuple", "function"]

function = function_decorator("R.function")
Tensor = Annotation("R.Tensor")
Tuple = Annotation("R.Tuple")
Shape = Annotation("R.Shape")
Prim = Annotation("R.Prim")
Object = Annotation("R.Object")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'tvm.script.relax' has no attribute {name!r}")
    return construct(f"R.{name}")
