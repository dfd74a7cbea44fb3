"""Correlation of the neighbourhoods of two images."""

from __future__ import annotations

from typing import Any

from tvm import te

from ..utils import as_int, as_pads, get_const_tuple
from .pad import pad

__all__ = ["correlation_nchw"]


def correlation_nchw(
    data1: te.Tensor,
    data2: te.Tensor,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool = True,
) -> te.Tensor:
    """How much each patch of one image is like those around its place in another.

    After Dosovitskiy et al., "FlowNet", ICCV 2015: a result channel is a displacement, row by row.

    Parameters
    ----------
    data1, data2 : (batch, channels, height, width).
    kernel_size : height and width of patches, odd.
    max_displacement : largest displacement in either direction.
    stride1 : step between patches of `data1`; stride2 : between displacements.
    is_multiply : mean of the products; otherwise of the absolute differences.

    Returns
    -------
    (batch, displacements ** 2, rows, columns).

    Raises
    ------
    ValueError : the kernel is even, or no patch fits.
    """
    if kernel_size % 2 == 0:
        raise ValueError(f"topi.nn.correlation_nchw: kernel_size is odd, got {kernel_size}")
    batch, channels, height, width = (as_int(n) for n in get_const_tuple(data1.shape))
    top, left, bottom, right = (as_int(n) for n in as_pads(padding, 2))
    first, second = (
        pad(data, [0, 0, top, left], [0, 0, bottom, right], name=f"padded_{data.op.name}")
        for data in (data1, data2)
    )
    radius = kernel_size // 2
    reach = max_displacement // stride2
    side = 2 * reach + 1
    border = max_displacement + radius
    rows, columns = (
        -(-(extent - 2 * border) // stride1)
        for extent in (height + top + bottom, width + left + right)
    )
    if rows < 1 or columns < 1:
        raise ValueError(
            f"topi.nn.correlation_nchw: patches of {kernel_size} displaced by {max_displacement} "
            f"do not fit into {height} x {width} with padding {padding}"
        )
    c = te.reduce_axis((0, channels), name="c")
    y = te.reduce_axis((0, kernel_size), name="y")
    x = te.reduce_axis((0, kernel_size), name="x")
    size = channels * kernel_size**2

    def compare(n: Any, q: Any, i: Any, j: Any) -> Any:
        row = i * stride1 + max_displacement + y
        column = j * stride1 + max_displacement + x
        a = first[n, c, row, column]
        b = second[n, c, row + (q // side - reach) * stride2, column + (q % side - reach) * stride2]
        return te.sum((a * b if is_multiply else te.abs(a - b)) / size, axis=[c, y, x])

    return te.compute(
        (batch, side * side, rows, columns), compare, name="T_correlation", tag="correlation_nchw"
    )
