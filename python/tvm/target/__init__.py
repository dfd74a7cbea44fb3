"""Targets and code generation."""

from __future__ import annotations

import tvm.contrib.nvrtc

from . import c_build, llvm_build
from .c_dialect import CDialect
from .codegen import build_module
from .target import (
    Target,
    TargetKind,
    create,
    cuda,
    emulated,
    list_target_kinds,
    llvm,
    register_target_kind,
)

__all__ = [
    "CDialect",
    "Target",
    "TargetKind",
    "build_module",
    "c_build",
    "create",
    "cuda",
    "emulated",
    "list_target_kinds",
    "llvm",
    "llvm_build",
    "register_target_kind",
]
