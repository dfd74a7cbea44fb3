"""Residual networks over volumes, such as clips of video."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import batch_norm_infer, conv3d, dense_bias
from .resnet import UNITS

__all__ = ["get_net", "get_workload"]


def _unit(
    data: RelayExpr, filters: int, stride: int, keeps_shape: bool, name: str, deep: bool,
    layout: dict[str, str],
) -> RelayExpr:  # fmt: skip
    axis = layout["data_layout"].index("C")
    first = op.nn.relu(batch_norm_infer(data, f"{name}_bn1", axis, epsilon=2e-5))
    windows = [(1, 1, 0), (3, stride, 1), (1, 1, 0)] if deep else [(3, stride, 1), (3, 1, 1)]
    x = first
    for k, (size, step, border) in enumerate(windows, start=1):
        channels = filters if k == len(windows) or not deep else filters // 4
        if k > 1:
            x = op.nn.relu(batch_norm_infer(x, f"{name}_bn{k}", axis, epsilon=2e-5))
        x = conv3d(x, f"{name}_conv{k}", channels=channels, kernel_size=(size,) * 3,
                   strides=(step,) * 3, padding=(border,) * 3, **layout)  # fmt: skip
    if keeps_shape:
        return op.add(x, data)
    shortcut = conv3d(first, f"{name}_sc", channels=filters, kernel_size=(1, 1, 1),
                      strides=(stride,) * 3, **layout)  # fmt: skip
    return op.add(x, shortcut)


def get_net(
    batch_size: int,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Any = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
) -> Function:
    """A network of 18, 34, 50, 101 or 152 layers; the first one keeps the number of frames.

    Raises
    ------
    ValueError : there is none of that many layers.
    """
    if num_layers not in UNITS:
        raise error.ValueError(f"relay.testing.resnet_3d: num_layers is one of {list(UNITS)}")
    layouts = {"data_layout": layout, "kernel_layout": "OIDHW" if layout == "NCDHW" else "DHWIO"}
    axis, deep = layout.index("C"), num_layers >= 50
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    x = batch_norm_infer(data, "bn_data", axis, epsilon=2e-5, scale=False)
    x = conv3d(x, "conv0", channels=64, kernel_size=(3, 7, 7), strides=(1, 2, 2),
               padding=(1, 3, 3), **layouts)  # fmt: skip
    x = op.nn.relu(batch_norm_infer(x, "bn0", axis, epsilon=2e-5))
    x = op.nn.max_pool3d(x, (3, 3, 3), (2, 2, 2), padding=(1, 1, 1), layout=layout)
    for stage, units in enumerate(UNITS[num_layers], start=1):
        filters = (256 if deep else 64) * 2 ** (stage - 1)
        for unit in range(1, units + 1):
            stride = 2 if stage > 1 and unit == 1 else 1
            x = _unit(x, filters, stride, unit > 1, f"stage{stage}_unit{unit}", deep, layouts)
    x = op.nn.relu(batch_norm_infer(x, "bn1", axis, epsilon=2e-5))
    x = op.nn.batch_flatten(op.nn.global_avg_pool3d(x, layout=layout))
    out = op.nn.softmax(dense_bias(x, "fc1", num_classes))
    return Function(free_vars(out), out)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Any = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """Module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))
