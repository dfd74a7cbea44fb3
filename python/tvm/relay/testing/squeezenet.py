"""SqueezeNet of Iandola et al."""

from __future__ import annotations

from typing import Any

from tvm import error

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import conv2d

__all__ = ["get_net", "get_workload"]


def _conv(x: Any, name: str, channels: int, size: int, stride: int = 1, border: int = 0) -> Any:
    x = conv2d(x, name, channels=channels, kernel_size=(size, size), strides=(stride, stride),
               padding=(border, border))  # fmt: skip
    return op.nn.relu(op.nn.bias_add(x, var(f"{name}_bias")))


def _fire(x: Any, name: str, squeeze: int, expand: int) -> Any:
    x = _conv(x, f"{name}_squeeze", squeeze, 1)
    sides = [_conv(x, f"{name}_expand{size}", expand, size, 1, size // 2) for size in (1, 3)]
    return op.concatenate(sides, axis=1)


def get_net(
    batch_size: int, image_shape: Any, num_classes: int, version: str, dtype: str
) -> Function:
    """Version "1.0" or "1.1".

    Raises
    ------
    ValueError : there is no such version.
    """
    if version not in ("1.0", "1.1"):
        raise error.ValueError('relay.testing.squeezenet: version is "1.0" or "1.1"')
    x: Any = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    first = (96, 7) if version == "1.0" else (64, 3)
    pooled = (0, 3, 7) if version == "1.0" else (0, 2, 4)
    fires = [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]
    x = _conv(x, "conv1", first[0], first[1], 2)
    for k, (squeeze, expand) in enumerate(fires):
        if k in pooled:
            x = op.nn.max_pool2d(x, (3, 3), (2, 2))
        x = _fire(x, f"fire{k + 2}", squeeze, expand)
    x = _conv(op.nn.dropout(x, rate=0.5), "conv_final", num_classes, 1)
    out = op.nn.softmax(op.nn.batch_flatten(op.nn.global_avg_pool2d(x)))
    return Function(free_vars(out), out)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: Any = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """Module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
