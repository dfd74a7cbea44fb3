"""Factors of matrices, and solutions of systems of linear equations.

All functions take any number of dimensions in front, one matrix for each index of them; these are
what runs in parallel. The algorithms are those of G. Golub and C. Van Loan, "Matrix Computations"
(4th edition, 2013), sections 3.1, 3.4 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir

from .launch import each
from .utils import Extent, get_const_tuple, prod, smallest, unravel_index

__all__ = ["cholesky", "lu_factor", "lu_solve", "solve_triangular"]


class _Matrix:
    """A matrix of a buffer by two indices, for one index of the dimensions in front."""

    def __init__(self, buffer: Any, where: Sequence[Any]) -> None:
        self._buffer, self._where = buffer, tuple(where)

    def _whole(self, place: Any) -> tuple[Any, ...]:
        return (*self._where, *(place if isinstance(place, tuple) else (place,)))

    def __getitem__(self, place: Any) -> Any:
        return self._buffer[self._whole(place)]

    def __setitem__(self, place: Any, value: Any) -> None:
        self._buffer[self._whole(place)] = value


def _for_each_matrix(
    operands: Sequence[te.Tensor],
    shapes: Sequence[Sequence[Extent]],
    dtypes: Sequence[str],
    name: str,
    body: Callable[..., None],
) -> Any:
    """One statement for every matrix; the body gets the builder, then operands and results."""
    batch = get_const_tuple(operands[0].shape)[:-2]

    def write(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        buffers = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        with each(ib, prod(batch), "matrix") as index:
            where = unravel_index(index, batch) if batch else ()
            body(ib, *(_Matrix(buffer, where) for buffer in buffers))
        return ib.get()

    return te.extern(
        [[*batch, *shape] for shape in shapes], list(operands), write, name=name,
        dtype=list(dtypes), tag=name,
    )  # fmt: skip


def _copy(ib: Any, source: Any, result: Any, rows: Extent, columns: Extent) -> None:
    with ib.for_range(0, rows) as i, ib.for_range(0, columns) as j:
        result[i, j] = source[i, j]


def _swap(ib: Any, matrix: Any, dtype: str, row: Any, other: Any, columns: Extent) -> None:
    kept = ib.allocate(dtype, (1,), "kept", scope="local")
    with ib.if_scope(row != other), ib.for_range(0, columns) as j:
        kept[0] = matrix[row, j]
        matrix[row, j] = matrix[other, j]
        matrix[other, j] = kept[0]


def lu_factor(a: te.Tensor) -> list[te.Tensor]:
    """Triangular factors of matrices with their rows in another order: ``P a = L U``.

    Parameters
    ----------
    a : of shape (..., rows, columns).

    Returns
    -------
    Both factors in one array of a's shape, L below the diagonal, of which it has ones; and, int32
    of shape (..., min(rows, columns)), the row, counted from one, that each step swaps its own
    with, the one of the largest element. Where all of a column is zero, so is the diagonal.
    """
    rows, columns = get_const_tuple(a.shape)[-2:]
    steps = smallest(rows, columns)

    def body(ib: Any, source: Any, lu: Any, pivots: Any) -> None:
        _copy(ib, source, lu, rows, columns)
        best = ib.allocate("int32", (1,), "best", scope="local")
        with ib.for_range(0, steps) as k:
            best[0] = tir.Cast("int32", k)
            with (
                ib.for_range(k + 1, rows) as i,
                ib.if_scope(tir.abs(lu[i, k]) > tir.abs(lu[best[0], k])),
            ):
                best[0] = tir.Cast("int32", i)
            pivots[k] = best[0] + 1
            _swap(ib, lu, a.dtype, k, best[0], columns)
            with ib.if_scope(lu[k, k] != 0), ib.for_range(k + 1, rows) as i:
                lu[i, k] = lu[i, k] / lu[k, k]
                with ib.for_range(k + 1, columns) as j:
                    lu[i, j] = lu[i, j] - lu[i, k] * lu[k, j]

    return _for_each_matrix(
        [a], [[rows, columns], [steps]], [a.dtype, "int32"], "T_lu_factor", body
    )


def _substitute(
    ib: Any, a: Any, x: Any, size: Extent, columns: Extent, upper: bool, has_ones: bool
) -> None:
    """Rows of x, one after another, less what the rows known so far add to them."""
    with ib.for_range(0, size) as step:
        i = size - 1 - step if upper else step
        begin, end = (i + 1, size) if upper else (0, i)
        with ib.for_range(begin, end) as k, ib.for_range(0, columns) as j:
            x[i, j] = x[i, j] - a[i, k] * x[k, j]
        if not has_ones:
            with ib.for_range(0, columns) as j:
                x[i, j] = x[i, j] / a[i, i]


def solve_triangular(
    a: te.Tensor, b: te.Tensor, upper: bool, unitriangular: bool = False
) -> te.Tensor:
    """The solution of ``a x = b`` for matrices of which one triangle is read.

    Parameters
    ----------
    a : of shape (..., n, n).
    b : of shape (..., n, columns).
    unitriangular : the diagonal is taken to be of ones.
    """
    size, columns = get_const_tuple(b.shape)[-2:]

    def body(ib: Any, left: Any, right: Any, x: Any) -> None:
        _copy(ib, right, x, size, columns)
        _substitute(ib, left, x, size, columns, upper, unitriangular)

    return _for_each_matrix([a, b], [[size, columns]], [b.dtype], "T_solve_triangular", body)


def lu_solve(lu: te.Tensor, pivots: te.Tensor, b: te.Tensor) -> te.Tensor:
    """The solution of ``a x = b`` by what :func:`lu_factor` makes of a.

    Parameters
    ----------
    lu : of shape (..., n, n).
    pivots : of shape (..., n).
    b : of shape (..., n, columns).
    """
    size, columns = get_const_tuple(b.shape)[-2:]

    def body(ib: Any, factors: Any, swaps: Any, right: Any, x: Any) -> None:
        _copy(ib, right, x, size, columns)
        with ib.for_range(0, size) as k:
            _swap(ib, x, b.dtype, k, swaps[k] - 1, columns)
        _substitute(ib, factors, x, size, columns, upper=False, has_ones=True)
        _substitute(ib, factors, x, size, columns, upper=True, has_ones=False)

    return _for_each_matrix([lu, pivots, b], [[size, columns]], [b.dtype], "T_lu_solve", body)


def cholesky(a: te.Tensor) -> te.Tensor:
    """The lower triangular factor of symmetric matrices, of which the lower triangle is read.

    Parameters
    ----------
    a : of shape (..., n, n).

    Returns
    -------
    l, with ``l l^T = a``: NaN from the first row on where a is not positive definite.
    """
    size = get_const_tuple(a.shape)[-1]

    def body(ib: Any, source: Any, factor: Any) -> None:
        total = ib.allocate(a.dtype, (1,), "total", scope="local")
        with ib.for_range(0, size) as i:
            with ib.for_range(0, i + 1) as j:
                total[0] = source[i, j]
                with ib.for_range(0, j) as k:
                    total[0] = total[0] - factor[i, k] * factor[j, k]
                with ib.if_scope(i == j):
                    factor[i, i] = tir.sqrt(total[0])
                with ib.else_scope():
                    factor[i, j] = total[0] / factor[j, j]
            with ib.for_range(i + 1, size) as j:
                factor[i, j] = tir.const(0, a.dtype)

    return _for_each_matrix([a], [[size, size]], [a.dtype], "T_cholesky", body)
