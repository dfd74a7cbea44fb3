"""Matrix products of NVIDIA's cuBLAS, as external operations of te.

cuBLAS is not linked here. Whoever links it registers the functions that a built program calls,
`tvm.contrib.cublas.matmul` and `batch_matmul`; the error of a call names the one that is missing.
"""

from __future__ import annotations

from tvm import te

from .external_products import external_product

__all__ = ["batch_matmul", "matmul"]


def matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    dtype: str | None = None,
) -> te.Tensor:
    """``lhs @ rhs`` of two matrices, either of them transposed first.

    Parameters
    ----------
    dtype : element type of the result; by default that of `lhs`.

    Raises
    ------
    ValueError : an operand is no matrix.
    """
    return external_product("tvm.contrib.cublas.matmul", lhs, rhs, transa, transb, 2, {}, dtype)


def batch_matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    dtype: str | None = None,
) -> te.Tensor:
    """The same for each pair of matrices of two batches.

    Parameters
    ----------
    dtype : element type of the result; by default that of `lhs`.

    Raises
    ------
    ValueError : an operand is no batch of matrices.
    """
    return external_product(
        "tvm.contrib.cublas.batch_matmul", lhs, rhs, transa, transb, 3, {}, dtype
    )
