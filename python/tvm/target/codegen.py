"""Code generation by the target's kind."""

from __future__ import annotations

from typing import Any

from tvm.runtime import Module

from . import _ffi_api
from .machine import llvm
from .target import Target

__all__ = ["build_module", "llvm_version_major"]


def build_module(mod: Any, target: Any) -> Module:
    """Generate code for a lowered module with the generator ``target.build.<kind>``.

    Parameters
    ----------
    mod : IRModule, or one PrimFunc, already lowered for the target.
    target : Target, or anything `Target` accepts.

    Raises
    ------
    ValueError : no generator is registered for the target's kind.
    """
    from tvm.ir import IRModule

    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    if not isinstance(target, Target):
        target = Target(target)
    return _ffi_api.Build(mod, target)


def llvm_version_major() -> int:
    """First number of the version of LLVM that compiles for processors."""
    return int(llvm.llvm_version_info[0])
