"""Convolutions of data whose channels come in front."""

from __future__ import annotations

from typing import Any

from tvm import te, topi

from ..task import get_config, template
from .tiles import Tiling, scheduled, tiled

__all__: list[str] = []

_FILTERS = ("tile_f", (2, 8, 2))
_ROWS = ("tile_y", (1, 1, 4))
_COLUMNS = ("tile_x", (1, 16, 1))
_IMAGE = (None, _FILTERS, _ROWS, _COLUMNS)
_WINDOW = (("tile_rc", 4), ("tile_ry", 3), ("tile_rx", 3))

tiled("conv2d_nchw.cuda", Tiling(_IMAGE, _WINDOW))
tiled("group_conv2d_nchw.cuda", Tiling(_IMAGE, _WINDOW))
# Each channel has a small window, so a block's operands are in shared memory all at once.
tiled(
    "depthwise_conv2d_nchw.cuda",
    Tiling((None, ("tile_f", (1, 4, 1)), ("tile_y", (1, 4, 2)), ("tile_x", (1, 16, 1)))),
)
tiled(
    "conv3d_ncdhw.cuda",
    Tiling(
        (None, _FILTERS, ("tile_d", (1, 1, 2)), _ROWS, _COLUMNS),
        (_WINDOW[0], ("tile_rd", 3), *_WINDOW[1:]),
    ),
)


@template("conv2d_nchw.cuda")
def conv2d_nchw(
    data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str
) -> Any:
    """Convolution of data (N, C, H, W) with a kernel (O, C, h, w)."""
    sizes = (strides, padding, dilation)
    return scheduled(
        get_config(),
        "conv2d_nchw.cuda",
        lambda dtype: topi.nn.conv2d_nchw(data, kernel, *sizes, dtype),
        [data, kernel],
        out_dtype,
    )


@template("group_conv2d_nchw.cuda")
def group_conv2d_nchw(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str,
) -> Any:
    """Convolution of groups of channels with a kernel (O, C / groups, h, w)."""
    sizes = (strides, padding, dilation, groups)
    return scheduled(
        get_config(),
        "group_conv2d_nchw.cuda",
        lambda dtype: topi.nn.group_conv2d_nchw(data, kernel, *sizes, dtype),
        [data, kernel],
        out_dtype,
    )


@template("depthwise_conv2d_nchw.cuda")
def depthwise_conv2d_nchw(
    data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str
) -> Any:
    """Convolution of each channel of data (N, C, H, W) with its filters, a kernel (C, M, h, w)."""
    sizes = (strides, padding, dilation)
    return scheduled(
        get_config(),
        "depthwise_conv2d_nchw.cuda",
        lambda dtype: topi.nn.depthwise_conv2d_nchw(data, kernel, *sizes, dtype),
        [data, kernel],
        out_dtype,
    )


@template("conv3d_ncdhw.cuda")
def conv3d_ncdhw(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str,
) -> Any:
    """Convolution of data (N, C, D, H, W) with a kernel (O, C, d, h, w)."""
    if groups != 1:
        raise ValueError(f"conv3d_ncdhw.cuda: channels are in one group, got {groups}")
    sizes = (strides, padding, dilation, groups)
    return scheduled(
        get_config(),
        "conv3d_ncdhw.cuda",
        lambda dtype: topi.nn.conv3d_ncdhw(data, kernel, *sizes, dtype),
        [data, kernel],
        out_dtype,
    )
