"""Questions about expressions, statements and functions."""

from __future__ import annotations

from . import analysis, bounds, memcpy, memory_constraints, purity
from .analysis import *
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
    "get_prim_func_arg_and_result_memory_constraints",
    "identify_memcpy",
    "is_pure_function",
]
