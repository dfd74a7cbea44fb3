"""The dialect of graphs: ``from tvm.script import relax as R``."""

from __future__ import annotations

import builtins
from typing import Any

from .annotations import construct
from .decorate import function_decorator, macro_decorator
from .relax_names import *  # noqa: F403

function = function_decorator("R.function")
macro = macro_decorator("R.macro")


def __getattr__(name: builtins.str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'tvm.script.relax' has no attribute {name!r}")
    return construct(f"R.{name}")
