"""Three-dimensional convolution by Winograd's algorithm, F(m, r) along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, te, tir

from .. import tag
from .pad import pad
from .winograd_util import const_matrix, cook_toom_matrices

__all__ = [
    "conv3d_winograd_tile_size",
    "conv3d_winograd_weight_transform",
    "conv3d_winograd_without_weight_transform",
]


def conv3d_winograd_tile_size(depth: int, height: int, width: int) -> int:
    """Outputs of a tile along each axis: 4 where tiles of 4 leave little over, else 2."""
    return 4 if all(size % 4 == 0 or size >= 8 for size in (depth, height, width)) else 2


def conv3d_winograd_weight_transform(kernel: te.Tensor, tile_size: int) -> te.Tensor:
    """Weights (filters, channels, r, r, r) as (n, n, n, filters, channels), n = tile_size + r - 1.

    Raises
    ------
    ValueError : the window is no cube.
    """
    filters, channels, *window = kernel.shape
    sizes = [int(size) for size in window]
    if len(set(sizes)) != 1:
        raise error.ValueError(f"topi.nn: Winograd's algorithm needs a cube, the window is {sizes}")
    r = sizes[0]
    n = tile_size + r - 1
    g = const_matrix(cook_toom_matrices(tile_size, r)[2], str(kernel.dtype), "kernel_G")
    rd, rh, rw = (te.reduce_axis((0, r), name) for name in ("rd", "rh", "rw"))
    return te.compute(
        (n, n, n, filters, channels),
        lambda a, b, c, o, i: te.sum(
            kernel[o, i, rd, rh, rw] * g[a, rd] * g[b, rh] * g[c, rw], [rd, rh, rw]
        ),
        name="kernel_pack",
    )


def conv3d_winograd_without_weight_transform(
    data: te.Tensor, kernel_pack: te.Tensor, padding: Sequence[int], tile_size: int
) -> te.Tensor:
    """Convolution of stride 1 by transformed weights.

    Parameters
    ----------
    data : (batch, channels, depth, height, width).
    kernel_pack : from `conv3d_winograd_weight_transform`.
    padding : before the three axes, then behind them.
    """
    batch, channels, *space = (int(e) for e in data.shape)
    n, filters = int(kernel_pack.shape[0]), int(kernel_pack.shape[3])
    r, m, dtype = n - tile_size + 1, tile_size, str(data.dtype)
    out = [e + a + b - r + 1 for e, a, b in zip(space, padding[:3], padding[3:])]
    tiles = [-(-size // m) for size in out]
    # The last tiles may reach beyond the border, into zeros.
    behind = [t * m + r - 1 - e - a for t, e, a in zip(tiles, space, padding[:3])]
    padded = pad(data, [0, 0, *padding[:3]], [0, 0, *behind], name="data_pad")
    exact_a, exact_b, _ = cook_toom_matrices(m, r)
    a_matrix, b_matrix = (const_matrix(x, dtype, s) for x, s in ((exact_a, "A"), (exact_b, "B")))
    _, th, tw = tiles
    count = batch * tiles[0] * th * tw

    def tile_at(p: Any) -> tuple[Any, Any, Any, Any]:
        return (
            tir.indexdiv(p, tiles[0] * th * tw),
            tir.indexmod(tir.indexdiv(p, th * tw), tiles[0]),
            tir.indexmod(tir.indexdiv(p, tw), th),
            tir.indexmod(p, tw),
        )

    def input_tile(i: Any, p: Any, a: Any, b: Any, c: Any) -> Any:
        image, d, h, w = tile_at(p)
        return padded[image, i, d * m + a, h * m + b, w * m + c]

    block = te.compute((channels, count, n, n, n), input_tile, name="input_tile")
    xs = [te.reduce_axis((0, n), f"x{k}") for k in range(3)]
    spread = te.compute(
        (n, n, n, channels, count),
        lambda a, b, c, i, p: te.sum(
            block[i, p, xs[0], xs[1], xs[2]]
            * b_matrix[xs[0], a] * b_matrix[xs[1], b] * b_matrix[xs[2], c], xs
        ),
        name="data_pack",
    )  # fmt: skip
    ci = te.reduce_axis((0, channels), "ci")
    product = te.compute(
        (n, n, n, filters, count),
        lambda a, b, c, o, p: te.sum(kernel_pack[a, b, c, o, ci] * spread[a, b, c, ci, p], ci),
        name="bgemm",
    )
    ys = [te.reduce_axis((0, n), f"y{k}") for k in range(3)]
    inverse = te.compute(
        (filters, count, m, m, m),
        lambda o, p, a, b, c: te.sum(
            product[ys[0], ys[1], ys[2], o, p]
            * a_matrix[ys[0], a] * a_matrix[ys[1], b] * a_matrix[ys[2], c], ys
        ),
        name="inverse",
    )  # fmt: skip

    def element(image: Any, o: Any, d: Any, h: Any, w: Any) -> Any:
        tile = ((image * tiles[0] + tir.indexdiv(d, m)) * th + tir.indexdiv(h, m)) * tw
        tile = tile + tir.indexdiv(w, m)
        return inverse[o, tile, tir.indexmod(d, m), tir.indexmod(h, m), tir.indexmod(w, m)]

    return te.compute((batch, filters, *out), element, name="output", tag=tag.INJECTIVE)
