"""Convolution of data whose channels are stored in blocks, as vector units like to read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te

from ..utils import as_pads, as_sizes, get_const_tuple, simplify
from .conv import Size, conv_output_size
from .pad import pad

__all__ = ["conv2d_NCHWc", "conv3d_NCDHWc", "depthwise_conv2d_NCHWc"]


class _Frame:
    """Padded data, loops over the window, and where it reads."""

    def __init__(
        self,
        name: str,
        data: te.Tensor,
        kernel: te.Tensor,
        stride: Size,
        padding: Any,
        dilation: Size,
        rank: int = 2,
    ) -> None:
        shape = get_const_tuple(data.shape)
        window = get_const_tuple(kernel.shape)[2 : 2 + rank]
        if len(shape) != rank + 3 or len(kernel.shape) != rank + 4:
            raise ValueError(
                f"topi.nn.{name}: data has {rank + 3} dimensions and the kernel {rank + 4}, got "
                f"{shape} and {get_const_tuple(kernel.shape)}"
            )
        self.strides, self.dilations = as_sizes(stride, rank), as_sizes(dilation, rank)
        reach = [simplify((k - 1) * d + 1) for k, d in zip(window, self.dilations)]
        pads = as_pads(padding, rank, reach)
        self.size = conv_output_size(
            shape[2 : 2 + rank], window, self.strides, pads, self.dilations
        )
        self.padded = pad(data, (0, 0, *pads[:rank], 0), (0, 0, *pads[rank:], 0))
        names = ("rz", "ry", "rx")[3 - rank :]
        self.window = [te.reduce_axis((0, k), name=loop) for k, loop in zip(window, names)]

    def read(self, n: Any, block: Any, pixel: Sequence[Any], lane: Any) -> Any:
        places = [
            at * stride + loop * dilation
            for at, stride, loop, dilation in zip(pixel, self.strides, self.window, self.dilations)
        ]
        return self.padded(n, block, *places, lane)


def _blocked_conv(
    name: str,
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Size,
    padding: Any,
    dilation: Size,
    out_dtype: str | None,
    rank: int,
) -> te.Tensor:
    frame = _Frame(name, data, kernel, stride, padding, dilation, rank)
    batch, blocks, *_, lanes = get_const_tuple(data.shape)
    out_blocks, in_blocks, *_, in_lanes, out_lanes = get_const_tuple(kernel.shape)
    if (blocks, lanes) != (in_blocks, in_lanes):
        raise ValueError(
            f"topi.nn.{name}: the data has {blocks} blocks of {lanes} channels, the kernel "
            f"{in_blocks} of {in_lanes}"
        )
    dtype = out_dtype or data.dtype
    rb = te.reduce_axis((0, blocks), name="rb")
    rc = te.reduce_axis((0, lanes), name="rc")

    def body(n: Any, f: Any, *pixel_and_lane: Any) -> Any:
        *pixel, lane = pixel_and_lane
        value = frame.read(n, rb, pixel, rc).astype(dtype)
        factor = kernel(f, rb, *frame.window, rc, lane).astype(dtype)
        return te.sum(value * factor, axis=[rb, *frame.window, rc])

    return te.compute(
        (batch, out_blocks, *frame.size, out_lanes),
        body,
        name=name,
        tag=name,
        attrs={"layout_free_placeholders": [kernel]},
        varargs_names=[*"dhw"[3 - rank :], "lane"],
    )


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
    return _blocked_conv("conv2d_NCHWc", data, kernel, stride, padding, dilation, out_dtype, rank=2)


def conv3d_NCDHWc(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of volumes with blocked channels; other arguments as in :func:`topi.nn.conv`.

    Parameters
    ----------
    data : (batch, channels / c, depth, height, width, c).
    kernel : (filters / o, channels / c, depth, height, width, c, o), layout-free.

    Returns
    -------
    (batch, filters / o, out depth, out height, out width, o).
    """
    return _blocked_conv(
        "conv3d_NCDHWc", data, kernel, stride, padding, dilation, out_dtype, rank=3
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
    frame = _Frame("depthwise_conv2d_NCHWc", data, kernel, stride, padding, dilation)
    batch, blocks, _, _, lanes = get_const_tuple(data.shape)
    own = get_const_tuple(kernel.shape)
    if (blocks, 1, 1, lanes) != (own[0], own[1], own[4], own[5]):
        raise ValueError(
            f"topi.nn.depthwise_conv2d_NCHWc: the data has {blocks} blocks of {lanes} channels, "
            f"the kernel's shape is {own}"
        )
    dtype = out_dtype or data.dtype

    def body(n: Any, f: Any, h: Any, w: Any, lane: Any) -> Any:
        value = frame.read(n, f, (h, w), lane).astype(dtype)
        factor = kernel(f, 0, *frame.window, 0, lane).astype(dtype)
        return te.sum(value * factor, axis=frame.window)

    return te.compute(
        (batch, blocks, *frame.size, lanes),
        body,
        name="depthwise_conv2d_NCHWc",
        tag="depthwise_conv2d_NCHWc",
        attrs={"layout_free_placeholders": [kernel]},
    )
