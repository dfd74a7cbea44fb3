"""Questions about expressions, statements and functions."""

from __future__ import annotations

from .analysis import (
    CallEffectKind,
    count_nodes,
    expr_deep_equal,
    side_effect,
    undefined_vars,
    verify_gpu_code,
    verify_memory,
    verify_ssa,
    verify_well_formed,
)

__all__ = [
    "CallEffectKind",
    "count_nodes",
    "expr_deep_equal",
    "side_effect",
    "undefined_vars",
    "verify_gpu_code",
    "verify_memory",
    "verify_ssa",
    "verify_well_formed",
]
