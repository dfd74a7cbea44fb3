"""Hand-written schedules for processors: the programs the searches are measured against."""

from . import default_schedules, packed_weights
from .attention import schedule_head_attention
from .conv2d import (
    RegisterTile,
    conv2d_nhwc_packed,
    depthwise_conv2d_nhwc_packed,
    pack_conv2d_weight,
    schedule_conv2d_nhwc_packed,
    schedule_depthwise_conv2d_nhwc_packed,
)
from .conv2d_blocked import (
    BlockedTile,
    schedule_conv2d_NCHWc,
    schedule_depthwise_conv2d_NCHWc,
)
from .conv2d_winograd import (
    conv2d_nhwc_winograd_packed,
    pack_winograd_weight,
    schedule_conv2d_nhwc_winograd_packed,
    schedule_winograd_input_transform,
    schedule_winograd_output_transform,
)
from .dense import (
    matmul_packed,
    pack_matmul_weight,
    schedule_dense_panels,
    schedule_matmul_dot,
    schedule_matmul_packed,
)
from .injective import schedule_injective
from .packed_weights import pack_dense_weight
from .reduction import schedule_reduce_columns, schedule_reduce_rows
from .row_normalization import is_row_function, schedule_row_function
from .softmax import schedule_softmax
from .strassen import schedule_strassen_product
