"""Passes, under the name people look for them (`tvm.ir.transform`)."""

from __future__ import annotations

from tvm.ir.transform import (
    ApplyPassToFunction,
    ModulePass,
    Pass,
    PassContext,
    PassInfo,
    PrintIR,
    Sequential,
    module_pass,
)

__all__ = [
    "ApplyPassToFunction",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "module_pass",
]
