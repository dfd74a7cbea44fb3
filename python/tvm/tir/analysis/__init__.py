"""Questions about expressions, statements and functions."""

from __future__ import annotations

from . import analysis, blocks, bounds, memcpy, memory_constraints, purity
from .analysis import *
from .blocks import find_anchor_block, get_vtcm_compaction_passes, has_if_then_else
from .bounds import OOBChecker, calculate_allocated_bytes
from .memcpy import identify_memcpy
from .memory_constraints import (
    apply_prim_func_arg_and_result_memory_constraints,
    get_prim_func_arg_and_result_memory_constraints,
)
from .purity import assert_pure_function, is_pure_function

__all__ = [
    *analysis.__all__,
    "OOBChecker",
    "apply_prim_func_arg_and_result_memory_constraints",
    "assert_pure_function",
    "calculate_allocated_bytes",
    "find_anchor_block",
    "get_vtcm_compaction_passes",
    "has_if_then_else",
    "get_prim_func_arg_and_result_memory_constraints",
    "identify_memcpy",
    "is_pure_function",
]
