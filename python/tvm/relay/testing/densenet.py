"""DenseNet of Huang et al."""

from __future__ import annotations

from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import batch_norm_infer, conv2d, dense_bias

__all__ = ["get_workload"]

_SIZES = {121: (64, 32, [6, 12, 24, 16]), 161: (96, 48, [6, 12, 36, 24]),
          169: (64, 32, [6, 12, 32, 32]), 201: (64, 32, [6, 12, 48, 32])}  # fmt: skip


def _net(
    features: int, growth: int, blocks: list[int], shape: Any, dtype: str, classes: int
) -> Function:
    x: Any = var("data", shape=shape, dtype=dtype)
    x = conv2d(x, "conv1", channels=features, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3))
    x = op.nn.relu(batch_norm_infer(x, "batch1"))
    x = op.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))
    for k, layers in enumerate(blocks):
        for layer in range(layers):
            name = f"block{k}_layer{layer}"
            y = op.nn.relu(batch_norm_infer(x, f"{name}_bn1"))
            y = conv2d(y, f"{name}_conv1", channels=4 * growth, kernel_size=(1, 1))
            y = op.nn.relu(batch_norm_infer(y, f"{name}_bn2"))
            y = conv2d(y, f"{name}_conv2", channels=growth, kernel_size=(3, 3), padding=(1, 1))
            x = op.concatenate([x, y], axis=1)
        features += layers * growth
        if k + 1 < len(blocks):
            features //= 2
            x = op.nn.relu(batch_norm_infer(x, f"transition{k}_bn"))
            x = conv2d(x, f"transition{k}_conv", channels=features, kernel_size=(1, 1))
            x = op.nn.avg_pool2d(x, (2, 2), (2, 2))
    x = op.nn.relu(batch_norm_infer(x, "batch_final"))
    x = op.nn.batch_flatten(op.nn.global_avg_pool2d(x))
    out = dense_bias(x, "dense", classes)
    return Function(free_vars(out), out)


def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: Any = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """Module and parameters of a network of 121, 161, 169 or 201 layers."""
    features, growth, blocks = _SIZES[densenet_size]
    shape = (batch_size, *image_shape)
    return create_workload(_net(features, growth, list(blocks), shape, dtype, classes))
