"""Products with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import topi

from ...expr import Call, RelayExpr, exact_const
from ..registry import OpPattern, define, make

__all__ = ["sparse_dense"]


def _operand(part: Any) -> Any:
    return part if isinstance(part, RelayExpr) else exact_const(np.asarray(part))


def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool = False) -> Call:
    """``dense_mat @ sparse_mat.T``, or ``sparse_mat @ dense_mat.T``.

    Parameters
    ----------
    dense_mat : (m, k) for a sparse matrix of (n, k).
    sparse_mat : ``scipy.sparse.csr_matrix`` or ``bsr_matrix``, or its data, indices and indptr as
        arrays or expressions, by these names or in this order.
    sparse_lhs : whether the sparse matrix is the left one.
    """
    if hasattr(sparse_mat, "indices"):
        parts = [sparse_mat.data, sparse_mat.indices, sparse_mat.indptr]
    else:
        parts = list(sparse_mat)
    operands = [_operand(part) for part in [dense_mat, *parts]]
    return make("nn.sparse_dense", operands, sparse_lhs=sparse_lhs)


define(
    "nn.sparse_dense",
    topi.nn.sparse_dense,
    OpPattern.OPAQUE,
    settings={"sparse_lhs": False},
    num_inputs=4,
)
