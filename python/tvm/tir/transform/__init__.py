"""Passes over tensor programs."""

from __future__ import annotations

from .function_pass import prim_func_pass
from .transform import (
    BindTarget,
    HoistIfThenElse,
    LoopPartition,
    LowerIntrin,
    LowerTVMBuiltin,
    MakePackedAPI,
    PromoteAccumulators,
    RemoveNoOp,
    RewriteUnsafeSelect,
    Simplify,
    SkipAssert,
    SplitHostDevice,
    StorageFlatten,
    StorageRewrite,
    UnrollLoop,
    VectorizeLoop,
    WidenIndex,
)

__all__ = [
    "BindTarget",
    "HoistIfThenElse",
    "LoopPartition",
    "LowerIntrin",
    "LowerTVMBuiltin",
    "MakePackedAPI",
    "PromoteAccumulators",
    "RemoveNoOp",
    "RewriteUnsafeSelect",
    "Simplify",
    "SkipAssert",
    "SplitHostDevice",
    "StorageFlatten",
    "StorageRewrite",
    "UnrollLoop",
    "VectorizeLoop",
    "WidenIndex",
    "prim_func_pass",
]
