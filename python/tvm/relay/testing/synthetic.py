"""A small network that has a bit of everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import conv2d, dense_bias

__all__ = ["get_net", "get_workload"]


def get_net(input_shape: Sequence[int] = (1, 3, 24, 12), dtype: str = "float32") -> Function:
    """A convolution, a separable convolution, pooling over the whole, and a dense layer.

    Parameters
    ----------
    input_shape : (batch, channels, height, width).
    """
    data = var("data", shape=tuple(input_shape), dtype=dtype)
    channels = input_shape[1]
    x = op.nn.relu(conv2d(data, "conv1", channels=3 * channels, kernel_size=(3, 5), padding=(1, 2)))
    x = conv2d(
        x, "conv2_depthwise", channels=3 * channels, kernel_size=(3, 3), groups=3 * channels,
        padding=(1, 1),
    )  # fmt: skip
    x = op.nn.relu(conv2d(x, "conv2_pointwise", channels=2 * channels, kernel_size=(1, 1)))
    x = op.nn.batch_flatten(op.nn.global_avg_pool2d(x))
    out = op.nn.softmax(dense_bias(x, "fc", 4))
    return Function(free_vars(out), out)


def get_workload(
    input_shape: Sequence[int] = (1, 3, 24, 12), dtype: str = "float32"
) -> tuple[Any, Any]:
    """Module and parameters of `get_net`."""
    return create_workload(get_net(input_shape, dtype))
