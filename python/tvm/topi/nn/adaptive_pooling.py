"""Pooling to a given size, whatever the size of the data."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import (
    Extent,
    as_int,
    as_sizes,
    ceil_div,
    equal_const_int,
    get_const_tuple,
    is_constant,
    quotient,
    simplify,
)
from .conv import Size
from .pooling import avg_pool, check_pool_type, max_pool, replace_at, spatial_axes

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_pool",
    "adaptive_pool1d",
    "adaptive_pool3d",
]


def _start(index: Any, extent: Extent, pieces: Extent) -> Any:
    return index * extent // pieces


def _length(index: Any, extent: Extent, pieces: Extent) -> Any:
    return ((index + 1) * extent + pieces - 1) // pieces - _start(index, extent, pieces)


def _longest(extent: Extent, pieces: Extent) -> Extent:
    """Cells of the longest piece; where the sizes are symbolic, no fewer than that."""
    if is_constant(extent) and is_constant(pieces):
        return max(_length(i, as_int(extent), as_int(pieces)) for i in range(as_int(pieces)))
    return simplify(ceil_div(extent, pieces) + 1)


def _adaptive(
    rank: int, data: te.Tensor, output_size: Size, pool_type: str, layout: str
) -> te.Tensor:
    axes = spatial_axes(layout, rank)
    check_pool_type(pool_type)
    shape = get_const_tuple(data.shape)
    size = [shape[axis] for axis in axes]
    out = as_sizes(output_size, rank)
    if all(equal_const_int(simplify(n % pieces), 0) for n, pieces in zip(size, out)):
        kernel = [simplify(n // pieces) for n, pieces in zip(size, out)]
        return (max_pool if pool_type == "max" else avg_pool)(data, axes, kernel, kernel)
    names = ("rz", "ry", "rx")[3 - rank :]
    loops = [
        te.reduce_axis((0, _longest(n, pieces)), name=name)
        for n, pieces, name in zip(size, out, names)
    ]
    is_max = pool_type == "max"
    neutral = tir.min_value(data.dtype) if is_max else tir.const(0, data.dtype)

    def body(*i: Any) -> Any:
        inside = [
            loop < _length(i[axis], n, pieces)
            for loop, axis, n, pieces in zip(loops, axes, size, out)
        ]
        position = [
            _start(i[axis], n, pieces) + loop
            for loop, axis, n, pieces in zip(loops, axes, size, out)
        ]
        value = data(*replace_at(i, axes, position))
        return (te.max if is_max else te.sum)(
            tir.if_then_else(tir.all(*inside), value, neutral), axis=loops
        )

    out_shape = replace_at(shape, axes, out)
    if is_max:
        return te.compute(out_shape, body, name="adaptive_pool_max", tag=tag.POOL_MAX)
    total = te.compute(out_shape, body, name="adaptive_pool_sum", tag=tag.ADAPTIVE_POOL)

    def divided(*i: Any) -> Any:
        count: Any = 1
        for axis, n, pieces in zip(axes, size, out):
            count = count * _length(i[axis], n, pieces)
        return quotient(total(*i), count)

    return te.compute(out_shape, divided, name="adaptive_pool_avg", tag=tag.ELEMWISE)


def adaptive_pool(
    data: te.Tensor, output_size: Size, pool_type: str, layout: str = "NCHW"
) -> te.Tensor:
    """Largest element or mean of windows that divide height and width into given counts.

    Piece i of n over extent E covers [floor(i E / n), ceil((i + 1) E / n)), as in PyTorch.

    Parameters
    ----------
    output_size : pieces of (height, width), or one number for both.
    pool_type : "max" or "avg".
    """
    return _adaptive(2, data, output_size, pool_type, layout)


def adaptive_pool1d(
    data: te.Tensor, output_size: Size, pool_type: str, layout: str = "NCW"
) -> te.Tensor:
    """:func:`adaptive_pool` over one dimension."""
    return _adaptive(1, data, output_size, pool_type, layout)


def adaptive_pool3d(
    data: te.Tensor, output_size: Size, pool_type: str, layout: str = "NCDHW"
) -> te.Tensor:
    """:func:`adaptive_pool` over three dimensions."""
    return _adaptive(3, data, output_size, pool_type, layout)


def adaptive_avg_pool2d(data: te.Tensor, output_size: Size, layout: str = "NHWC") -> te.Tensor:
    """:func:`adaptive_pool` of means."""
    return adaptive_pool(data, output_size, "avg", layout)
