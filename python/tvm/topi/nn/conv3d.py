"""Three-dimensional convolution."""

from __future__ import annotations

from typing import Any

from tvm import te

from .conv import Size, conv
from .conv_transpose import conv_transpose

__all__ = [
    "conv3d",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "group_conv3d_transpose_ncdhw",
]


def conv3d(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCDHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution in a named layout, NCDHW with OIDHW or NDHWC with DHWIO."""
    return conv(
        data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype
    )


def conv3d_ncdhw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of (batch, channels, depth, height, width) data with OIDHW weights."""
    return conv(data, weight, stride, padding, dilation, groups, "NCDHW", "", out_dtype)


def conv3d_ndhwc(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of (batch, depth, height, width, channels) data with DHWIO weights."""
    return conv(data, weight, stride, padding, dilation, groups, "NDHWC", "", out_dtype)


def conv3d_transpose_ncdhw(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size,
    padding: Any,
    out_dtype: str | None = None,
    output_padding: Size = 0,
) -> te.Tensor:
    """Transposed convolution of NCDHW data with IODHW weights; see :func:`conv_transpose`."""
    return conv_transpose(
        data, weight, strides, padding, output_padding, 1, "NCDHW", out_dtype=out_dtype
    )


def group_conv3d_transpose_ncdhw(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size,
    padding: Any,
    out_dtype: str | None = None,
    output_padding: Size = 0,
    groups: int = 1,
) -> te.Tensor:
    """:func:`conv3d_transpose_ncdhw` in groups; weights (channels, filters / groups, ...)."""
    return conv_transpose(
        data, weight, strides, padding, output_padding, groups, "NCDHW", out_dtype=out_dtype
    )
