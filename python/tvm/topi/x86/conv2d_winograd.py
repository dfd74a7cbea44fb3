"""Winograd convolution of NHWC data, with weights transformed and laid out beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tvm import te, tir
from tvm.target import Target

from ..nn.conv import Size, conv_output_size
from ..nn.pad import pad
from ..nn.winograd_util import cook_toom_matrices
from ..utils import as_padding, ceil_div, const_shape
from .conv2d import RegisterTile, pack_conv2d_weight, vector_lanes

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "WinogradStages",
    "conv2d_nhwc_winograd_packed",
    "pack_winograd_weight",
    "schedule_conv2d_nhwc_winograd_packed",
]


@dataclass(frozen=True)
class WinogradStages:
    """The tensors of a Winograd convolution, in the order they are computed.

    With n = tile_size + kernel - 1 and `tiles` the number of tiles in all images:

    Attributes
    ----------
    padded : (batch, height, width, channels), with whole tiles.
    half_data : (tiles, n, n, channels), the input transform along the height.
    data : (n, n, tiles, channels), the input transform.
    product : (n, n, tiles, filters), a matrix product for each of the n * n.
    half_output : (tiles, tile_size, n, filters), the output transform along the height.
    output : (batch, height, width, filters).
    tile_size : results of a tile along one side. columns : tiles along the width.
    """

    padded: te.Tensor
    half_data: te.Tensor
    data: te.Tensor
    product: te.Tensor
    half_output: te.Tensor
    output: te.Tensor
    tile_size: int
    columns: int


def pack_winograd_weight(weight: np.ndarray, tile_size: int, block: int) -> np.ndarray:
    """HWIO weights, transformed, as (panel, n, n, in_channels, block), n = tile + kernel - 1.

    The last panel is filled up with zeros when `block` does not divide the output channels.
    """
    import numpy as np

    kernel, other = weight.shape[:2]
    if kernel != other:
        raise ValueError(
            f"topi.x86.pack_winograd_weight: the kernel must be square, got {kernel} x {other}"
        )
    _, _, g = cook_toom_matrices(tile_size, kernel)
    matrix = np.array(g, dtype="float64")
    transformed = np.einsum("ay,bx,yxio->abio", matrix, matrix, weight.astype("float64"))
    return pack_conv2d_weight(transformed.astype(weight.dtype), block)


def _combination(
    which: tir.PrimExpr,
    matrix: Sequence[Sequence[Fraction]],
    read: Callable[[int], tir.PrimExpr],
) -> tir.PrimExpr:
    """Column `which` of `matrix` times what `read` gives; the loop of `which` is to be unrolled."""
    result: tir.PrimExpr | None = None
    for column in reversed(range(len(matrix[0]))):
        total: tir.PrimExpr | None = None
        factors = [(row[column], k) for k, row in enumerate(matrix) if row[column] != 0]
        for factor, k in sorted(factors, key=lambda term: term[0] < 0):
            value = read(k)
            term = value if abs(factor) == 1 else value * tir.const(float(abs(factor)), value.dtype)
            if total is None:
                total = term if factor > 0 else -term
            else:
                total = total + term if factor > 0 else total - term
        assert total is not None
        result = total if result is None else tir.Select(which.equal(column), total, result)
    assert result is not None
    return result


def conv2d_nhwc_winograd_packed(
    data: te.Tensor, weight: te.Tensor, kernel_size: int = 3, padding: Size = 0
) -> WinogradStages:
    """Convolution of NHWC data, stride 1, by Winograd's minimal filtering.

    A tile of m x m results takes (m + kernel - 1)^2 products a channel instead of (m * kernel)^2,
    2.25 times fewer for m = 2 and 4 times fewer for m = 4 (Lavin and Gray, CVPR 2016). Rounding
    errors grow with m.

    Parameters
    ----------
    data : (batch, height, width, in_channels).
    weight : (panels, n, n, in_channels, block) from :func:`pack_winograd_weight`.
    padding : one size, (height, width) or (top, left, bottom, right).
    """
    batch, height, width, channels = const_shape(data.shape)
    panels, n, _, _, block = const_shape(weight.shape)
    tile = n - kernel_size + 1
    if tile < 1:
        raise ValueError(
            f"topi.x86.conv2d_nhwc_winograd_packed: weights of {n} x {n} products do not fit a "
            f"kernel of {kernel_size}"
        )
    top, left, bottom, right = as_padding(padding)
    out_h, out_w = conv_output_size(
        (height, width), (kernel_size, kernel_size), (1, 1), (top, left, bottom, right), (1, 1)
    )
    rows, columns = ceil_div(out_h, tile), ceil_div(out_w, tile)
    # The last tiles may reach past the result, so there is more padding behind.
    padded = pad(
        data,
        (0, top, left, 0),
        (0, bottom + rows * tile - out_h, right + columns * tile - out_w, 0),
    )
    a, b, _ = cook_toom_matrices(tile, kernel_size)

    def input_row(p: tir.Var, eps: tir.Var, x: tir.Var, c: tir.Var) -> tir.PrimExpr:
        image = tir.floordiv(p, rows * columns)
        top_row = tir.floormod(tir.floordiv(p, columns), rows) * tile
        column = tir.floormod(p, columns) * tile + x
        return _combination(eps, b, lambda k: padded[image, top_row + k, column, c])

    half_data = te.compute((batch * rows * columns, n, n, channels), input_row, name="half_data")
    transformed = te.compute(
        (n, n, batch * rows * columns, channels),
        lambda eps, nu, p, c: _combination(nu, b, lambda k: half_data[p, eps, k, c]),
        name="data_pack",
    )
    ci = te.reduce_axis((0, channels), name="ci")
    product = te.compute(
        (n, n, batch * rows * columns, panels * block),
        lambda eps, nu, p, f: te.sum(
            transformed[eps, nu, p, ci]
            * weight[tir.floordiv(f, block), eps, nu, ci, tir.floormod(f, block)],
            axis=ci,
        ),
        name="bgemm",
    )
    half_output = te.compute(
        (batch * rows * columns, tile, n, panels * block),
        lambda p, y, nu, f: _combination(y, a, lambda k: product[k, nu, p, f]),
        name="half_output",
    )

    def element(i: tir.Var, y: tir.Var, x: tir.Var, f: tir.Var) -> tir.PrimExpr:
        p = (i * rows + tir.floordiv(y, tile)) * columns + tir.floordiv(x, tile)
        y_in, x_in = tir.floormod(y, tile), tir.floormod(x, tile)
        return _combination(x_in, a, lambda k: half_output[p, y_in, k, f])

    output = te.compute((batch, out_h, out_w, panels * block), element, name="conv2d_winograd")
    return WinogradStages(
        padded, half_data, transformed, product, half_output, output, tile, columns
    )


def schedule_conv2d_nhwc_winograd_packed(
    stages: WinogradStages,
    tile: RegisterTile,
    chunk_rows: int | None = None,
    output: te.Tensor | None = None,
    target: Target | None = None,
) -> te.Schedule:
    """Chunks of tile rows outside, each transformed, multiplied and transformed back in cache.

    Parameters
    ----------
    stages : result of :func:`conv2d_nhwc_winograd_packed`.
    tile : `rows` times `columns` Winograd tiles and `vectors` vectors of filters of a product.
    chunk_rows : rows of Winograd tiles in a chunk. By default there are none: each of the three
        steps is parallel by itself. That is good for small images with many channels, whose
        weights are then read once.
    output : elementwise function of the result to compute with the output transform.
    """
    target = target or Target.current() or Target("llvm")
    tile.check(target)
    lanes = vector_lanes(target, stages.output.dtype)
    output = stages.output if output is None else output
    s = te.create_schedule(output.op)
    if output is not stages.output:
        s[stages.output].compute_inline()
    product = stages.product
    local = s.cache_write(product, "local")
    size = stages.tile_size

    i, y, x, f = s[output].op.axis
    ty, y_in = s[output].split(y, factor=size)
    tx, x_in = s[output].split(x, factor=size)
    panel, lane = s[output].split(f, factor=lanes)
    if chunk_rows is None:
        s[output].reorder(i, ty, tx, panel, y_in, x_in, lane)
        s[output].parallel(s[output].fuse(i, ty, tx))
    else:
        chunk, ty = s[output].split(ty, factor=chunk_rows)
        s[output].reorder(i, chunk, ty, tx, panel, y_in, x_in, lane)
        chunk = s[output].fuse(i, chunk)
        s[output].parallel(chunk)
    s[output].unroll(y_in)
    s[output].unroll(x_in)
    s[output].vectorize(lane)
    half = stages.half_output
    s[half].compute_at(s[output], panel)
    _vectors_unrolled(s, half, lanes)

    eps, nu, p, f = s[product].op.axis
    panel, f = s[product].split(f, factor=lanes * tile.vectors)
    vector, lane = s[product].split(f, factor=lanes)
    p, p_in = s[product].split(p, factor=tile.rows * tile.columns)
    s[product].reorder(eps, nu, panel, p, p_in, vector, lane)
    if chunk_rows is None:
        s[product].parallel(s[product].fuse(eps, nu, panel))
    else:
        s[product].compute_at(s[output], chunk)
    s[product].unroll(p_in)
    s[product].unroll(vector)
    s[product].vectorize(lane)
    s[local].compute_at(s[product], p)
    eps, nu, p, f = s[local].op.axis
    (ci,) = s[local].op.reduce_axis
    vector, lane = s[local].split(f, factor=lanes)
    s[local].reorder(ci, eps, nu, p, vector, lane)
    s[local].unroll(p)
    s[local].unroll(vector)
    s[local].vectorize(lane)
    if tile.prefetch:
        s[local].prefetch(product.op.input_tensors[1], ci, tile.prefetch)

    data = stages.data
    eps, nu, p, c = s[data].op.axis
    c, lane = s[data].split(c, factor=lanes)
    row, column = s[data].split(p, factor=stages.columns)
    s[data].reorder(row, column, c, eps, nu, lane)
    if chunk_rows is None:
        s[data].parallel(s[data].fuse(row, column))
    else:
        s[data].compute_at(s[output], chunk)
    s[data].unroll(eps)
    s[data].unroll(nu)
    s[data].vectorize(lane)
    s[stages.half_data].compute_at(s[data], c)
    _vectors_unrolled(s, stages.half_data, lanes)

    padded = stages.padded
    if isinstance(padded.op, te.ComputeOp):
        if chunk_rows is None:
            s[padded].parallel(s[padded].fuse(*padded.op.axis[:2]))
        else:
            s[padded].compute_at(s[output], chunk)
        _, channels = s[padded].split(padded.op.axis[3], factor=lanes)
        s[padded].vectorize(channels)
    return s


def _vectors_unrolled(s: te.Schedule, half: te.Tensor, lanes: int) -> None:
    """Half a transform of one tile: written out, on vectors of channels."""
    p, row, column, c = s[half].op.axis
    c, lane = s[half].split(c, factor=lanes)
    s[half].reorder(p, c, row, column, lane)
    for loop in (c, row, column):
        s[half].unroll(loop)
    s[half].vectorize(lane)
