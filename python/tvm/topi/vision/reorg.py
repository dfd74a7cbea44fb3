"""The rearrangement of pixels and channels that Darknet's networks make."""

from __future__ import annotations

from typing import Any

from tvm import te

from ..utils import get_const_tuple

__all__ = ["reorg"]


def reorg(data: te.Tensor, stride: int) -> te.Tensor:
    """Pixels of `stride` x `stride` squares as channels, in Darknet's order.

    Darknet takes the images for ones with `stride`**2 times fewer channels and as much more pixels,
    moves pixels of these to channels, and keeps the order of memory (``reorg_layer.c`` of Darknet).

    Parameters
    ----------
    data : (batch, channels, height, width), float or integer.

    Returns
    -------
    (batch, channels * stride**2, height / stride, width / stride).

    Raises
    ------
    ValueError : not 4 axes, or extents that the stride (of channels its square) does not divide.
    """
    shape = get_const_tuple(data.shape)
    square = stride * stride
    if len(shape) != 4 or stride < 1:
        raise ValueError(
            f"topi.vision.reorg: takes (batch, channels, height, width) and a positive stride, got "
            f"{list(shape)} and {stride}"
        )
    batch, channels, height, width = shape
    if channels % square or height % stride or width % stride:
        raise ValueError(
            f"topi.vision.reorg: a stride of {stride} needs channels that {square} divides, and "
            f"height and width that {stride} divides, got {list(shape)}"
        )
    few = channels // square

    def element(b: Any, c: Any, y: Any, x: Any) -> Any:
        # The place in memory, and where the value of this place comes from.
        place = (c * (height // stride) + y) * (width // stride) + x
        k, j, i = place // (height * width), place // width % height, place % width
        offset = k // few
        row, column = j * stride + offset // stride, i * stride + offset % stride
        source = ((k % few) * height * stride + row) * width * stride + column
        return data[b, source // (height * width), source // width % height, source % width]

    return te.compute(
        (batch, channels * square, height // stride, width // stride), element, name="reorg",
        tag="injective",
    )  # fmt: skip
