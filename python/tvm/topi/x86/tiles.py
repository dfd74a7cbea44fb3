"""Register tiles chosen by shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from tvm import te, tir
from tvm.target import Target

from .. import tag
from ..utils import as_int, const_shape
from .conv2d import RegisterTile
from .vectors import vector_lanes

__all__ = [
    "FittedTile",
    "convolution_tile",
    "fitting_lanes",
    "fitting_rows",
    "fitting_tile",
    "grouped_tile",
    "groups_of",
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
# What a tile that leaves remainders must save by the estimate, and what each remainder costs: it is
# code of its own, which is fetched once more.
_UNEVEN_GAIN = 0.97
_REMAINDER = 1.03
# Multiply-adds in the time in which a vector is copied.
_COPY = 3
# Vectors of a tile with remainders; more leave too few pixels for the panel that is read.
_UNEVEN_VECTORS = 6


@dataclass(frozen=True)
class FittedTile:
    """A register tile of some vectors of columns, or output channels.

    Attributes
    ----------
    lanes : elements of a vector. vectors : of all columns; the tile's may leave a remainder.
    """

    tile: RegisterTile
    lanes: int
    vectors: int

    @property
    def block(self) -> int:
        """Columns, or output channels, of the tile."""
        return self.tile.vectors * self.lanes

    @property
    def panel(self) -> int:
        """Columns that lie side by side in packed weights: tiles read whole panels."""
        return math.gcd(self.tile.vectors, self.vectors) * self.lanes

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


def _pieces(extent: int, size: int) -> list[tuple[int, int]]:
    """Sizes of the pieces that an extent is cut into, and how many there are of each."""
    whole, rest = divmod(extent, size)
    return [(size, whole)] * (whole > 0) + [(rest, 1)] * (rest > 0)


def _cycles(
    target: Target,
    extents: tuple[int, int, int],
    tile: RegisterTile,
    vector_column_bytes: int,
) -> float:
    """Of a step of the reduction, for each vector of columns, over all rows and columns of pixels.

    Parameters
    ----------
    extents : rows, columns and vectors, of which the tile may leave remainders.
    """
    # Few rows do not hide that each reads all vectors from the second cache again, and wide
    # units take more than that cache gives in the time of any tile.
    far = tile.vectors * vector_column_bytes > target.cache_bytes[0]
    waits = far and (tile.rows * tile.columns < _FEW_ROWS or target.has_wide_units)
    rows, columns, vectors = extents
    total = 0.0
    for (height, down), (width, across), (wide, panels) in itertools.product(
        _pieces(rows, tile.rows), _pieces(columns, tile.columns), _pieces(vectors, tile.vectors)
    ):
        pixels = height * width
        each = max(pixels * wide, _HIDE_LATENCY) + (pixels + wide) / 4 + waits * wide
        total += down * across * panels * each
    return total / vectors


@lru_cache(maxsize=1024)
def fitting_rows(
    target: Target, rows: int, vectors: int, vector_column_bytes: int = 0, uneven: bool = False
) -> RegisterTile:
    """The tile of rows and vectors for which a step of a product takes least, over all rows.

    Rows may leave a remainder, which is a tile of its own.

    Parameters
    ----------
    vector_column_bytes : size of one vector at all steps of the reduction.
    uneven : whether vectors may leave a remainder, too.
    """

    def best(widths: Iterable[int]) -> tuple[float, RegisterTile]:
        tiles = [
            RegisterTile(height, 1, wide)
            for height, wide in itertools.product(range(1, min(rows, 16) + 1), widths)
        ]
        fitting = [tile for tile in tiles if tile.registers() <= target.num_vector_registers]
        costs = [
            (_cycles(target, (rows, 1, vectors), tile, vector_column_bytes), tile)
            for tile in fitting
        ]
        return min(costs, key=lambda cost: (cost[0], -cost[1].rows))

    cycles, tile = best(_divisors(vectors))
    if uneven:
        fewer, other = best(range(1, min(vectors, _UNEVEN_VECTORS) + 1))
        if fewer < _UNEVEN_GAIN * cycles:
            return other
    return tile


@lru_cache(maxsize=1024)
def _uneven_tile(
    target: Target, extents: tuple[int, int, int], vector_column_bytes: int, than: RegisterTile
) -> RegisterTile:
    """A tile of pixels that leaves remainders, or the given one where that does not pay."""
    rows, columns, vectors = extents
    tiles = [
        RegisterTile(*sizes)
        for sizes in itertools.product(
            range(1, min(rows, 4) + 1),
            range(1, min(columns, 16) + 1),
            range(1, min(vectors, _UNEVEN_VECTORS) + 1),
        )
    ]

    def cycles(tile: RegisterTile) -> float:
        sizes = (tile.rows, tile.columns, tile.vectors)
        remainders = sum(extent % size > 0 for extent, size in zip(extents, sizes))
        # A copy of the code for each; of more than two, tests would stay inside of the loops.
        extra = _REMAINDER**remainders if remainders <= 2 else math.inf
        return extra * _cycles(target, extents, tile, vector_column_bytes)

    most = target.num_vector_registers
    fitting = [tile for tile in tiles if most / 2 <= tile.registers() <= most]
    best = min(fitting, key=lambda tile: (cycles(tile), -tile.columns), default=than)
    return best if cycles(best) < _UNEVEN_GAIN * cycles(than) else than


@lru_cache(maxsize=1024)
def grouped_tile(
    target: Target,
    extents: tuple[int, int, int],
    steps: int,
    window_rows: int,
    whole: bool = False,
) -> RegisterTile:
    """Pixels, which may leave remainders, and vectors of a group, which do not.

    A group has few filters, so what it costs to bring the rows of its window near counts as well.

    Parameters
    ----------
    steps : of the reduction. window_rows : of which a tile reads one less than it has itself, more.
    whole : whether a tile has all vectors of the group.
    """
    rows, columns, vectors = extents
    widths = [vectors] if whole else _divisors(vectors)
    tiles = [
        RegisterTile(*sizes)
        for sizes in itertools.product(
            range(1, min(rows, 4) + 1), range(1, min(columns, 28) + 1), widths
        )
    ]

    def cycles(tile: RegisterTile) -> float:
        copied = -(-rows // tile.rows) * (tile.rows + window_rows - 1) * columns
        return _cycles(target, extents, tile, 0) * steps + copied * _COPY

    fitting = [tile for tile in tiles if tile.registers() <= target.num_vector_registers]
    return min(fitting, key=lambda tile: (cycles(tile), -tile.columns))


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


def product_tile(
    product: te.Tensor,
    target: Target,
    uneven: bool = False,
    columns: int | None = None,
    ends_inside: bool = False,
) -> FittedTile | None:
    """Rows and columns of a matrix product; None where its columns fill no vectors.

    Parameters
    ----------
    uneven : whether the tile's vectors may leave a remainder, as packed weights allow.
    columns : as many instead of the product's.
    ends_inside : whether columns may end inside of a vector, as they may in a right side that is
        read where it is. Its lanes behind the end are a loop of their own.
    """
    shape = (*const_shape(product.shape)[:-1], columns or const_shape(product.shape)[-1])
    lanes = fitting_lanes(target, product.dtype, shape[-1])
    widest = vector_lanes(target, product.dtype)
    if ends_inside and lanes < widest <= shape[-1]:
        lanes, uneven = widest, True
    if lanes < 4:
        return None
    rows = shape[row_axis(product)] if len(shape) > 1 else 1
    (k,) = product.op.reduce_axis
    column = as_int(k.dom.extent) * lanes * tir.const(0, product.dtype).dtype.bits // 8
    vectors = shape[-1] // lanes
    return FittedTile(fitting_rows(target, rows, vectors, column, uneven), lanes, vectors)


def convolution_tile(
    conv: te.Tensor, target: Target, uneven: bool = False, filters: int | None = None
) -> FittedTile | None:
    """Pixels and channels of a convolution of NHWC data; None where channels fill no vectors.

    A tile does not reach over two groups, whose channels are sums over different inputs.

    Parameters
    ----------
    uneven : whether the tile's vectors may leave a remainder, as packed weights allow.
    filters : as many instead of the convolution's.
    """
    _, height, width, own_filters = const_shape(conv.shape)
    filters = filters or own_filters
    groups = groups_of(conv)
    lanes = fitting_lanes(target, conv.dtype, filters // groups)
    if lanes < 4:
        return None
    vectors = filters // groups // lanes
    if groups > 1:
        steps = math.prod(as_int(axis.dom.extent) for axis in conv.op.reduce_axis)
        rows = as_int(conv.op.reduce_axis[0].dom.extent)
        grouped = grouped_tile(target, (height, width, vectors), steps, rows)
        return FittedTile(grouped, lanes, vectors)
    tile = fitting_tile(target, height, width, vectors)
    if _products_a_load(tile) < _FEW_PRODUCTS and width > 1:
        # No good divisor: pixels of a row that leave a remainder, which is a tile of its own.
        row = fitting_rows(target, width, vectors)
        tile = max(tile, RegisterTile(1, row.rows, row.vectors), key=_products_a_load)
    if uneven:
        steps = math.prod(as_int(axis.dom.extent) for axis in conv.op.reduce_axis)
        column = steps * lanes * tir.const(0, conv.dtype).dtype.bits // 8
        tile = _uneven_tile(target, (height, width, vectors), column, tile)
    return FittedTile(tile, lanes, vectors)


def groups_of(conv: te.Tensor) -> int:
    """Groups of a convolution of NHWC data."""
    data, weight = conv.op.input_tensors
    if str(conv.op.tag) != "group_conv2d_nhwc":
        return 1
    return const_shape(data.shape)[3] // const_shape(weight.shape)[2]
