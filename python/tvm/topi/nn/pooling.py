"""Pooling over windows of two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import as_padding, as_pair, const_shape
from .pad import pad

__all__ = ["adaptive_avg_pool2d", "avg_pool2d", "max_pool2d", "pool2d_output_size"]

Size = int | Sequence[int]
_SPATIAL = {"NHWC": 1, "NCHW": 2}


def _spatial_axis(layout: str) -> int:
    """Position of the height in the layout; the width follows it."""
    if layout not in _SPATIAL:
        raise ValueError(f"topi.nn: pooling knows the layouts NHWC and NCHW, got {layout!r}")
    return _SPATIAL[layout]


def pool2d_output_size(
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> tuple[int, int]:
    """(height, width) of the result.

    With ceil_mode the last window may reach past the bottom and right border, but, as in PyTorch,
    it must begin inside the input or the padding in front of it.
    """
    result = []
    for k in range(2):
        reach = (kernel[k] - 1) * dilation[k] + 1
        room = size[k] + padding[k] + padding[k + 2] - reach
        if room < 0:
            raise ValueError(
                f"topi.nn: a pooling window of {tuple(kernel)} does not fit an input of "
                f"{tuple(size)} padded by {tuple(padding)}"
            )
        count = (room + (stride[k] - 1 if ceil_mode else 0)) // stride[k] + 1
        if ceil_mode and (count - 1) * stride[k] >= size[k] + padding[k]:
            count -= 1
        result.append(count)
    return result[0], result[1]


def _window_read(
    x: te.Tensor, at: int, indices: Sequence[Any], position: tuple[Any, Any]
) -> tir.PrimExpr:
    return x(*indices[:at], *position, *indices[at + 2 :])


def _pad_spatial(
    data: te.Tensor, at: int, borders: Sequence[int], overhang: Sequence[int], value: float
) -> te.Tensor:
    before, after = [0] * 4, [0] * 4
    for k in range(2):
        before[at + k] = borders[k]
        after[at + k] = borders[k + 2] + overhang[k]
    return pad(data, before, after, value)


def _overhang(
    size: Sequence[int],
    out: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    borders: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    """How far the last window reaches past the padded input, in ceil mode."""
    return [
        max(
            0,
            (out[k] - 1) * stride[k]
            + (kernel[k] - 1) * dilation[k]
            + 1
            - (size[k] + borders[k] + borders[k + 2]),
        )
        for k in range(2)
    ]


def max_pool2d(
    data: te.Tensor,
    kernel: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    layout: str = "NHWC",
) -> te.Tensor:
    """Largest element of each window.

    Parameters
    ----------
    stride : without it, windows do not overlap: the stride is the kernel.
    padding : one size, (height, width) or (top, left, bottom, right) of cells smaller than all.
    """
    at = _spatial_axis(layout)
    shape = const_shape(data.shape)
    kernel = as_pair(kernel)
    stride = kernel if stride is None else as_pair(stride)
    dilation, borders = as_pair(dilation), as_padding(padding)
    size = shape[at : at + 2]
    out = pool2d_output_size(size, kernel, stride, borders, dilation, ceil_mode)
    lowest = tir.min_value(data.dtype).value
    padded = _pad_spatial(
        data, at, borders, _overhang(size, out, kernel, stride, borders, dilation), lowest
    )
    ry = te.reduce_axis((0, kernel[0]), name="ry")
    rx = te.reduce_axis((0, kernel[1]), name="rx")

    def body(*i):
        y = i[at] * stride[0] + ry * dilation[0]
        x = i[at + 1] * stride[1] + rx * dilation[1]
        return te.max(_window_read(padded, at, i, (y, x)), axis=[ry, rx])

    return te.compute(
        (*shape[:at], *out, *shape[at + 2 :]), body, name="max_pool2d", tag=tag.POOL_MAX
    )


def avg_pool2d(
    data: te.Tensor,
    kernel: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NHWC",
) -> te.Tensor:
    """Mean of each window.

    Parameters
    ----------
    stride, padding : as in :func:`max_pool2d`; the padding holds zeros.
    count_include_pad : whether padding counts in the divisor. Cells past the padding, which only
        ceil_mode reaches, never count.
    """
    at = _spatial_axis(layout)
    shape = const_shape(data.shape)
    kernel = as_pair(kernel)
    stride = kernel if stride is None else as_pair(stride)
    borders = as_padding(padding)
    size = shape[at : at + 2]
    out = pool2d_output_size(size, kernel, stride, borders, (1, 1), ceil_mode)
    overhang = _overhang(size, out, kernel, stride, borders, (1, 1))
    padded = _pad_spatial(data, at, borders, overhang, 0.0)
    ry = te.reduce_axis((0, kernel[0]), name="ry")
    rx = te.reduce_axis((0, kernel[1]), name="rx")

    def body(*i):
        position = (i[at] * stride[0] + ry, i[at + 1] * stride[1] + rx)
        return te.sum(_window_read(padded, at, i, position), axis=[ry, rx])

    out_shape = (*shape[:at], *out, *shape[at + 2 :])
    total = te.compute(out_shape, body, name="pool_sum", tag=tag.POOL_SUM)

    def counted(index: tir.Var, k: int) -> tir.PrimExpr | int:
        """Cells of the window along dimension k that belong in the divisor."""
        ignored_before = 0 if count_include_pad else borders[k]
        ignored_after = overhang[k] + (0 if count_include_pad else borders[k + 2])
        if not ignored_before and not ignored_after:
            return kernel[k]
        end_of_counted = size[k] + borders[k] + (borders[k + 2] if count_include_pad else 0)
        start: Any = index * stride[k]
        end: Any = start + kernel[k]
        if ignored_after:
            end = tir.Min(end, tir.const(end_of_counted, "int32"))
        if ignored_before:
            start = tir.Max(start, tir.const(ignored_before, "int32"))
        return end - start

    def divided(*i):
        count = counted(i[at], 0) * counted(i[at + 1], 1)
        divisor = (
            tir.const(count, data.dtype) if isinstance(count, int) else count.astype(data.dtype)
        )
        return total(*i) / divisor

    return te.compute(out_shape, divided, name="avg_pool2d", tag=tag.ELEMWISE)


def adaptive_avg_pool2d(data: te.Tensor, output_size: Size, layout: str = "NHWC") -> te.Tensor:
    """Mean over windows that divide height and width into output_size pieces.

    Piece i of n over extent E covers [floor(i E / n), ceil((i + 1) E / n)), as in PyTorch.
    """
    at = _spatial_axis(layout)
    shape = const_shape(data.shape)
    size, out = shape[at : at + 2], as_pair(output_size)
    if all(extent % pieces == 0 for extent, pieces in zip(size, out)):
        kernel = (size[0] // out[0], size[1] // out[1])
        return avg_pool2d(data, kernel, kernel, 0, layout=layout)

    def start(index: Any, k: int) -> Any:
        return index * size[k] // out[k]

    def length(index: Any, k: int) -> Any:
        return ((index + 1) * size[k] + out[k] - 1) // out[k] - start(index, k)

    longest = [max(length(i, k) for i in range(out[k])) for k in range(2)]
    ry = te.reduce_axis((0, longest[0]), name="ry")
    rx = te.reduce_axis((0, longest[1]), name="rx")

    def body(*i):
        inside = tir.all(ry < length(i[at], 0), rx < length(i[at + 1], 1))
        position = (start(i[at], 0) + ry, start(i[at + 1], 1) + rx)
        value = _window_read(data, at, i, position)
        return te.sum(tir.if_then_else(inside, value, tir.const(0, data.dtype)), axis=[ry, rx])

    out_shape = (*shape[:at], *out, *shape[at + 2 :])
    total = te.compute(out_shape, body, name="adaptive_pool_sum", tag=tag.ADAPTIVE_POOL)
    return te.compute(
        out_shape,
        lambda *i: total(*i) / (length(i[at], 0) * length(i[at + 1], 1)).astype(data.dtype),
        name="adaptive_avg_pool2d",
        tag=tag.ELEMWISE,
    )
