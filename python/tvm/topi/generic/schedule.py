"""Default schedules by the kind of operator they are for.

They take the results of a computation and give a schedule of all of it. One serves all kinds as
long as nobody wrote a better one for a processor; the names are for programs that say what they
schedule.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from .default import default_schedule

__all__ = [
    "schedule_adaptive_pool",
    "schedule_argsort",
    "schedule_batch_matmul",
    "schedule_broadcast",
    "schedule_conv1d_ncw",
    "schedule_conv1d_nwc",
    "schedule_conv1d_transpose_ncw",
    "schedule_conv2d_hwcn",
    "schedule_conv2d_nchw",
    "schedule_conv2d_nhwc",
    "schedule_conv2d_transpose_nchw",
    "schedule_conv2d_winograd_nchw_without_weight_transform",
    "schedule_conv2d_winograd_nhwc_without_weight_transform",
    "schedule_conv3d_ncdhw",
    "schedule_conv3d_ndhwc",
    "schedule_conv3d_transpose_ncdhw",
    "schedule_dense",
    "schedule_depthwise_conv2d_nchw",
    "schedule_depthwise_conv2d_nhwc",
    "schedule_elemwise",
    "schedule_extern",
    "schedule_group_conv2d_nchw",
    "schedule_group_conv2d_nhwc",
    "schedule_injective",
    "schedule_lrn",
    "schedule_matmul",
    "schedule_pool",
    "schedule_reduce",
    "schedule_scatter",
    "schedule_softmax",
    "schedule_sort",
    "schedule_topk",
]

Outputs = te.Tensor | Sequence[te.Tensor]


def schedule_injective(outs: Outputs) -> te.Schedule:
    """Schedule of operators whose elements do not depend on one another."""
    return default_schedule(outs)


schedule_elemwise = schedule_broadcast = schedule_injective


def schedule_reduce(outs: Outputs) -> te.Schedule:
    """Schedule of reductions, and of what stands in front of and behind them."""
    return default_schedule(outs)


schedule_softmax = schedule_lrn = schedule_reduce


def schedule_pool(outs: Outputs, layout: str) -> te.Schedule:
    """Schedule of a pool; its loops follow the layout, whatever it is."""
    return default_schedule(outs)


schedule_adaptive_pool = schedule_pool


def schedule_dense(outs: Outputs) -> te.Schedule:
    """Schedule of matrix products and convolutions, and of what stands behind them."""
    return default_schedule(outs)


schedule_matmul = schedule_batch_matmul = schedule_dense
schedule_conv1d_ncw = schedule_conv1d_nwc = schedule_conv1d_transpose_ncw = schedule_dense
schedule_conv2d_nchw = schedule_conv2d_nhwc = schedule_conv2d_hwcn = schedule_dense
schedule_group_conv2d_nchw = schedule_group_conv2d_nhwc = schedule_dense
schedule_depthwise_conv2d_nchw = schedule_depthwise_conv2d_nhwc = schedule_dense
schedule_conv2d_transpose_nchw = schedule_conv3d_transpose_ncdhw = schedule_dense
schedule_conv3d_ncdhw = schedule_conv3d_ndhwc = schedule_dense
schedule_conv2d_winograd_nchw_without_weight_transform = schedule_dense
schedule_conv2d_winograd_nhwc_without_weight_transform = schedule_dense


def schedule_extern(outs: Outputs) -> te.Schedule:
    """Schedule of statements and library calls, whose own loops are as they are."""
    return default_schedule(outs)


schedule_sort = schedule_argsort = schedule_topk = schedule_scatter = schedule_extern
