"""Products with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import topi

from ...expr import Call, RelayExpr, TupleWrapper, exact_const
from ..registry import OpPattern, define, make

__all__ = ["sparse_add", "sparse_conv2d", "sparse_dense", "sparse_transpose"]


def _operand(part: Any) -> Any:
    return part if isinstance(part, RelayExpr) else exact_const(np.asarray(part))


def _parts(sparse_mat: Any) -> list[RelayExpr]:
    """Data, indices and indptr of a sparse matrix."""
    if hasattr(sparse_mat, "indices"):
        sparse_mat = (sparse_mat.data, sparse_mat.indices, sparse_mat.indptr)
    return [_operand(part) for part in sparse_mat]


def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool = False) -> Call:
    """``dense_mat @ sparse_mat.T``, or ``sparse_mat @ dense_mat.T``.

    Parameters
    ----------
    dense_mat : (m, k) for a sparse matrix of (n, k).
    sparse_mat : ``scipy.sparse.csr_matrix`` or ``bsr_matrix``, or its data, indices and indptr as
        arrays or expressions, by these names or in this order.
    sparse_lhs : whether the sparse matrix is the left one.
    """
    operands = [_operand(dense_mat), *_parts(sparse_mat)]
    return make("nn.sparse_dense", operands, sparse_lhs=sparse_lhs)


def sparse_transpose(x: Any) -> TupleWrapper:
    """Data, indices and indptr of the transpose of a square sparse matrix of single elements."""
    return TupleWrapper(make("nn.sparse_transpose", _parts(x)), 3)


def sparse_add(dense_mat: Any, sparse_mat: Any) -> Call:
    """A matrix plus a sparse one of single elements."""
    return make("nn.sparse_add", [_operand(dense_mat), *_parts(sparse_mat)])


def sparse_conv2d(
    dense_mat: Any, sparse_mat: Any, layout: str = "NHWC", kernel_size: int = 1
) -> Call:
    """A convolution with a sparse weight; see :func:`tvm.topi.nn.sparse_conv2d`."""
    operands = [_operand(dense_mat), *_parts(sparse_mat)]
    return make("nn.sparse_conv2d", operands, layout=layout, kernel_size=kernel_size)


define(
    "nn.sparse_dense",
    topi.nn.sparse_dense,
    OpPattern.OPAQUE,
    settings={"sparse_lhs": False},
    num_inputs=4,
)
define("nn.sparse_add", topi.nn.sparse_add, OpPattern.OPAQUE, num_inputs=4)
define("nn.sparse_transpose", topi.nn.sparse_transpose, OpPattern.OPAQUE, num_inputs=3)
define(
    "nn.sparse_conv2d",
    topi.nn.sparse_conv2d,
    OpPattern.OPAQUE,
    settings={"layout": "NHWC", "kernel_size": 1},
    num_inputs=4,
)
