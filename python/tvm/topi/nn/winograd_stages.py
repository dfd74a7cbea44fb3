"""Winograd's minimal filtering of NHWC images in three steps, each a computation of its own.

The input transform, a matrix product for each point of the transformed window, and the output
transform, after Lavin and Gray, CVPR 2016. The transforms are written as sums of the few elements
that count, for loops that a schedule unrolls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm import te, tir

from ..utils import as_padding, as_pair, ceil_div, const_shape
from .combination import combination
from .conv import Size, conv_output_size
from .pad import pad
from .winograd_util import cook_toom_matrices

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "winograd_input_transform",
    "winograd_output_transform",
    "winograd_product",
    "winograd_tiles",
    "winograd_transformed_weight",
]


def winograd_tiles(
    data_shape: Sequence[int], tile_size: int, kernel_size: int, padding: Size
) -> tuple[int, int, int, int]:
    """Height and width of the result, and the tiles along each, for (N, H, W, ...) data."""
    _, height, width = data_shape[:3]
    out_h, out_w = conv_output_size(
        (height, width), (kernel_size, kernel_size), (1, 1), as_padding(padding), (1, 1)
    )
    return out_h, out_w, ceil_div(out_h, tile_size), ceil_div(out_w, tile_size)


def winograd_transformed_weight(weight: np.ndarray, tile_size: int) -> np.ndarray:
    """HWIO weights in the transformed domain: (n * n, in_channels, filters), n = tile + kernel - 1.

    Raises
    ------
    ValueError : the kernel is not square.
    """
    import numpy as np

    kernel, other = weight.shape[:2]
    if kernel != other:
        raise ValueError(
            f"topi.nn.winograd_transformed_weight: the kernel must be square, got {kernel} x "
            f"{other}"
        )
    _, _, g = cook_toom_matrices(tile_size, kernel)
    matrix = np.array(g, dtype="float64")
    transformed = np.einsum("ay,bx,yxio->abio", matrix, matrix, weight.astype("float64"))
    return transformed.reshape(-1, *weight.shape[2:]).astype(weight.dtype)


def winograd_input_transform(
    data: te.Tensor, tile_size: int, kernel_size: int = 3, padding: Size = 0
) -> te.Tensor:
    """Overlapping tiles of the padded image, transformed along height, then width.

    Parameters
    ----------
    data : (batch, height, width, channels), of constant extents.
    padding : one size, (height, width) or (top, left, bottom, right).

    Returns
    -------
    (n * n, tiles, channels) with n = tile_size + kernel_size - 1. The stages before it are the
    padded data, unless no border is needed, and (tiles, n, n, channels), half transformed.
    """
    batch, _, _, channels = const_shape(data.shape)
    out_h, out_w, rows, columns = winograd_tiles(
        const_shape(data.shape), tile_size, kernel_size, padding
    )
    top, left, bottom, right = as_padding(padding)
    n = tile_size + kernel_size - 1
    # The last tiles may reach past the result, so there is more padding behind.
    padded = pad(
        data,
        (0, top, left, 0),
        (0, bottom + rows * tile_size - out_h, right + columns * tile_size - out_w, 0),
    )
    _, b, _ = cook_toom_matrices(tile_size, kernel_size)

    def along_height(p: tir.Var, eps: tir.Var, x: tir.Var, c: tir.Var) -> tir.PrimExpr:
        image = tir.floordiv(p, rows * columns)
        row = tir.floormod(tir.floordiv(p, columns), rows) * tile_size
        column = tir.floormod(p, columns) * tile_size + x
        return combination(eps, b, lambda k: padded[image, row + k, column, c])

    tiles = batch * rows * columns
    half = te.compute((tiles, n, n, channels), along_height, name="half_data")

    def along_width(e: tir.Var, p: tir.Var, c: tir.Var) -> tir.PrimExpr:
        return combination(tir.floormod(e, n), b, lambda k: half[p, tir.floordiv(e, n), k, c])

    return te.compute(
        (n * n, tiles, channels), along_width, name="data_pack", tag="winograd_input_transform"
    )


def winograd_product(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """(n * n, tiles, channels) times layout-free (n * n, channels, filters), for each point."""
    points, tiles, channels = const_shape(data.shape)
    _, _, filters = const_shape(weight.shape)
    ci = te.reduce_axis((0, channels), name="ci")
    return te.compute(
        (points, tiles, filters),
        lambda e, p, f: te.sum(data[e, p, ci] * weight[e, ci, f], axis=ci),
        name="bgemm",
        tag="winograd_product",
        attrs={"layout_free_placeholders": [weight]},
    )


def winograd_output_transform(
    product: te.Tensor, out_size: Size, tile_size: int, kernel_size: int = 3
) -> te.Tensor:
    """The image of the transformed products.

    Parameters
    ----------
    product : (n * n, tiles, filters) with n = tile_size + kernel_size - 1.
    out_size : height and width of the result.

    Returns
    -------
    (batch, height, width, filters). The stage before it is (tiles, tile_size, n, filters),
    transformed along the height.
    """
    points, tiles, filters = const_shape(product.shape)
    out_h, out_w = as_pair(out_size)
    rows, columns = ceil_div(out_h, tile_size), ceil_div(out_w, tile_size)
    n = tile_size + kernel_size - 1
    if points != n * n or tiles % (rows * columns):
        raise ValueError(
            f"topi.nn.winograd_output_transform: {points} products of {tiles} tiles do not make "
            f"images of {out_h} x {out_w} in tiles of {tile_size} with a kernel of {kernel_size}"
        )
    a, _, _ = cook_toom_matrices(tile_size, kernel_size)
    half = te.compute(
        (tiles, tile_size, n, filters),
        lambda p, y, nu, f: combination(y, a, lambda k: product[k * n + nu, p, f]),
        name="half_output",
    )

    def element(i: tir.Var, y: tir.Var, x: tir.Var, f: tir.Var) -> tir.PrimExpr:
        tile_y, y_in = tir.floordiv(y, tile_size), tir.floormod(y, tile_size)
        tile_x, x_in = tir.floordiv(x, tile_size), tir.floormod(x, tile_size)
        p = (i * rows + tile_y) * columns + tile_x
        return combination(x_in, a, lambda k: half[p, y_in, k, f])

    batch = tiles // (rows * columns)
    return te.compute(
        (batch, out_h, out_w, filters),
        element,
        name="conv2d_winograd",
        tag="winograd_output_transform",
    )
