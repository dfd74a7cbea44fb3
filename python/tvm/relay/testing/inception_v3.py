"""Inception of Szegedy et al., "Rethinking the Inception Architecture", 2015."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import conv_bn_relu, dense_bias

__all__ = ["get_net", "get_workload"]

# A layer: channels, kernel, and by choice stride; a branch is a list of them.
Layer = tuple[int, tuple[int, int]] | tuple[int, tuple[int, int], int]


def _conv(x: Any, name: str, layer: Layer, pad: bool = True) -> Any:
    channels, kernel, *stride = layer
    steps = stride[0] if stride else 1
    padding = tuple(k // 2 for k in kernel) if pad and steps == 1 else (0, 0)
    return conv_bn_relu(
        x, name, channels=channels, kernel_size=kernel, strides=(steps, steps), padding=padding
    )


def _branch(x: Any, name: str, layers: Sequence[Layer]) -> Any:
    for k, layer in enumerate(layers):
        x = _conv(x, f"{name}_{k}", layer)
    return x


def _around(x: Any) -> Any:
    """Means of three by three values, as many as there are."""
    return op.nn.avg_pool2d(x, (3, 3), (1, 1), padding=(1, 1), count_include_pad=False)


def _split(x: Any, name: str, stem: Sequence[Layer], tails: Sequence[Layer]) -> list[Any]:
    """One branch whose last layers stand side by side."""
    x = _branch(x, f"{name}_stem", stem)
    return [_conv(x, f"{name}_tail{k}", layer) for k, layer in enumerate(tails)]


_ONE, _THREE, _FIVE, _ROW, _COLUMN = (1, 1), (3, 3), (5, 5), (1, 7), (7, 1)


def _mixed_35(x: Any, name: str, pooled: int) -> Any:
    branches = [[(64, _ONE)], [(48, _ONE), (64, _FIVE)], [(64, _ONE), (96, _THREE), (96, _THREE)]]
    parts = [_branch(x, f"{name}_b{k}", layers) for k, layers in enumerate(branches)]
    return op.concatenate([*parts, _branch(_around(x), f"{name}_pool", [(pooled, _ONE)])], axis=1)


def _mixed_17(x: Any, name: str, width: int) -> Any:
    branches: list[list[Layer]] = [
        [(192, _ONE)],
        [(width, _ONE), (width, _ROW), (192, _COLUMN)],
        [(width, _ONE), (width, _COLUMN), (width, _ROW), (width, _COLUMN), (192, _ROW)],
    ]
    parts = [_branch(x, f"{name}_b{k}", layers) for k, layers in enumerate(branches)]
    return op.concatenate([*parts, _branch(_around(x), f"{name}_pool", [(192, _ONE)])], axis=1)


def _mixed_8(x: Any, name: str) -> Any:
    thin: list[Layer] = [(384, (1, 3)), (384, (3, 1))]
    parts = [
        _branch(x, f"{name}_b0", [(320, _ONE)]),
        *_split(x, f"{name}_b1", [(384, _ONE)], thin),
        *_split(x, f"{name}_b2", [(448, _ONE), (384, _THREE)], thin),
        _branch(_around(x), f"{name}_pool", [(192, _ONE)]),
    ]
    return op.concatenate(parts, axis=1)


def _smaller(x: Any, name: str, branches: Sequence[Sequence[Layer]]) -> Any:
    """Half the height and width: branches that end with steps of two, and maxima."""
    parts = [_branch(x, f"{name}_b{k}", layers) for k, layers in enumerate(branches)]
    return op.concatenate([*parts, op.nn.max_pool2d(x, (3, 3), (2, 2))], axis=1)


def get_net(
    batch_size: int, num_classes: int, image_shape: Sequence[int], dtype: str = "float32"
) -> Function:
    """The network as a function of images and its weights."""
    x: Any = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    x = _conv(x, "conv", (32, _THREE, 2))
    x = _conv(x, "conv_1", (32, _THREE), pad=False)
    x = op.nn.max_pool2d(_conv(x, "conv_2", (64, _THREE)), (3, 3), (2, 2))
    x = _conv(_conv(x, "conv_3", (80, _ONE)), "conv_4", (192, _THREE), pad=False)
    x = op.nn.max_pool2d(x, (3, 3), (2, 2))
    for k, pooled in enumerate((32, 64, 64)):
        x = _mixed_35(x, f"mixed_{k}", pooled)
    x = _smaller(x, "mixed_3", [[(384, _THREE, 2)], [(64, _ONE), (96, _THREE), (96, _THREE, 2)]])
    for k, width in enumerate((128, 160, 160, 192), 4):
        x = _mixed_17(x, f"mixed_{k}", width)
    long: list[Layer] = [(192, _ONE), (192, _ROW), (192, _COLUMN), (192, _THREE, 2)]
    x = _smaller(x, "mixed_8", [[(192, _ONE), (320, _THREE, 2)], long])
    for k in (9, 10):
        x = _mixed_8(x, f"mixed_{k}")
    x = op.nn.batch_flatten(op.nn.global_avg_pool2d(x))
    out = op.nn.softmax(dense_bias(x, "fc1", num_classes))
    return Function(free_vars(out), out)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 299, 299),
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """Module and parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
