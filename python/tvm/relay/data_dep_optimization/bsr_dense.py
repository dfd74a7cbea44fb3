"""Products with weights that are mostly zero."""

from __future__ import annotations

from ..analysis.sparse_dense import process_params
from ..expr import Function
from ..transform import DenseToSparse
from .values import Values, through

__all__ = ["convert"]


def convert(
    func: Function, params: Values, blocksize: tuple[int, int], sparsity_threshold: float
) -> tuple[Function, Values]:
    """The function with ``nn.sparse_dense`` where weights are sparse, and the parameters for it.

    Parameters
    ----------
    params : by name; changed in place: a weight ``w`` becomes ``w.data``, ``w.indices`` and
        ``w.indptr``.
    blocksize : rows and columns of blocks. sparsity_threshold : the least share of zeros.
    """
    found = process_params(func, params, blocksize, sparsity_threshold)
    return through(func, DenseToSparse(found.weight_name, found.weight_shape)), params
