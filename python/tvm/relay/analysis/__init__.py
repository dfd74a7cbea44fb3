"""What can be told of relay programs."""

from ..expr_functor import post_order_visit
from . import annotated_regions, sparse_conv2d, sparse_dense
from .call_graph import CallGraph
from .checks import check_constant, check_kind, well_formed
from .features import Feature, count_layers, detect_feature, get_total_mac_number, list_op_freqs
from .infer import infer_function, infer_module
from .intermediate import all_dtypes, extract_intermdeiate_expr
from .of_builds import (
    check_basic_block_normal_form,
    extract_fused_functions,
    get_calibration_data,
)
from .quantized_regions import list_fake_quantized_op_freqs
from .sparse_weights import search_fc_transpose
from .unmatched import unmatched_cases
from .variables import *
