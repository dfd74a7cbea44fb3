"""Two-dimensional convolution: dense, grouped and depthwise."""

from __future__ import annotations

from typing import Any

from tvm import te

from ..utils import as_int
from .conv import Size, conv, depthwise_conv

__all__ = [
    "conv2d",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
]


def conv2d_nhwc(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of NHWC data with HWIO weights; arguments as in :func:`topi.nn.conv`."""
    return conv(data, weight, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype)


def conv2d_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of NCHW data with OIHW weights; arguments as in :func:`topi.nn.conv`."""
    return conv(data, weight, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype)


def conv2d_hwcn(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of HWCN data with HWIO weights; arguments as in :func:`topi.nn.conv`."""
    return conv(data, weight, stride, padding, dilation, 1, "HWCN", "HWIO", out_dtype)


def group_conv2d_nhwc(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """:func:`conv2d_nhwc` in groups; weights (height, width, channels / groups, filters)."""
    return conv(data, weight, stride, padding, dilation, groups, "NHWC", "HWIO", out_dtype)


def group_conv2d_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """:func:`conv2d_nchw` in groups; weights (filters, channels / groups, height, width)."""
    return conv(data, weight, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


def depthwise_conv2d_nhwc(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of each channel of NHWC data with filters of its own.

    Parameters
    ----------
    weight : (height, width, channels, multiplier), layout-free. Filter m of channel c gives
        channel ``c * multiplier + m``.
    """
    return depthwise_conv(data, weight, stride, padding, dilation, "NHWC", "HWOI", out_dtype)


def depthwise_conv2d_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of each channel of NCHW data with filters of its own.

    Parameters
    ----------
    weight : (channels, multiplier, height, width), layout-free.
    """
    return depthwise_conv(data, weight, stride, padding, dilation, "NCHW", "OIHW", out_dtype)


def conv2d(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
    groups: int = 1,
) -> te.Tensor:
    """Convolution in a named layout; arguments as in :func:`topi.nn.conv`.

    Parameters
    ----------
    kernel_layout : HWOI with NHWC data means depthwise, see :func:`depthwise_conv2d_nhwc`.
    """
    if (data_layout, kernel_layout) == ("NHWC", "HWOI"):
        channels = as_int(data.shape[3])
        if groups != channels:
            raise ValueError(
                "topi.nn.conv2d: kernel layout HWOI is for depthwise convolution, where groups is "
                f"the channel count {channels}; got groups {groups}"
            )
        return depthwise_conv2d_nhwc(data, weight, strides, padding, dilation, out_dtype)
    return conv(
        data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype
    )
