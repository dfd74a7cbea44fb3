"""Register tiles chosen by shape."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from tvm import te, tir
from tvm.target import Target

from .. import tag
from ..utils import const_shape
from .conv2d import RegisterTile
from .vectors import vector_lanes

__all__ = [
    "FittedTile",
    "convolution_tile",
    "fitting_lanes",
    "fitting_rows",
    "fitting_tile",
    "product_tile",
    "row_axis",
]

# Accumulators below which a loop waits for the latency of its multiply-adds: four cycles on two
# units.
_HIDE_LATENCY = 8
# Multiply-adds a loaded vector below which loading takes longer than they do, with a margin.
_FEW_PRODUCTS = 1.5
# Rows of a tile for which a vector from the second cache takes longer than its multiply-adds.
_FEW_ROWS = 4
# Bytes of weights by which to read ahead: what a loop multiplies in the time that a line takes to
# come from the third cache, or from memory.
_AHEAD_BYTES = 4096
# Tiles that read the same panel of weights, one after the other, from which on the first hardly
# counts.
_MANY_TILES = 32


@dataclass(frozen=True)
class FittedTile:
    """A register tile, and the elements of the vectors that it is made of."""

    tile: RegisterTile
    lanes: int

    @property
    def block(self) -> int:
        """Columns, or output channels, of the tile."""
        return self.tile.vectors * self.lanes

    def reading_ahead(self, tiles: int, dtype: str) -> RegisterTile:
        """The tile with prefetches of packed weights, unless many tiles have the same panel.

        In a network weights come from far, since those of all other layers were read in between,
        and the loops over a panel are too short for the processor to see where it goes on.
        """
        if tiles > _MANY_TILES:
            return self.tile
        step = self.block * tir.const(0, dtype).dtype.bits // 8
        return replace(self.tile, prefetch=max(1, _AHEAD_BYTES // step))


def fitting_lanes(target: Target, dtype: str, extent: int) -> int:
    """The widest power of two of lanes that leaves no remainder, at most a vector register."""
    lanes = vector_lanes(target, dtype)
    while extent % lanes:
        lanes //= 2
    return lanes


def _divisors(extent: int) -> list[int]:
    return [d for d in range(1, min(extent, 32) + 1) if extent % d == 0]


def _products_a_load(tile: RegisterTile) -> float:
    """Multiply-adds for each vector that is loaded or repeated."""
    pixels = tile.rows * tile.columns
    return pixels * tile.vectors / (pixels + tile.vectors)


def fitting_tile(
    target: Target, rows: int, columns: int, vectors: int, max_pixels: int | None = None
) -> RegisterTile:
    """The tile without remainders that does most multiply-adds for each vector it loads."""

    tiles = [
        RegisterTile(*sizes)
        for sizes in itertools.product(_divisors(rows), _divisors(columns), _divisors(vectors))
        if sizes[0] * sizes[1] <= (max_pixels or rows * columns)
    ]
    fitting = [tile for tile in tiles if tile.registers() <= target.num_vector_registers]
    return max(fitting, key=lambda tile: (_products_a_load(tile), tile.columns))


def fitting_rows(
    target: Target, rows: int, vectors: int, vector_column_bytes: int = 0
) -> RegisterTile:
    """The tile of rows and vectors for which a step of a product takes least, over all rows.

    Rows may leave a remainder, which is a tile of its own; vectors do not.

    Parameters
    ----------
    vector_column_bytes : size of one vector at all steps of the reduction.
    """

    def cycles(tile: RegisterTile) -> float:
        """Of a step of the reduction, for each vector of columns."""
        heights = [tile.rows] * (rows // tile.rows) + [rest for rest in [rows % tile.rows] if rest]
        each = (
            max(height * tile.vectors, _HIDE_LATENCY) + (height + tile.vectors) / 4
            for height in heights
        )
        # Few rows do not hide that each reads all vectors from the second cache again, and wide
        # units take more than that cache gives in the time of any tile.
        far = tile.vectors * vector_column_bytes > target.cache_bytes[0]
        waits = far and (tile.rows < _FEW_ROWS or target.has_wide_units)
        reads = waits * len(heights) * tile.vectors
        return (sum(each) + reads) / tile.vectors

    tiles = [
        RegisterTile(height, 1, wide)
        for height, wide in itertools.product(range(1, min(rows, 16) + 1), _divisors(vectors))
    ]
    fitting = [tile for tile in tiles if tile.registers() <= target.num_vector_registers]
    return min(fitting, key=lambda tile: (cycles(tile), -tile.rows))


def row_axis(product: te.Tensor) -> int:
    """Which axis of a product has the rows of its register tile.

    Not always the last but one: weights of a dense layer are shared by all axes before their own,
    and rows (tokens, 1, features) lie along the first.
    """
    shape = const_shape(product.shape)
    last = len(shape) - 2
    if str(product.op.tag) != tag.DENSE:
        return last
    return next((axis for axis in range(last, -1, -1) if shape[axis] > 1), last)


def product_tile(product: te.Tensor, target: Target) -> FittedTile | None:
    """Rows and columns of a matrix product; None where its columns fill no vectors."""
    shape = const_shape(product.shape)
    lanes = fitting_lanes(target, product.dtype, shape[-1])
    if lanes < 4:
        return None
    rows = shape[row_axis(product)] if len(shape) > 1 else 1
    (k,) = product.op.reduce_axis
    column = int(k.dom.extent) * lanes * tir.const(0, product.dtype).dtype.bits // 8
    return FittedTile(fitting_rows(target, rows, shape[-1] // lanes, column), lanes)


def convolution_tile(conv: te.Tensor, target: Target) -> FittedTile | None:
    """Pixels and channels of a convolution of NHWC data; None where channels fill no vectors.

    A tile does not reach over two groups, whose channels are sums over different inputs.
    """
    _, height, width, filters = const_shape(conv.shape)
    groups = _groups(conv)
    lanes = fitting_lanes(target, conv.dtype, filters // groups)
    if lanes < 4:
        return None
    vectors = filters // groups // lanes
    tile = fitting_tile(target, height, width, vectors)
    if _products_a_load(tile) < _FEW_PRODUCTS and width > 1:
        # No good divisor: pixels of a row that leave a remainder, which is a tile of its own.
        row = fitting_rows(target, width, vectors)
        tile = max(tile, RegisterTile(1, row.rows, row.vectors), key=_products_a_load)
    return FittedTile(tile, lanes)


def _groups(conv: te.Tensor) -> int:
    data, weight = conv.op.input_tensors
    if str(conv.op.tag) != "group_conv2d_nhwc":
        return 1
    return const_shape(data.shape)[3] // const_shape(weight.shape)[2]
