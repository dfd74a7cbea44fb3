"""Matrix products of AMD's rocBLAS, as external operations of te.

rocBLAS is not linked here. Whoever links it registers the functions that a built program calls,
`tvm.contrib.rocblas.matmul` and `batch_matmul`; the error of a call names the one that is missing.
"""

from __future__ import annotations

from tvm import te

from .external_products import external_product

__all__ = ["batch_matmul", "matmul"]


def matmul(lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False) -> te.Tensor:
    """``lhs @ rhs`` of two matrices, either of them transposed first.

    Raises
    ------
    ValueError : an operand is no matrix.
    """
    return external_product("tvm.contrib.rocblas.matmul", lhs, rhs, transa, transb, 2, {})


def batch_matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False
) -> te.Tensor:
    """The same for each pair of matrices of two batches.

    Raises
    ------
    ValueError : an operand is no batch of matrices.
    """
    return external_product("tvm.contrib.rocblas.batch_matmul", lhs, rhs, transa, transb, 3, {})
