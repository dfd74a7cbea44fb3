"""Questions about graph modules."""

from ..expr_functor import post_order_visit
from ..struct_info_relations import (
    BaseCheckResult,
    definable_tir_vars_in_struct_info,
    derive_call_ret_struct_info,
    erase_to_well_defined,
    get_static_type,
    struct_info_base_check,
    struct_info_lca,
    tir_vars_in_struct_info,
)
from .dataflow_memory import alias_analysis, inplace_opportunities, liveness_ranges
from .dead_code import remove_all_unused
from .estimate_memory_usage import estimate_memory_usage
from .layout_transforms import suggest_layout_transforms
from .purity import contains_impure_call, find_impure_call
from .reshape_pattern import has_reshape_pattern
from .variables import *
from .well_formed import *
