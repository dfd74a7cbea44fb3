"""The generator of Radford et al."""

from __future__ import annotations

from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload
from .layers import batch_norm_infer, conv2d_transpose

__all__ = ["get_net", "get_workload"]


def get_net(
    batch_size: int,
    random_len: int = 100,
    oshape: Any = (3, 64, 64),
    ngf: int = 128,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """From a random vector to an image, by transposed convolutions that double its sides."""
    axis = layout.index("C")
    kernel = "IOHW" if layout == "NCHW" else "HWIO"
    data = var("data", dtype=dtype, shape=(batch_size, random_len))
    x: Any = op.nn.dense(data, var("dense_weight"), units=4 * 4 * ngf * 8)
    shape = [ngf * 8, 4, 4] if layout == "NCHW" else [4, 4, ngf * 8]
    x = op.nn.relu(op.reshape(x, newshape=(-1, *shape)))
    for k, channels in enumerate((ngf * 4, ngf * 2, ngf), start=2):
        x = conv2d_transpose(x, f"g{k}", channels=channels, kernel_size=(4, 4), strides=(2, 2),
                             padding=(1, 1), data_layout=layout, kernel_layout=kernel)  # fmt: skip
        x = op.nn.relu(batch_norm_infer(x, f"g{k}_bn", axis, epsilon=1e-5, scale=False))
    x = conv2d_transpose(x, "g5", channels=oshape[0], kernel_size=(4, 4), strides=(2, 2),
                         padding=(1, 1), data_layout=layout, kernel_layout=kernel)  # fmt: skip
    out = op.tanh(x)
    return Function(free_vars(out), out)


def get_workload(
    batch_size: int, oshape: Any = (3, 64, 64), ngf: int = 128, random_len: int = 100,
    layout: str = "NCHW", dtype: str = "float32",
) -> tuple[Any, Any]:  # fmt: skip
    """Module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, layout, dtype))
