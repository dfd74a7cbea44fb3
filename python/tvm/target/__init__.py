"""Targets and code generation."""

from __future__ import annotations

import tvm.contrib.nvrtc
from tvm._older_names import hints_for

from . import c_build, llvm_build
from .c_dialect import CDialect
from .codegen import build_module
from .tag import list_tags, register_tag
from .target import (
    Target,
    TargetKind,
    arm_cpu,
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
    "arm_cpu",
    "build_module",
    "c_build",
    "create",
    "cuda",
    "emulated",
    "list_tags",
    "list_target_kinds",
    "llvm",
    "llvm_build",
    "register_tag",
    "register_target_kind",
]

__getattr__ = hints_for(__name__)
