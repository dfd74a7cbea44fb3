"""Names of operator families, stored as the tag of each te stage."""

from __future__ import annotations

__all__ = [
    "ADAPTIVE_POOL",
    "BATCH_MATMUL",
    "BROADCAST",
    "COMM_REDUCE",
    "CONV2D_NCHW",
    "CONV2D_NHWC",
    "DENSE",
    "DEPTHWISE_CONV2D_NCHW",
    "DEPTHWISE_CONV2D_NHWC",
    "ELEMWISE",
    "GROUP_CONV2D_NCHW",
    "GROUP_CONV2D_NHWC",
    "INJECTIVE",
    "MATMUL",
    "PAD",
    "POOL_MAX",
    "POOL_SUM",
    "SOFTMAX",
    "is_broadcast",
    "is_injective",
]

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
CONV2D_NHWC = "conv2d_nhwc"
CONV2D_NCHW = "conv2d_nchw"
GROUP_CONV2D_NHWC = "group_conv2d_nhwc"
GROUP_CONV2D_NCHW = "group_conv2d_nchw"
DEPTHWISE_CONV2D_NHWC = "depthwise_conv2d_nhwc"
DEPTHWISE_CONV2D_NCHW = "depthwise_conv2d_nchw"
DENSE = "dense"
MATMUL = "matmul"
BATCH_MATMUL = "batch_matmul"
PAD = "injective,pad"
POOL_MAX = "pool_max"
POOL_SUM = "pool_sum"
ADAPTIVE_POOL = "adaptive_pool_sum"
SOFTMAX = "softmax"


def is_broadcast(tag: str) -> bool:
    """Whether each output element reads each operand at one place, with the same axis order."""
    return tag in (ELEMWISE, BROADCAST)


def is_injective(tag: str) -> bool:
    """Whether each output element reads each operand at one place."""
    return is_broadcast(tag) or tag.split(",")[0] == INJECTIVE
