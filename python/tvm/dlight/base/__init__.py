"""What rules are made of: the pass that applies them, blocks as they see them, common steps."""

from . import analysis
from .analysis import (
    BlockInfo,
    IterInfo,
    collect_block_iter_vars_used_in_access_region,
    collect_vars_used_in_prim_expr,
    detect_dominant_read,
    get_max_shared_memory_per_block,
    get_max_threads_per_block,
    get_root_block,
    is_broadcast_epilogue,
    normalize_prim_func,
)
from .common_schedules import try_inline, try_inline_contiguous_spatial
from .schedule_rule import ScheduleRule
from .transform import ApplyDefaultSchedule

__all__ = [
    "ApplyDefaultSchedule",
    "BlockInfo",
    "IterInfo",
    "ScheduleRule",
    "analysis",
    "collect_block_iter_vars_used_in_access_region",
    "collect_vars_used_in_prim_expr",
    "detect_dominant_read",
    "get_max_shared_memory_per_block",
    "get_max_threads_per_block",
    "get_root_block",
    "is_broadcast_epilogue",
    "normalize_prim_func",
    "try_inline",
    "try_inline_contiguous_spatial",
]
