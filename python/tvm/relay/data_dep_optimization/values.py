"""How a pass goes over one function."""

from __future__ import annotations

from typing import Any

import tvm
from tvm.ir.transform import Pass

from ..expr import Function

__all__ = ["Values", "through"]

Values = dict[str, Any]
"""Parameters' arrays by name."""


def through(func: Function, run: Pass) -> Function:
    """What a pass makes of a function."""
    return run(tvm.IRModule.from_expr(func))["main"]
