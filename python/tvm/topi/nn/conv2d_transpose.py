"""Two-dimensional transposed convolution."""

from __future__ import annotations

from typing import Any

from tvm import te

from .conv import Size
from .conv_transpose import conv_transpose

__all__ = [
    "conv2d_transpose",
    "conv2d_transpose_nchw",
    "conv2d_transpose_nhwc",
    "group_conv2d_transpose_nchw",
]


def conv2d_transpose(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    output_padding: Size = 0,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Transposed convolution of two dimensions; see :func:`conv_transpose`."""
    return conv_transpose(
        data,
        weight,
        strides,
        padding,
        output_padding,
        groups,
        data_layout,
        kernel_layout,
        out_dtype,
    )


def conv2d_transpose_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size,
    padding: Any,
    out_dtype: str | None = None,
    output_padding: Size = 0,
) -> te.Tensor:
    """Transposed convolution of NCHW data with IOHW weights; see :func:`conv_transpose`."""
    return conv_transpose(
        data, weight, strides, padding, output_padding, 1, "NCHW", out_dtype=out_dtype
    )


def conv2d_transpose_nhwc(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size,
    padding: Any,
    out_dtype: str | None = None,
    output_padding: Size = 0,
) -> te.Tensor:
    """Transposed convolution of NHWC data with HWIO weights; see :func:`conv_transpose`."""
    return conv_transpose(
        data, weight, strides, padding, output_padding, 1, "NHWC", out_dtype=out_dtype
    )


def group_conv2d_transpose_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size,
    padding: Any,
    out_dtype: str | None = None,
    output_padding: Size = 0,
    groups: int = 1,
) -> te.Tensor:
    """:func:`conv2d_transpose_nchw` in groups; weights (channels, filters / groups, ...)."""
    return conv_transpose(
        data, weight, stride, padding, output_padding, groups, "NCHW", out_dtype=out_dtype
    )
