"""Transform matrices of Winograd's minimal filtering, made exactly from interpolation points."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tvm import te, tir

__all__ = ["const_matrix", "cook_toom_matrices", "winograd_transform_matrices"]

Matrix = list[list[Fraction]]

# Small numbers and their inverses in pairs of both signs: rounding errors grow with their powers.
_POINTS = [Fraction(0)] + [
    sign * point
    for point in (Fraction(1), Fraction(2), Fraction(1, 2), Fraction(4), Fraction(1, 4))
    for sign in (1, -1)
]


def _product_of_roots(roots: Sequence[Fraction]) -> list[Fraction]:
    """Coefficients of prod (x - root), the constant one first."""
    result = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *result]
        result = [high - root * low for high, low in zip(shifted, [*result, Fraction(0)])]
    return result


def cook_toom_matrices(
    tile_size: int, kernel_size: int, points: Sequence[Fraction] | None = None
) -> tuple[Matrix, Matrix, Matrix]:
    """Matrices A, B, G of the algorithm F(tile_size, kernel_size), after Cook and Toom.

    With d the n = tile_size + kernel_size - 1 inputs and g the kernel, the outputs of a correlation
    are ``A.T @ ((G @ g) * (B.T @ d))``. The algorithm multiplies polynomials by their values at
    n - 1 points and at infinity; its transpose is the filter.

    Parameters
    ----------
    points : n - 1 different ones; by default 0, 1, -1, 2, -2, 1/2, ...

    Returns
    -------
    A (n, tile_size), B (n, n) and G (n, kernel_size), exact.

    Raises
    ------
    ValueError : the points are not as many as needed, or not different.
    """
    n = tile_size + kernel_size - 1
    chosen = _POINTS[: n - 1] if points is None else list(points)
    if len(set(chosen)) != n - 1:
        raise ValueError(
            f"topi.nn: F({tile_size}, {kernel_size}) needs {n - 1} different points, got "
            f"{len(set(chosen))}"
        )

    def powers(count: int) -> Matrix:
        """Values of the monomials at the points; at infinity, the highest coefficient."""
        rows = [[point**k for k in range(count)] for point in chosen]
        return [*rows, [Fraction(int(k == count - 1)) for k in range(count)]]

    a, g = powers(tile_size), powers(kernel_size)
    columns = []
    for i, point in enumerate(chosen):
        others = chosen[:i] + chosen[i + 1 :]
        scale = Fraction(1)
        for other in others:
            scale *= point - other
        g[i] = [value / scale for value in g[i]]
        columns.append([*_product_of_roots(others), Fraction(0)])
    columns.append(_product_of_roots(chosen))
    b = [list(row) for row in zip(*columns)]
    return a, b, g


def const_matrix(
    matrix: Sequence[Sequence[Any]], dtype: str, name: str = "const_matrix"
) -> te.Tensor:
    """A tensor of given numbers, written into the code.

    A schedule inlines it and unrolls the loops over it, so that what is multiplied by 0 or 1 goes;
    the attribute ``const_matrix`` says so to the search.
    """
    rows, columns = len(matrix), len(matrix[0])

    def body(i: Any, j: Any) -> Any:
        value = tir.const(0.0, dtype)
        for r in range(rows):
            for c in range(columns):
                if matrix[r][c]:
                    here = tir.all((i % rows).equal(r), (j % columns).equal(c))
                    value = tir.Select(here, tir.const(float(matrix[r][c]), dtype), value)
        return value

    return te.compute((rows, columns), body, name=name, attrs={"const_matrix": True})


def winograd_transform_matrices(
    tile_size: int, kernel_size: int, out_dtype: str
) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """:func:`cook_toom_matrices` as tensors."""
    a, b, g = cook_toom_matrices(tile_size, kernel_size)
    return (
        const_matrix(a, out_dtype, "A"),
        const_matrix(b, out_dtype, "B"),
        const_matrix(g, out_dtype, "G"),
    )
