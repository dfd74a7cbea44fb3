"""Three dense layers."""

from __future__ import annotations

from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import dense_bias

__all__ = ["get_net", "get_workload"]


def get_net(
    batch_size: int, num_classes: int = 10, image_shape: Any = (1, 28, 28), dtype: str = "float32"
) -> Function:
    """128, 64 and `num_classes` units, with a softmax behind them."""
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    x = op.nn.relu(dense_bias(op.nn.batch_flatten(data), "fc1", 128))
    x = op.nn.relu(dense_bias(x, "fc2", 64))
    out = op.nn.softmax(dense_bias(x, "fc3", num_classes))
    return Function(free_vars(out), out)


def get_workload(batch_size: int, num_classes: int = 10, image_shape: Any = (1, 28, 28),
                 dtype: str = "float32") -> tuple[Any, Any]:  # fmt: skip
    """Module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
