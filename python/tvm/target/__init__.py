"""Targets and code generation."""

from __future__ import annotations

from . import llvm_build
from .codegen import build_module
from .target import (
    Target,
    TargetKind,
    create,
    cuda,
    list_target_kinds,
    llvm,
    register_target_kind,
)

__all__ = [
    "Target",
    "TargetKind",
    "build_module",
    "create",
    "cuda",
    "list_target_kinds",
    "llvm",
    "llvm_build",
    "register_target_kind",
]
