"""The network that plays Atari games, of Mnih et al."""

from __future__ import annotations

from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import conv2d, dense_bias

__all__ = ["get_net", "get_workload"]


def get_net(
    batch_size: int,
    num_actions: int = 18,
    image_shape: Any = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Function:
    """Three convolutions and two dense layers."""
    x: Any = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    axis = layout.index("C")
    kernel = "OIHW" if layout == "NCHW" else "HWIO"
    for k, (channels, size, stride) in enumerate([(32, 8, 4), (64, 4, 2), (64, 3, 1)], start=1):
        x = conv2d(x, f"conv{k}", channels=channels, kernel_size=(size, size),
                   strides=(stride, stride), data_layout=layout, kernel_layout=kernel)  # fmt: skip
        x = op.nn.relu(op.nn.bias_add(x, var(f"conv{k}_bias"), axis))
    x = op.nn.relu(dense_bias(op.nn.batch_flatten(x), "dense1", 512))
    out = dense_bias(x, "dense2", num_actions)
    return Function(free_vars(out), out)


def get_workload(
    batch_size: int,
    num_actions: int = 18,
    image_shape: Any = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[Any, Any]:
    """Module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
