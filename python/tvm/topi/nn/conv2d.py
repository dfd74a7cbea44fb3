"""Two-dimensional convolution: dense, grouped and depthwise, in NHWC and NCHW."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from .. import tag
from ..utils import as_padding, as_pair, const_shape
from .pad import pad

__all__ = ["conv2d", "conv2d_nchw", "conv2d_nhwc", "conv2d_output_size", "depthwise_conv2d_nhwc"]

Size = int | Sequence[int]


def conv2d_output_size(
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[int, int]:
    """(height, width) of the result.

    Raises
    ------
    ValueError : the kernel, dilated, is larger than the padded input.
    """
    result = []
    for k in range(2):
        reach = (kernel[k] - 1) * dilation[k] + 1
        padded = size[k] + padding[k] + padding[k + 2]
        if padded < reach:
            raise ValueError(
                f"topi.nn.conv2d: a kernel of {tuple(kernel)} with dilation {tuple(dilation)} "
                f"does not fit an input of {tuple(size)} padded by {tuple(padding)}"
            )
        result.append((padded - reach) // stride[k] + 1)
    return result[0], result[1]


def _check_channels(where: str, channels: int, per_group: int, filters: int, groups: int) -> None:
    if channels != per_group * groups or filters % groups:
        raise ValueError(
            f"topi.nn.{where}: {groups} groups of {per_group} input channels and {filters} output "
            f"channels do not fit an input of {channels} channels"
        )


def conv2d_nhwc(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> te.Tensor:
    """Convolution of NHWC data with HWIO weights.

    Parameters
    ----------
    data : (batch, height, width, in_channels).
    weight : (kernel height, kernel width, in_channels / groups, out_channels). Its layout may be
        changed by a schedule, so it is named in the stage's ``layout_free_placeholders``.
    padding : one size, (height, width) or (top, left, bottom, right); no pad stage without any.
    groups : with one input channel a group this is :func:`depthwise_conv2d_nhwc`.

    Raises
    ------
    ValueError : channels, groups and weight do not fit, or the kernel is larger than the input.
    """
    batch, height, width, channels = const_shape(data.shape)
    kernel_h, kernel_w, per_group, filters = const_shape(weight.shape)
    _check_channels("conv2d_nhwc", channels, per_group, filters, groups)
    stride_h, stride_w = as_pair(stride)
    dilation_h, dilation_w = as_pair(dilation)
    borders = as_padding(padding)
    out_h, out_w = conv2d_output_size(
        (height, width), (kernel_h, kernel_w), (stride_h, stride_w), borders,
        (dilation_h, dilation_w),
    )  # fmt: skip
    padded = pad(data, (0, borders[0], borders[1], 0), (0, borders[2], borders[3], 0))
    ry = te.reduce_axis((0, kernel_h), name="ry")
    rx = te.reduce_axis((0, kernel_w), name="rx")
    rc = te.reduce_axis((0, per_group), name="rc")
    group_filters = filters // groups

    def body(n, h, w, f):
        channel = rc if groups == 1 else f // group_filters * per_group + rc
        return te.sum(
            padded(n, h * stride_h + ry * dilation_h, w * stride_w + rx * dilation_w, channel)
            * weight(ry, rx, rc, f),
            axis=[ry, rx, rc],
        )

    return te.compute(
        (batch, out_h, out_w, filters),
        body,
        name="conv2d_nhwc" if groups == 1 else "group_conv2d_nhwc",
        tag=tag.CONV2D_NHWC if groups == 1 else tag.GROUP_CONV2D_NHWC,
        attrs={"layout_free_placeholders": [weight]},
    )


def depthwise_conv2d_nhwc(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
) -> te.Tensor:
    """Convolution of each channel of NHWC data with filters of its own.

    Parameters
    ----------
    data : (batch, height, width, channels).
    weight : (kernel height, kernel width, channels, multiplier), layout-free. Output channel
        ``c * multiplier + m`` is filter m of channel c.
    """
    batch, height, width, channels = const_shape(data.shape)
    kernel_h, kernel_w, filter_channels, multiplier = const_shape(weight.shape)
    _check_channels("depthwise_conv2d_nhwc", channels, 1, filter_channels, channels)
    stride_h, stride_w = as_pair(stride)
    dilation_h, dilation_w = as_pair(dilation)
    borders = as_padding(padding)
    out_h, out_w = conv2d_output_size(
        (height, width), (kernel_h, kernel_w), (stride_h, stride_w), borders,
        (dilation_h, dilation_w),
    )  # fmt: skip
    padded = pad(data, (0, borders[0], borders[1], 0), (0, borders[2], borders[3], 0))
    ry = te.reduce_axis((0, kernel_h), name="ry")
    rx = te.reduce_axis((0, kernel_w), name="rx")

    def body(n, h, w, f):
        channel = f if multiplier == 1 else f // multiplier
        which = 0 if multiplier == 1 else f % multiplier
        return te.sum(
            padded(n, h * stride_h + ry * dilation_h, w * stride_w + rx * dilation_w, channel)
            * weight(ry, rx, channel, which),
            axis=[ry, rx],
        )

    return te.compute(
        (batch, out_h, out_w, channels * multiplier),
        body,
        name="depthwise_conv2d_nhwc",
        tag=tag.DEPTHWISE_CONV2D_NHWC,
        attrs={"layout_free_placeholders": [weight]},
    )


def conv2d_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> te.Tensor:
    """Convolution of NCHW data with OIHW weights; arguments as in :func:`conv2d_nhwc`.

    Parameters
    ----------
    data : (batch, in_channels, height, width).
    weight : (out_channels, in_channels / groups, kernel height, kernel width), layout-free.
    """
    batch, channels, height, width = const_shape(data.shape)
    filters, per_group, kernel_h, kernel_w = const_shape(weight.shape)
    _check_channels("conv2d_nchw", channels, per_group, filters, groups)
    stride_h, stride_w = as_pair(stride)
    dilation_h, dilation_w = as_pair(dilation)
    borders = as_padding(padding)
    out_h, out_w = conv2d_output_size(
        (height, width), (kernel_h, kernel_w), (stride_h, stride_w), borders,
        (dilation_h, dilation_w),
    )  # fmt: skip
    padded = pad(data, (0, 0, borders[0], borders[1]), (0, 0, borders[2], borders[3]))
    rc = te.reduce_axis((0, per_group), name="rc")
    ry = te.reduce_axis((0, kernel_h), name="ry")
    rx = te.reduce_axis((0, kernel_w), name="rx")
    group_filters = filters // groups

    def body(n, f, h, w):
        channel = rc if groups == 1 else f // group_filters * per_group + rc
        return te.sum(
            padded(n, channel, h * stride_h + ry * dilation_h, w * stride_w + rx * dilation_w)
            * weight(f, rc, ry, rx),
            axis=[rc, ry, rx],
        )

    if groups == 1:
        family = tag.CONV2D_NCHW
    else:
        family = tag.DEPTHWISE_CONV2D_NCHW if per_group == 1 else tag.GROUP_CONV2D_NCHW
    return te.compute(
        (batch, filters, out_h, out_w),
        body,
        name=family,
        tag=family,
        attrs={"layout_free_placeholders": [weight]},
    )


def conv2d(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    data_layout: str = "NHWC",
    kernel_layout: str = "",
    groups: int = 1,
) -> te.Tensor:
    """Convolution in a named layout: NHWC with HWIO (HWOI when depthwise), or NCHW with OIHW.

    Raises
    ------
    ValueError : another layout.
    """
    layouts = (data_layout, kernel_layout or {"NHWC": "HWIO", "NCHW": "OIHW"}.get(data_layout, ""))
    if layouts == ("NHWC", "HWIO"):
        return conv2d_nhwc(data, weight, strides, padding, dilation, groups)
    if layouts == ("NHWC", "HWOI"):
        if groups != const_shape(data.shape)[3]:
            raise ValueError(
                "topi.nn.conv2d: kernel layout HWOI is for depthwise convolution, where groups is "
                f"the channel count {const_shape(data.shape)[3]}; got groups {groups}"
            )
        return depthwise_conv2d_nhwc(data, weight, strides, padding, dilation)
    if layouts == ("NCHW", "OIHW"):
        return conv2d_nchw(data, weight, strides, padding, dilation, groups)
    raise ValueError(
        f"topi.nn.conv2d: no layout {layouts[0]} with {layouts[1]}; use NHWC with HWIO or HWOI, or "
        "NCHW with OIHW"
    )
