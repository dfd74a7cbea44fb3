"""Passes over tensor programs."""

from __future__ import annotations

from .function_pass import prim_func_pass
from .transform import (
    HoistIfThenElse,
    LoopPartition,
    LowerIntrin,
    MakePackedAPI,
    PromoteAccumulators,
    RemoveNoOp,
    RewriteUnsafeSelect,
    Simplify,
    SkipAssert,
    StorageFlatten,
    StorageRewrite,
    UnrollLoop,
    VectorizeLoop,
    WidenIndex,
)

__all__ = [
    "HoistIfThenElse",
    "LoopPartition",
    "LowerIntrin",
    "MakePackedAPI",
    "PromoteAccumulators",
    "RemoveNoOp",
    "RewriteUnsafeSelect",
    "Simplify",
    "SkipAssert",
    "StorageFlatten",
    "StorageRewrite",
    "UnrollLoop",
    "VectorizeLoop",
    "WidenIndex",
    "prim_func_pass",
]
