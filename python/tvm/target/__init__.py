"""Targets and code generation."""

from __future__ import annotations

import tvm.contrib.nvrtc
from tvm._older_names import hints_for

from . import c_build, datatype, llvm_build
from .c_dialect import CDialect
from .codegen import build_module
from .compilation_config import CompilationConfig, make_compilation_config
from .generic_func import (
    GenericFunc,
    generic_func,
    get_native_generic_func,
    override_native_generic_func,
)
from .tag import list_tags, register_tag
from .target import (
    Target,
    TargetKind,
    adreno,
    arm_cpu,
    bifrost,
    create,
    cuda,
    emulated,
    intel_graphics,
    list_target_kinds,
    llvm,
    mali,
    micro,
    register_target_kind,
    riscv_cpu,
    rocm,
    vta,
)
from .virtual_device import VirtualDevice

__all__ = [
    "CDialect",
    "CompilationConfig",
    "GenericFunc",
    "Target",
    "TargetKind",
    "VirtualDevice",
    "adreno",
    "arm_cpu",
    "bifrost",
    "build_module",
    "c_build",
    "create",
    "cuda",
    "datatype",
    "emulated",
    "generic_func",
    "get_native_generic_func",
    "intel_graphics",
    "list_tags",
    "list_target_kinds",
    "llvm",
    "llvm_build",
    "make_compilation_config",
    "mali",
    "micro",
    "override_native_generic_func",
    "register_tag",
    "register_target_kind",
    "riscv_cpu",
    "rocm",
    "vta",
]

__getattr__ = hints_for(__name__)
