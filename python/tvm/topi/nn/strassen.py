"""Matrix products by seven products of half the size instead of eight, after Strassen (1969).

Numerische Mathematik 13, 354-356. One level: the sums of weights are made when the network is
built, those of data once for a product, and what the seven products add up to while they are in
the first-level cache. Rows and columns are halved in neighbouring blocks, so that a kernel needs
few of them at a time.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tvm import te, tir

from ..utils import ceil_div, const_shape
from .combination import combination

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "strassen_block",
    "strassen_gain",
    "strassen_half_rows",
    "strassen_product",
    "strassen_weight",
]

_PRODUCTS = 7
_MOST_HALF_ROWS = 32
# Of fewer, vectors of weights are read for too few products.
_LEAST_HALF_ROWS = 4


def _matrix(rows: list[list[int]]) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in rows]


# A row for each quadrant (11, 12, 21, 22) of the left and right operand, a column for each product.
_LEFT = _matrix(
    [
        [1, 0, 1, 0, 1, -1, 0],
        [0, 0, 0, 0, 1, 0, 1],
        [0, 1, 0, 0, 0, 1, 0],
        [1, 1, 0, 1, 0, 0, -1],
    ]
)
_RIGHT = _matrix(
    [
        [1, 1, 0, -1, 0, 1, 0],
        [0, 0, 1, 0, 0, 1, 0],
        [0, 0, 0, 1, 0, 0, 1],
        [1, 0, -1, 0, 1, 0, 1],
    ]
)
# A row for each product, a column for each quadrant of the result.
_RESULT = _matrix(
    [
        [1, 0, 0, 1],
        [0, 0, 1, -1],
        [0, 1, 0, 1],
        [1, 0, 1, 0],
        [-1, 1, 0, 0],
        [0, 0, 0, 1],
        [1, 0, 0, 0],
    ]
)


def strassen_block(columns: int) -> int | None:
    """Columns of the result that stand in one half before the other's; None where none fit."""
    return next((block for block in (48, 32) if columns % (2 * block) == 0), None)


def strassen_half_rows(rows: int) -> int:
    """Rows in one half before the other's: what fills the last block best, not too many or few."""
    most = min(_MOST_HALF_ROWS, ceil_div(rows, 2))
    candidates = range(min(_LEAST_HALF_ROWS, most), most + 1)
    return min(candidates, key=lambda half: (ceil_div(rows, 2 * half) * 2 * half, -half))


def strassen_weight(weight: np.ndarray, block: int) -> np.ndarray:
    """(K, N) weights as seven sums of quadrants, in panels: (7, N / (2 block), K / 2, block).

    Raises
    ------
    ValueError : K is odd, or N no multiple of 2 block.
    """
    import numpy as np

    depth, columns = weight.shape
    if depth % 2 or columns % (2 * block):
        raise ValueError(
            f"topi.nn.strassen_weight: weights of {depth} x {columns} have no halves in blocks of "
            f"{block} columns"
        )
    halves = weight.reshape(2, depth // 2, columns // (2 * block), 2, block).astype("float64")
    quadrants = halves.transpose(0, 3, 2, 1, 4).reshape(4, -1, depth // 2, block)
    sums = np.einsum("qp,q...->p...", np.array(_RIGHT, dtype="float64"), quadrants)
    return np.ascontiguousarray(sums.astype(weight.dtype))


def strassen_product(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """data (M, K) times weights from :func:`strassen_weight`, of shape (M, N).

    The stages before it are the sums of data, (7, rows, K / 2), and their products, (7, rows,
    N / 2), where rows are half of those of the result, filled up to whole blocks.
    """
    rows, depth = const_shape(data.shape)
    _, panels, half_depth, block = const_shape(weight.shape)
    if depth != 2 * half_depth:
        raise ValueError(
            f"topi.nn.strassen_product: data of {depth} columns does not fit weights of "
            f"{2 * half_depth} rows"
        )
    half = strassen_half_rows(rows)
    half_rows = ceil_div(rows, 2 * half) * half

    def place(i: Any, size: int, second: int) -> Any:
        return tir.floordiv(i, size) * (2 * size) + second * size + tir.floormod(i, size)

    def read(i: tir.Var, k: tir.Var, quadrant: int) -> tir.PrimExpr:
        row = place(i, half, quadrant // 2)
        value = data[row, k + quadrant % 2 * half_depth]
        if rows == 2 * half_rows:
            return value
        return tir.if_then_else(row < rows, value, tir.const(0, data.dtype))

    sums = te.compute(
        (_PRODUCTS, half_rows, half_depth),
        lambda p, i, k: combination(p, _LEFT, lambda quadrant: read(i, k, quadrant)),
        name="strassen_sums",
    )
    k = te.reduce_axis((0, half_depth), name="k")
    products = te.compute(
        (_PRODUCTS, half_rows, panels * block),
        lambda p, i, j: te.sum(
            sums[p, i, k] * weight[p, tir.floordiv(j, block), k, tir.floormod(j, block)], axis=k
        ),
        name="strassen_products",
    )

    def element(i: tir.Var, j: tir.Var) -> tir.PrimExpr:
        row = tir.floordiv(i, 2 * half) * half + tir.floormod(i, half)
        column = tir.floordiv(j, 2 * block) * block + tir.floormod(j, block)
        quadrant: Any = tir.floormod(tir.floordiv(i, half), 2) * 2 + tir.floormod(
            tir.floordiv(j, block), 2
        )
        return combination(quadrant, _RESULT, lambda p: products[p, row, column])

    return te.compute(
        (rows, 2 * panels * block), element, name="strassen_product", tag="strassen_product"
    )


def strassen_gain(rows: int, depth: int, columns: int) -> float:
    """Estimated time of the plain product over that of this one, by multiply-adds and sums."""
    half = strassen_half_rows(rows)
    filled = ceil_div(rows, 2 * half) * 2 * half
    sums, results = 4.0 * filled * depth, 6.0 * filled * columns
    return rows * depth * columns / (7 / 8 * filled * depth * columns + sums + results)
