"""Networks of Simonyan and Zisserman, "Very Deep Convolutional Networks", ICLR 2015."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import batch_norm_infer, conv2d, dense_bias

__all__ = ["get_net", "get_workload"]

_LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_CHANNELS = (64, 128, 256, 512, 512)


def _features(data: RelayExpr, num_layers: int, batch_norm: bool) -> RelayExpr:
    x = data
    for stage, (count, channels) in enumerate(zip(_LAYERS[num_layers], _CHANNELS), start=1):
        for k in range(1, count + 1):
            name = f"conv{stage}_{k}"
            x = conv2d(x, name, channels=channels, kernel_size=(3, 3), padding=(1, 1))
            x = op.nn.bias_add(x, var(f"{name}_bias"))
            if batch_norm:
                x = batch_norm_infer(x, f"bn{stage}_{k}")
            x = op.nn.relu(x)
        x = op.nn.max_pool2d(x, (2, 2), (2, 2))
    return x


def get_net(
    batch_size: int,
    image_shape: Any,
    num_classes: int,
    dtype: str,
    num_layers: int = 11,
    batch_norm: bool = False,
) -> Function:
    """A network of 11, 13, 16 or 19 layers with weights, for images in NCHW.

    Raises
    ------
    ValueError : there is none of that many layers.
    """
    if num_layers not in _LAYERS:
        raise error.ValueError(f"relay.testing.vgg: num_layers is one of {list(_LAYERS)}")
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    x = op.nn.batch_flatten(_features(data, num_layers, batch_norm))
    for name in ("fc6", "fc7"):
        x = op.nn.dropout(op.nn.relu(dense_bias(x, name, 4096)), rate=0.5)
    out = op.nn.softmax(dense_bias(x, "fc8", num_classes))
    return Function(free_vars(out), out)


def get_workload(
    batch_size: int,
    num_classes: int = 1000,
    image_shape: Any = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> tuple[Any, Any]:
    """Module and parameters of `get_net`."""
    net = get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm)
    return create_workload(net)
