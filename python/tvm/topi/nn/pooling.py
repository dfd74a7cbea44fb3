"""Pooling over windows of any number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import (
    Extent,
    as_int,
    as_pads,
    as_sizes,
    equal_const_int,
    get_const_tuple,
    is_constant,
    largest,
    quotient,
    simplify,
    smallest,
)
from .conv import Size, spatial_letters
from .pad import pad

__all__ = [
    "avg_pool2d",
    "global_pool",
    "max_pool2d",
    "pool1d",
    "pool2d",
    "pool3d",
    "pool_output_size",
]


def spatial_axes(layout: str, rank: int) -> list[int]:
    """Positions of the spatial dimensions in D, H, W order.

    Raises
    ------
    ValueError : the layout does not have ``rank`` of them.
    """
    letters = "DHW"[3 - rank :]
    if sorted(spatial_letters(layout)) != sorted(letters) or sorted(layout) != sorted(
        "NC" + letters
    ):
        raise ValueError(
            f"topi.nn: pooling of {rank} dimensions knows layouts like N{letters}C and "
            f"NC{letters}, got {layout!r}"
        )
    return [layout.index(letter) for letter in letters]


def pool_output_size(
    size: Sequence[Extent],
    kernel: Sequence[Extent],
    stride: Sequence[Extent],
    padding: Sequence[Extent],
    dilation: Sequence[Extent],
    ceil_mode: bool,
) -> tuple[Extent, ...]:
    """Spatial extents of the result.

    With ceil_mode the last window may reach past the border behind, but, as in PyTorch, it must
    begin inside the input or the padding in front of it.
    """
    rank = len(size)
    result = []
    for k in range(rank):
        room = size[k] + padding[k] + padding[k + rank] - (kernel[k] - 1) * dilation[k] - 1
        if is_constant(room) and as_int(room) < 0:
            raise ValueError(
                f"topi.nn: a pooling window of {tuple(kernel)} does not fit an input of "
                f"{tuple(size)} padded by {tuple(padding)}"
            )
        if ceil_mode:
            last_start = (size[k] + padding[k] - 1) // stride[k]
            result.append(simplify(smallest((room + stride[k] - 1) // stride[k], last_start) + 1))
        else:
            result.append(simplify(room // stride[k] + 1))
    return tuple(result)


def replace_at(items: Sequence[Any], axes: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """The items with other values at some positions."""
    result = list(items)
    for axis, value in zip(axes, values):
        result[axis] = value
    return result


class Windows:
    """Sizes, border and loops of a pool, and where it reads."""

    def __init__(
        self,
        data: te.Tensor,
        axes: Sequence[int],
        kernel: Size,
        stride: Size | None,
        dilation: Size,
        padding: Any,
        ceil_mode: bool,
        border: float,
    ) -> None:
        rank = len(axes)
        self.axes = axes
        self.shape = get_const_tuple(data.shape)
        self.size = [self.shape[axis] for axis in axes]
        self.kernel = as_sizes(kernel, rank)
        self.stride = self.kernel if stride is None else as_sizes(stride, rank)
        self.dilation = as_sizes(dilation, rank)
        reach = [simplify((k - 1) * d + 1) for k, d in zip(self.kernel, self.dilation)]
        self.pads = as_pads(padding, rank, reach)
        out = pool_output_size(
            self.size, self.kernel, self.stride, self.pads, self.dilation, ceil_mode
        )
        self.out_shape = replace_at(self.shape, axes, out)
        # How far the last window reaches past the padded input; only ceil mode lets it.
        self.overhang: list[Extent] = [0] * rank
        if ceil_mode:
            for k in range(rank):
                padded_size = self.size[k] + self.pads[k] + self.pads[k + rank]
                reached = (out[k] - 1) * self.stride[k] + reach[k]
                self.overhang[k] = simplify(largest(reached - padded_size, 0))
        nothing = [0] * len(self.shape)
        behind = [simplify(p + o) for p, o in zip(self.pads[rank:], self.overhang)]
        self.padded = pad(
            data, replace_at(nothing, axes, self.pads[:rank]), replace_at(nothing, axes, behind),
            border,
        )  # fmt: skip
        names = ("rz", "ry", "rx")[3 - rank :]
        self.loops = [
            te.reduce_axis((0, extent), name=name) for extent, name in zip(self.kernel, names)
        ]

    def read(self, indices: Sequence[Any]) -> Any:
        position = [
            indices[axis] * self.stride[k] + self.loops[k] * self.dilation[k]
            for k, axis in enumerate(self.axes)
        ]
        return self.padded(*replace_at(indices, self.axes, position))

    def counted(self, index: Any, k: int, count_include_pad: bool) -> Extent:
        """Cells of the window along dimension k that belong in the divisor, one at least."""
        front, behind = self.pads[k], self.pads[k + len(self.axes)]
        before = 0 if count_include_pad else front
        after = self.overhang[k] if count_include_pad else simplify(self.overhang[k] + behind)
        if equal_const_int(before, 0) and equal_const_int(after, 0):
            return self.kernel[k]
        # Of the cells start, start + gap, ..., those in front of `end` less those in front of
        # `before`.
        start, gap = index * self.stride[k], self.dilation[k]
        end = self.size[k] + front + (behind if count_include_pad else 0)
        count: Any = self.kernel[k]
        if not equal_const_int(after, 0):
            count = tir.min(tir.ceildiv(end - start, gap), count)
        if not equal_const_int(before, 0):
            count = count - tir.max(tir.ceildiv(before - start, gap), 0)
        # Padding of a window's width has windows without a cell, whose mean is that of nothing.
        reach = (self.kernel[k] - 1) * gap + 1
        if all(is_constant(pad) and pad < reach for pad in (front, behind) if is_constant(reach)):
            return count
        return tir.max(count, 1)


def max_pool(
    data: te.Tensor,
    axes: Sequence[int],
    kernel: Size,
    stride: Size | None = None,
    dilation: Size = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
) -> te.Tensor:
    """Largest element of each window over some dimensions."""
    lowest = tir.min_value(data.dtype).value
    windows = Windows(data, axes, kernel, stride, dilation, padding, ceil_mode, lowest)
    return te.compute(
        windows.out_shape,
        lambda *i: te.max(windows.read(i), axis=windows.loops),
        name="pool_max",
        tag=tag.POOL_MAX,
    )


def avg_pool(
    data: te.Tensor,
    axes: Sequence[int],
    kernel: Size,
    stride: Size | None = None,
    dilation: Size = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> te.Tensor:
    """Mean of each window over some dimensions.

    Whether or not padding counts in the divisor, cells past it, which only ceil_mode reaches,
    never do.
    """
    w = Windows(data, axes, kernel, stride, dilation, padding, ceil_mode, 0.0)
    total = te.compute(
        w.out_shape,
        lambda *i: te.sum(w.read(i), axis=w.loops),
        name="pool_sum",
        tag=tag.POOL_SUM,
    )

    def divided(*i: Any) -> Any:
        count: Any = 1
        for k, axis in enumerate(axes):
            count = count * w.counted(i[axis], k, count_include_pad)
        return quotient(total(*i), as_int(count) if is_constant(count) else count)

    return te.compute(w.out_shape, divided, name="pool_avg", tag=tag.ELEMWISE)


def _pool(
    rank: int,
    data: te.Tensor,
    kernel: Size,
    stride: Size | None,
    dilation: Size,
    padding: Any,
    pool_type: str,
    ceil_mode: bool,
    layout: str,
    count_include_pad: bool,
) -> te.Tensor:
    axes = spatial_axes(layout, rank)
    if pool_type == "max":
        return max_pool(data, axes, kernel, stride, dilation, padding, ceil_mode)
    check_pool_type(pool_type)
    return avg_pool(data, axes, kernel, stride, dilation, padding, ceil_mode, count_include_pad)


def check_pool_type(pool_type: str) -> None:
    """Refuse anything but the two kinds of pools."""
    if pool_type not in ("max", "avg"):
        raise ValueError(f"topi.nn: pool_type is 'max' or 'avg', got {pool_type!r}")


def pool1d(
    data: te.Tensor,
    kernel: Size,
    stride: Size | None,
    dilation: Size,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCW",
    count_include_pad: bool = True,
) -> te.Tensor:
    """Largest element or mean of each window; arguments as in :func:`pool2d`."""
    return _pool(
        1, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad
    )


def pool2d(
    data: te.Tensor,
    kernel: Size,
    stride: Size | None,
    dilation: Size,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> te.Tensor:
    """Largest element or mean of each window.

    Parameters
    ----------
    stride : None is the kernel: windows side by side.
    padding : one size, (height, width) or (top, left, bottom, right), of cells that are smaller
        than all others for "max" and 0 for "avg".
    pool_type : "max" or "avg".
    ceil_mode : whether a last window may reach past the border.
    count_include_pad : whether padding counts in the divisor of a mean.
    """
    return _pool(
        2, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad
    )


def pool3d(
    data: te.Tensor,
    kernel: Size,
    stride: Size | None,
    dilation: Size,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCDHW",
    count_include_pad: bool = True,
) -> te.Tensor:
    """Largest element or mean of each window; arguments as in :func:`pool2d`."""
    return _pool(
        3, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad
    )


def max_pool2d(
    data: te.Tensor,
    kernel: Size,
    stride: Size | None = None,
    padding: Any = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    layout: str = "NHWC",
) -> te.Tensor:
    """Largest element of each window; arguments as in :func:`pool2d`."""
    return pool2d(data, kernel, stride, dilation, padding, "max", ceil_mode, layout)


def avg_pool2d(
    data: te.Tensor,
    kernel: Size,
    stride: Size | None = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NHWC",
) -> te.Tensor:
    """Mean of each window; arguments as in :func:`pool2d`."""
    return pool2d(data, kernel, stride, 1, padding, "avg", ceil_mode, layout, count_include_pad)


def global_pool(data: te.Tensor, pool_type: str, layout: str = "NCHW") -> te.Tensor:
    """Largest element or mean of all height and width, as dimensions of size 1."""
    axes = spatial_axes(layout, 2)
    kernel = [get_const_tuple(data.shape)[axis] for axis in axes]
    return pool2d(data, kernel, 1, 1, 0, pool_type, False, layout)
