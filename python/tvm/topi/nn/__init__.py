"""Neural-network operators, written in te."""

from ..elemwise import gelu, hardsigmoid, hardswish, leaky_relu, relu, relu6, silu
from .conv2d import (
    conv2d,
    conv2d_nchw,
    conv2d_nhwc,
    conv2d_output_size,
    depthwise_conv2d_nhwc,
)
from .dense import batch_matmul, dense, matmul
from .pad import pad
from .pooling import adaptive_avg_pool2d, avg_pool2d, max_pool2d, pool2d_output_size
from .softmax import log_softmax, softmax

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool2d",
    "batch_matmul",
    "conv2d",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_output_size",
    "dense",
    "depthwise_conv2d_nhwc",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "leaky_relu",
    "log_softmax",
    "matmul",
    "max_pool2d",
    "pad",
    "pool2d_output_size",
    "relu",
    "relu6",
    "silu",
    "softmax",
]
