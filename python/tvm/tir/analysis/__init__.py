"""Questions about expressions, statements and functions."""

from __future__ import annotations

from . import analysis, bounds, memcpy, purity
from .analysis import *
from .bounds import OOBChecker, calculate_allocated_bytes
from .memcpy import identify_memcpy
from .purity import assert_pure_function, is_pure_function

__all__ = [
    *analysis.__all__,
    "OOBChecker",
    "assert_pure_function",
    "calculate_allocated_bytes",
    "identify_memcpy",
    "is_pure_function",
]
