"""Winograd convolutions of NHWC images with constant weights, and the schedules of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm import te, tir
from tvm.target import Target

from ..nn.conv import Size
from ..nn.winograd_stages import (
    winograd_input_transform,
    winograd_output_transform,
    winograd_tiles,
    winograd_transformed_weight,
)
from ..utils import as_int, const_shape
from .conv2d import RegisterTile
from .vectors import inline_producers, prefetch_weight, vector_lanes

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "conv2d_nhwc_winograd_packed",
    "pack_winograd_weight",
    "schedule_conv2d_nhwc_winograd_packed",
    "schedule_winograd_input_transform",
    "schedule_winograd_output_transform",
]


def pack_winograd_weight(weight: np.ndarray, tile_size: int, block: int) -> np.ndarray:
    """HWIO weights, transformed, as (panel, n * n, in_channels, block), n = tile + kernel - 1.

    The last panel is filled up with zeros when `block` does not divide the output channels.
    """
    import numpy as np

    transformed = winograd_transformed_weight(weight, tile_size)
    points, channels, filters = transformed.shape
    panels = -(-filters // block)
    padded = np.zeros((points, channels, panels * block), weight.dtype)
    padded[..., :filters] = transformed
    split = padded.reshape(points, channels, panels, block)
    return np.ascontiguousarray(split.transpose(2, 0, 1, 3))


def conv2d_nhwc_winograd_packed(
    data: te.Tensor, weight: te.Tensor, tile_size: int, kernel_size: int = 3, padding: Size = 0
) -> te.Tensor:
    """Convolution of NHWC data, stride 1, by Winograd's minimal filtering.

    A tile of m x m results takes (m + kernel - 1)^2 products a channel instead of (m * kernel)^2:
    for a kernel of 3, 2.25 times fewer with m = 2 and 4 times fewer with m = 4 (Lavin and Gray,
    CVPR 2016). Rounding errors grow with m.

    Parameters
    ----------
    data : (batch, height, width, in_channels).
    weight : (panels, n * n, in_channels, block) from :func:`pack_winograd_weight`.
    padding : one size, (height, width) or (top, left, bottom, right).
    """
    panels, points, _, block = const_shape(weight.shape)
    transformed = winograd_input_transform(data, tile_size, kernel_size, padding)
    _, tiles, channels = const_shape(transformed.shape)
    if points != as_int(transformed.shape[0]):
        raise ValueError(
            f"topi.x86.conv2d_nhwc_winograd_packed: weights of {points} products are not of tile "
            f"size {tile_size} and a kernel of {kernel_size}"
        )
    ci = te.reduce_axis((0, channels), name="ci")
    product = te.compute(
        (points, tiles, panels * block),
        lambda e, p, f: te.sum(
            transformed[e, p, ci] * weight[tir.floordiv(f, block), e, ci, tir.floormod(f, block)],
            axis=ci,
        ),
        name="bgemm",
    )
    out_h, out_w, _, _ = winograd_tiles(const_shape(data.shape), tile_size, kernel_size, padding)
    return winograd_output_transform(product, (out_h, out_w), tile_size, kernel_size)


def schedule_winograd_input_transform(
    transformed: te.Tensor, target: Target | None = None
) -> te.Schedule:
    """Tiles in parallel, each transformed in registers; the border is copied beforehand."""
    target = target or Target.current() or Target("llvm")
    s = te.create_schedule(transformed.op)
    tiles = _input_loops(s, transformed, vector_lanes(target, transformed.dtype))
    s[transformed].parallel(tiles)
    padded = transformed.op.input_tensors[0].op.input_tensors[0]
    if isinstance(padded.op, te.ComputeOp):
        s[padded].parallel(s[padded].fuse(*padded.op.axis[:2]))
        _vectorize_channels(s, padded, vector_lanes(target, transformed.dtype))
    return s


def schedule_winograd_output_transform(
    image: te.Tensor, output: te.Tensor | None = None, target: Target | None = None
) -> te.Schedule:
    """Tiles in parallel, each transformed in registers.

    Parameters
    ----------
    image : result of ``topi.nn.winograd_output_transform``.
    output : elementwise function of `image` to compute with it.
    """
    target = target or Target.current() or Target("llvm")
    output = image if output is None else output
    s = te.create_schedule(output.op)
    i, ty, tx, _ = _output_loops(s, image, output, vector_lanes(target, image.dtype))
    s[output].parallel(s[output].fuse(i, ty, tx))
    return s


def schedule_conv2d_nhwc_winograd_packed(
    image: te.Tensor,
    tile: RegisterTile,
    chunk_rows: int | None = None,
    output: te.Tensor | None = None,
    target: Target | None = None,
) -> te.Schedule:
    """Chunks of tile rows outside, each transformed, multiplied and transformed back in cache.

    Parameters
    ----------
    image : result of :func:`conv2d_nhwc_winograd_packed`.
    tile : `rows` times `columns` Winograd tiles and `vectors` vectors of filters of a product.
    chunk_rows : rows of Winograd tiles in a chunk. By default there are none: each of the three
        steps is parallel by itself. That is good for small images with many channels, whose
        weights are then read once.
    output : elementwise function of `image` to compute with the output transform.
    """
    target = target or Target.current() or Target("llvm")
    tile.check(target)
    lanes = vector_lanes(target, image.dtype)
    output = image if output is None else output
    s = te.create_schedule(output.op)
    product = image.op.input_tensors[0].op.input_tensors[0]
    transformed = product.op.input_tensors[0]
    padded = transformed.op.input_tensors[0].op.input_tensors[0]
    product_loop = _product_loops(s, product, tile, lanes)
    i, ty, tx, _ = _output_loops(s, image, output, lanes)
    tiles = _input_loops(s, transformed, lanes)
    is_padded = isinstance(padded.op, te.ComputeOp)
    if is_padded:
        _vectorize_channels(s, padded, lanes)
    if chunk_rows is None:
        s[output].parallel(s[output].fuse(i, ty, tx))
        s[product].parallel(product_loop)
        s[transformed].parallel(tiles)
        if is_padded:
            s[padded].parallel(s[padded].fuse(*padded.op.axis[:2]))
        return s
    chunk, ty = s[output].split(ty, factor=chunk_rows)
    chunk = s[output].fuse(i, chunk)
    s[output].parallel(chunk)
    for step in (product, transformed, padded):
        if isinstance(step.op, te.ComputeOp):
            s[step].compute_at(s[output], chunk)
    return s


def _vectorize_channels(s: te.Schedule, tensor: te.Tensor, lanes: int) -> None:
    _, lane = s[tensor].split(tensor.op.axis[-1], factor=lanes)
    s[tensor].vectorize(lane)


def _input_loops(s: te.Schedule, transformed: te.Tensor, lanes: int) -> tir.IterVar:
    """Tiles outside, then vectors of channels, the transform written out; returns the tiles."""
    half = transformed.op.input_tensors[0]
    points, p, c = s[transformed].op.axis
    c, lane = s[transformed].split(c, factor=lanes)
    s[transformed].reorder(p, c, points, lane)
    s[transformed].unroll(points)
    s[transformed].vectorize(lane)
    s[half].compute_at(s[transformed], c)
    _write_out_half(s, half, lanes)
    return p


def _output_loops(
    s: te.Schedule, image: te.Tensor, output: te.Tensor, lanes: int
) -> Sequence[tir.IterVar]:
    """Tiles outside, then vectors of filters; returns image, tile row, tile column, vector."""
    inline_producers(s, output, first=image)
    half = image.op.input_tensors[0]
    size = as_int(half.shape[1])
    i, y, x, f = s[output].op.axis
    ty, y_in = s[output].split(y, factor=size)
    tx, x_in = s[output].split(x, factor=size)
    vector, lane = s[output].split(f, factor=lanes)
    s[output].reorder(i, ty, tx, vector, y_in, x_in, lane)
    s[output].unroll(y_in)
    s[output].unroll(x_in)
    s[output].vectorize(lane)
    s[half].compute_at(s[output], vector)
    _write_out_half(s, half, lanes)
    return i, ty, tx, vector


def _write_out_half(s: te.Schedule, half: te.Tensor, lanes: int) -> None:
    """Half a transform of one tile, on one vector of channels."""
    p, row, column, c = s[half].op.axis
    c, lane = s[half].split(c, factor=lanes)
    s[half].reorder(p, c, row, column, lane)
    for loop in (c, row, column):
        s[half].unroll(loop)
    s[half].vectorize(lane)


def _product_loops(
    s: te.Schedule, product: te.Tensor, tile: RegisterTile, lanes: int
) -> tir.IterVar:
    """Points and panels of filters outside, then register tiles; returns the outer loop."""
    local = s.cache_write(product, "local")
    points, p, f = s[product].op.axis
    panel, f = s[product].split(f, factor=lanes * tile.vectors)
    vector, lane = s[product].split(f, factor=lanes)
    p, p_in = s[product].split(p, factor=tile.rows * tile.columns)
    s[product].reorder(points, panel, p, p_in, vector, lane)
    outer = s[product].fuse(points, panel)
    s[product].unroll(p_in)
    s[product].unroll(vector)
    s[product].vectorize(lane)
    s[local].compute_at(s[product], p)
    points, p, f = s[local].op.axis
    (ci,) = s[local].op.reduce_axis
    vector, lane = s[local].split(f, factor=lanes)
    s[local].reorder(ci, points, p, vector, lane)
    s[local].unroll(p)
    s[local].unroll(vector)
    s[local].vectorize(lane)
    if tile.prefetch:
        prefetch_weight(s, local, product.op.input_tensors[1], ci, tile.prefetch)
    return outer
