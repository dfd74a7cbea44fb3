"""Rules that turn one schedule into several."""

from .add_rfactor import AddRFactor
from .apply_custom_rule import ApplyCustomRule
from .auto_bind import AutoBind
from .auto_inline import AutoInline, InlineConstantScalars
from .cross_thread_reduction import CrossThreadReduction
from .intrinsic_tiling import MultiLevelTilingWithIntrin
from .multi_level_tiling import MultiLevelTiling, MultiLevelTilingWideVector, ReuseType
from .parallelize_vectorize_unroll import ParallelizeVectorizeUnroll
from .random_compute_location import RandomComputeLocation
from .schedule_rule import PyScheduleRule, ScheduleRule
from .tensor_core_tiling import MultiLevelTilingTensorCore

create = ScheduleRule.create
