"""MobileNet of Howard et al."""

from __future__ import annotations

from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import batch_norm_infer, conv2d, dense_bias

__all__ = ["get_workload", "mobile_net"]

_BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2),
           (1024, 1)]  # fmt: skip


def mobile_net(
    num_classes: int = 1000,
    data_shape: Any = (1, 3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    is_shallow: bool = False,
    layout: str = "NCHW",
) -> Function:
    """Thirteen depthwise separable blocks; `alpha` scales the channels, shallow ones have eight."""
    axis = layout.index("C")

    def conv(x: Any, name: str, channels: int, size: int, stride: int, groups: int = 1) -> Any:
        kernel = "OIHW" if layout == "NCHW" else ("HWIO" if groups == 1 else "HWOI")
        x = conv2d(x, name, channels=channels, kernel_size=(size, size), strides=(stride, stride),
                   padding=(size // 2, size // 2), groups=groups, data_layout=layout,
                   kernel_layout=kernel)  # fmt: skip
        return op.nn.relu(batch_norm_infer(x, f"{name}_bn", axis))

    data = var("data", shape=data_shape, dtype=dtype)
    width = round(32 * alpha)
    x = conv(data, "conv_block_1", width, 3, 2)
    blocks = _BLOCKS[:6] + _BLOCKS[-2:] if is_shallow else _BLOCKS
    for k, (channels, stride) in enumerate(blocks, start=1):
        x = conv(x, f"separable_conv_block_{k}_depthwise", width, 3, stride, width)
        width = round(channels * alpha)
        x = conv(x, f"separable_conv_block_{k}_pointwise", width, 1, 1)
    x = op.nn.batch_flatten(op.nn.global_avg_pool2d(x, layout=layout))
    out = op.nn.softmax(dense_bias(x, "fc", num_classes))
    return Function(free_vars(out), out)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Any = (3, 224, 224),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[Any, Any]:
    """Module and parameters of `mobile_net`."""
    shape = (batch_size, *image_shape)
    return create_workload(mobile_net(num_classes, shape, dtype, layout=layout))
