"""Questions about expressions, statements and functions."""

from __future__ import annotations

from .analysis import (
    CallEffectKind,
    calculate_workspace_bytes,
    count_nodes,
    detect_buffer_access_lca,
    estimate_tir_flops,
    expr_deep_equal,
    get_block_access_region,
    side_effect,
    undefined_vars,
    verify_compact_buffer,
    verify_gpu_code,
    verify_memory,
    verify_ssa,
    verify_well_formed,
)

__all__ = [
    "CallEffectKind",
    "calculate_workspace_bytes",
    "count_nodes",
    "detect_buffer_access_lca",
    "estimate_tir_flops",
    "expr_deep_equal",
    "get_block_access_region",
    "side_effect",
    "undefined_vars",
    "verify_gpu_code",
    "verify_memory",
    "verify_compact_buffer",
    "verify_ssa",
    "verify_well_formed",
]
