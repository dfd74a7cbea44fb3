"""Convolution of data whose channels are stored in blocks, as vector units like to read them."""

from __future__ import annotations

from typing import Any

from tvm import te

from ..utils import as_pads, as_sizes, get_const_tuple, simplify
from .conv import Size, conv_output_size
from .pad import pad

__all__ = ["conv2d_NCHWc", "depthwise_conv2d_NCHWc"]


class _Frame:
    """Padded data, loops over the window, and where it reads."""

    def __init__(
        self, data: te.Tensor, kernel: te.Tensor, stride: Size, padding: Any, dilation: Size
    ) -> None:
        shape = get_const_tuple(data.shape)
        window = get_const_tuple(kernel.shape)[2:4]
        if len(shape) != 5 or len(kernel.shape) != 6:
            raise ValueError(
                f"topi.nn.conv2d_NCHWc: data has 5 dimensions and the kernel 6, got {shape} and "
                f"{get_const_tuple(kernel.shape)}"
            )
        self.strides, self.dilations = as_sizes(stride, 2), as_sizes(dilation, 2)
        reach = [simplify((k - 1) * d + 1) for k, d in zip(window, self.dilations)]
        pads = as_pads(padding, 2, reach)
        self.size = conv_output_size(shape[2:4], window, self.strides, pads, self.dilations)
        self.padded = pad(data, (0, 0, *pads[:2], 0), (0, 0, *pads[2:], 0))
        self.ry = te.reduce_axis((0, window[0]), name="ry")
        self.rx = te.reduce_axis((0, window[1]), name="rx")

    def read(self, n: Any, block: Any, h: Any, w: Any, lane: Any) -> Any:
        row = h * self.strides[0] + self.ry * self.dilations[0]
        column = w * self.strides[1] + self.rx * self.dilations[1]
        return self.padded(n, block, row, column, lane)


def conv2d_NCHWc(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of data with blocked channels; other arguments as in :func:`topi.nn.conv`.

    Parameters
    ----------
    data : (batch, channels / c, height, width, c).
    kernel : (filters / o, channels / c, height, width, c, o), layout-free.

    Returns
    -------
    (batch, filters / o, out height, out width, o).
    """
    frame = _Frame(data, kernel, stride, padding, dilation)
    batch, blocks, _, _, lanes = get_const_tuple(data.shape)
    out_blocks, in_blocks, _, _, in_lanes, out_lanes = get_const_tuple(kernel.shape)
    if (blocks, lanes) != (in_blocks, in_lanes):
        raise ValueError(
            f"topi.nn.conv2d_NCHWc: the data has {blocks} blocks of {lanes} channels, the kernel "
            f"{in_blocks} of {in_lanes}"
        )
    dtype = out_dtype or data.dtype
    rb = te.reduce_axis((0, blocks), name="rb")
    rc = te.reduce_axis((0, lanes), name="rc")

    def body(n: Any, f: Any, h: Any, w: Any, lane: Any) -> Any:
        value = frame.read(n, rb, h, w, rc).astype(dtype)
        factor = kernel(f, rb, frame.ry, frame.rx, rc, lane).astype(dtype)
        return te.sum(value * factor, axis=[rb, frame.ry, frame.rx, rc])

    return te.compute(
        (batch, out_blocks, *frame.size, out_lanes),
        body,
        name="conv2d_NCHWc",
        tag="conv2d_NCHWc",
        attrs={"layout_free_placeholders": [kernel]},
    )


def depthwise_conv2d_NCHWc(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of each of the blocked channels with one filter of its own.

    Parameters
    ----------
    data : (batch, channels / c, height, width, c).
    kernel : (channels / c, 1, height, width, 1, c), layout-free.
    """
    frame = _Frame(data, kernel, stride, padding, dilation)
    batch, blocks, _, _, lanes = get_const_tuple(data.shape)
    own = get_const_tuple(kernel.shape)
    if (blocks, 1, 1, lanes) != (own[0], own[1], own[4], own[5]):
        raise ValueError(
            f"topi.nn.depthwise_conv2d_NCHWc: the data has {blocks} blocks of {lanes} channels, "
            f"the kernel's shape is {own}"
        )
    dtype = out_dtype or data.dtype

    def body(n: Any, f: Any, h: Any, w: Any, lane: Any) -> Any:
        value = frame.read(n, f, h, w, lane).astype(dtype)
        factor = kernel(f, 0, frame.ry, frame.rx, 0, lane).astype(dtype)
        return te.sum(value * factor, axis=[frame.ry, frame.rx])

    return te.compute(
        (batch, blocks, *frame.size, lanes),
        body,
        name="depthwise_conv2d_NCHWc",
        tag="depthwise_conv2d_NCHWc",
        attrs={"layout_free_placeholders": [kernel]},
    )
