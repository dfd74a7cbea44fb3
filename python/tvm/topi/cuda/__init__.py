"""Hand-written schedules for GPUs: the programs the searches are measured against."""

from . import default_schedules
from .conv2d_nchw import conv2d_nchw, schedule_conv2d_nchw
from .conv2d_nhwc_tensorcore import conv2d_nhwc_tensorcore, schedule_conv2d_nhwc_tensorcore
from .conv2d_nhwc_winograd import (
    conv2d_nhwc_winograd_direct,
    conv2d_nhwc_winograd_direct_without_weight_transform,
    schedule_conv2d_nhwc_winograd_direct,
    schedule_conv2d_nhwc_winograd_direct_without_weight_transform,
    winograd_weight_transform,
)
from .conv2d_transpose import conv2d_transpose_nchw, schedule_conv2d_transpose_nchw
from .conv3d_winograd import conv3d_ncdhw_winograd, schedule_conv3d_ncdhw_winograd
from .extern import (
    schedule_argsort,
    schedule_extern,
    schedule_scan,
    schedule_scatter,
    schedule_sort,
    schedule_topk,
)
from .gemm import GemmTile, matmul, schedule_matmul, schedule_matmul_tensorcore
from .injective import (
    schedule_broadcast,
    schedule_elemwise,
    schedule_injective,
    schedule_injective_from_existing,
)
from .reduction import schedule_reduce
from .softmax import schedule_softmax
from .tensor_intrin import (
    intrin_wmma_gemm,
    intrin_wmma_load_matrix_A,
    intrin_wmma_load_matrix_W,
    intrin_wmma_store_matrix,
)
from .tiled_sums import AxisTile, schedule_sum_by_threads, schedule_tiled_sums
