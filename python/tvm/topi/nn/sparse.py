"""Products with a matrix of which only the elements, or the blocks, that are not 0 are stored."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ..utils import as_int, get_const_tuple, simplify

__all__ = ["sparse_dense", "sparse_dense_sp_lhs", "sparse_dense_sp_rhs"]


class _Rows:
    """Rows of a sparse matrix: elements (CSR) or blocks (BSR) of each, and their columns."""

    def __init__(self, where: str, data: te.Tensor, indices: te.Tensor, indptr: te.Tensor) -> None:
        ranks = len(data.shape), len(indices.shape), len(indptr.shape)
        if ranks not in ((1, 1, 1), (3, 1, 1)):
            raise ValueError(
                f"topi.nn.{where}: a sparse matrix is data of one dimension (CSR) or three (BSR: "
                "blocks, rows and columns of a block), with indices and indptr of one; got "
                f"{ranks[0]}, {ranks[1]} and {ranks[2]} dimensions"
            )
        self.data, self.indices, self.indptr = data, indices, indptr
        shape = get_const_tuple(data.shape)
        self.block = (as_int(shape[1]), as_int(shape[2])) if len(shape) == 3 else (1, 1)
        self.count = simplify((get_const_tuple(indptr.shape)[0] - 1) * self.block[0])

    def dot(self, row: Any, vector: Any) -> Any:
        """Sum of the products of a row with ``vector(column)``, in the type of the data."""
        height, _ = self.block
        return self.dot_of(row // height, row % height, vector)

    def dot_of(self, group: Any, within: Any, vector: Any) -> Any:
        """`dot` of the row `within` a group of them: blocks that lie beside each other."""
        _, width = self.block
        first = self.indptr[group]
        at = te.reduce_axis((0, self.indptr[group + 1] - first), "block")
        if len(self.data.shape) == 1:
            product = self.data[first + at] * vector(self.indices[first + at])
            return te.sum(product, axis=at)
        inside = te.reduce_axis((0, width), "column")
        column = self.indices[first + at] * width + inside
        product = self.data[first + at, within, inside] * vector(column)
        return te.sum(product, axis=[at, inside])


def sparse_dense_sp_rhs(
    data: te.Tensor, weight_data: te.Tensor, weight_indices: te.Tensor, weight_indptr: te.Tensor
) -> te.Tensor:
    """``data @ weight.T`` with a sparse weight.

    Parameters
    ----------
    data : (m, k).
    weight_data, weight_indices, weight_indptr : of a matrix (n, k), as ``scipy.sparse`` has them:
        ``csr_matrix`` or ``bsr_matrix``. Columns are below k, which is not checked.

    Returns
    -------
    (m, n).

    Raises
    ------
    ValueError : the arrays have the dimensions of neither kind.
    """
    rows = _Rows("sparse_dense", weight_data, weight_indices, weight_indptr)
    m, _ = get_const_tuple(data.shape)
    if len(weight_data.shape) == 1:
        return te.compute(
            (m, rows.count),
            lambda i, j: rows.dot(j, lambda column: data[i, column]),
            name="T_sparse_dense",
            tag="sparse_dense_sp_rhs_csrmm",
        )
    # A stage of whole blocks, since their loops have constant lengths that a schedule can use.
    height = rows.block[0]
    blocks = te.compute(
        (m, get_const_tuple(weight_indptr.shape)[0] - 1, height),
        lambda i, block, within: rows.dot_of(block, within, lambda column: data[i, column]),
        name="T_sparse_dense_block",
        tag="sparse_dense_sp_rhs_bsrmm_block",
    )
    return te.compute(
        (m, rows.count),
        lambda i, j: blocks[i, tir.indexdiv(j, height), tir.indexmod(j, height)],
        name="T_sparse_dense",
        tag="sparse_dense_sp_rhs_bsrmm",
    )


def sparse_dense_sp_lhs(
    data_data: te.Tensor, data_indices: te.Tensor, data_indptr: te.Tensor, weight: te.Tensor
) -> te.Tensor:
    """``data @ weight.T`` with sparse data of (m, k) and a weight of (n, k).

    Errors are those of :func:`sparse_dense_sp_rhs`.
    """
    rows = _Rows("sparse_dense", data_data, data_indices, data_indptr)
    n, _ = get_const_tuple(weight.shape)
    return te.compute(
        (rows.count, n),
        lambda i, j: rows.dot(i, lambda column: weight[j, column]),
        name="T_sparse_dense",
        tag="sparse_dense_sp_lhs",
    )


def sparse_dense(
    dense_data: te.Tensor,
    sparse_data: te.Tensor,
    sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor,
    sparse_lhs: bool = False,
) -> te.Tensor:
    """``dense @ sparse.T``, or ``sparse @ dense.T`` where the sparse matrix comes first.

    See :func:`sparse_dense_sp_rhs` and :func:`sparse_dense_sp_lhs`.
    """
    if sparse_lhs:
        return sparse_dense_sp_lhs(sparse_data, sparse_indices, sparse_indptr, dense_data)
    return sparse_dense_sp_rhs(dense_data, sparse_data, sparse_indices, sparse_indptr)
