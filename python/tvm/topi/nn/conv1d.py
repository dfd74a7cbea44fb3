"""One-dimensional convolution."""

from __future__ import annotations

from typing import Any

from tvm import te

from .conv import Size, conv
from .conv_transpose import conv_transpose

__all__ = [
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
    "group_conv1d_ncw",
    "group_conv1d_nwc",
    "group_conv1d_transpose_ncw",
]


def conv1d(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = "VALID",
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution in a named layout, NCW with OIW or NWC with WIO; see :func:`topi.nn.conv`."""
    return conv(
        data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype
    )


def conv1d_ncw(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = "VALID",
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of (batch, channels, width) data with (filters, channels, window) weights."""
    return conv(data, weight, strides, padding, dilation, 1, "NCW", "", out_dtype)


def conv1d_nwc(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = "VALID",
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of (batch, width, channels) data with (window, channels, filters) weights."""
    return conv(data, weight, strides, padding, dilation, 1, "NWC", "", out_dtype)


def group_conv1d_ncw(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = "VALID",
    dilation: Size = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """:func:`conv1d_ncw` in groups; weights (filters, channels / groups, window)."""
    return conv(data, weight, strides, padding, dilation, groups, "NCW", "", out_dtype)


def group_conv1d_nwc(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = "VALID",
    dilation: Size = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """:func:`conv1d_nwc` in groups; weights (window, channels / groups, filters)."""
    return conv(data, weight, strides, padding, dilation, groups, "NWC", "", out_dtype)


def conv1d_transpose_ncw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size,
    padding: Any,
    out_dtype: str | None = None,
    output_padding: Size = 0,
) -> te.Tensor:
    """Transposed convolution of NCW data with IOW weights; see :func:`conv_transpose`."""
    return conv_transpose(
        data, weight, stride, padding, output_padding, 1, "NCW", out_dtype=out_dtype
    )


def group_conv1d_transpose_ncw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size,
    padding: Any,
    out_dtype: str | None = None,
    output_padding: Size = 0,
    groups: int = 1,
) -> te.Tensor:
    """:func:`conv1d_transpose_ncw` in groups; weights (channels, filters / groups, window)."""
    return conv_transpose(
        data, weight, stride, padding, output_padding, groups, "NCW", out_dtype=out_dtype
    )
