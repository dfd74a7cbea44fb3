"""Default schedules: rules that give a program a good schedule without measuring any.

Examples
--------
>>> import tvm
>>> from tvm import dlight as dl, te
>>> A = te.placeholder((32, 64), name="A")
>>> k = te.reduce_axis((0, 64), name="k")
>>> B = te.compute((32,), lambda i: te.sum(A[i, k], axis=k), name="B")
>>> mod = tvm.IRModule({"main": te.create_prim_func([A, B])})
>>> with tvm.target.Target("cuda"):
...     mod = dl.ApplyDefaultSchedule(dl.gpu.Reduction(), dl.gpu.Fallback())(mod)
>>> bool(mod["main"].attrs["tir.is_scheduled"])
True
"""

from . import base, cpu, gpu
from .base import (
    ApplyDefaultSchedule,
    BlockInfo,
    IterInfo,
    ScheduleRule,
    collect_block_iter_vars_used_in_access_region,
    collect_vars_used_in_prim_expr,
    detect_dominant_read,
    is_broadcast_epilogue,
    normalize_prim_func,
    try_inline,
    try_inline_contiguous_spatial,
)

__all__ = [
    "ApplyDefaultSchedule",
    "BlockInfo",
    "IterInfo",
    "ScheduleRule",
    "base",
    "cpu",
    "collect_block_iter_vars_used_in_access_region",
    "collect_vars_used_in_prim_expr",
    "detect_dominant_read",
    "gpu",
    "is_broadcast_epilogue",
    "normalize_prim_func",
    "try_inline",
    "try_inline_contiguous_spatial",
]
