"""Matrix products by the BLAS of NumPy, as external operations of te."""

from __future__ import annotations

from typing import Any

from tvm import te

from .external_products import external_product

__all__ = ["batch_matmul", "matmul"]


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """``lhs @ rhs`` of two matrices, either of them transposed first.

    Parameters
    ----------
    lhs : float tensor of shape (m, k), or (k, m) if `transa`.
    rhs : of shape (k, n), or (n, k) if `transb`.
    kwargs : of ``te.extern``, such as a name.

    Raises
    ------
    ValueError : an operand is no matrix.
    """
    return external_product("tvm.contrib.cblas.matmul", lhs, rhs, transa, transb, 2, kwargs)


def batch_matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    iterative: bool = False,
    **kwargs: Any,
) -> te.Tensor:
    """The same for each pair of matrices of two batches, of shapes (batch, m, k) and (batch, k, n).

    Parameters
    ----------
    iterative : one call of the library a pair, which gives the same values.

    Raises
    ------
    ValueError : an operand is no batch of matrices.
    """
    name = "tvm.contrib.cblas.batch_matmul" + ("_iterative" if iterative else "")
    return external_product(name, lhs, rhs, transa, transb, 3, kwargs)
