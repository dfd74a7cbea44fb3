"""Weights that are worth storing as sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import tvm
from tvm.ir import Op, RelayExpr

from ..expr import Call, Var
from ..expr_functor import post_order_visit
from ..op.registry import settings_of

__all__ = [
    "SparseWeights",
    "search_fc_transpose",
    "store_conv_weights",
    "store_dense_weights",
    "weight_rows",
]


class SparseWeights(NamedTuple):
    """Names of weights that were stored as sparse matrices, and extents of their three arrays."""

    weight_name: list[str]
    weight_shape: list[list[int]]


def _calls(expr: RelayExpr, name: str) -> Iterator[Call]:
    found: list[Call] = []

    def look(node: RelayExpr) -> None:
        if isinstance(node, Call) and isinstance(node.op, Op) and str(node.op.name) == name:
            found.append(node)

    post_order_visit(expr, look)
    yield from found


def search_fc_transpose(expr: RelayExpr) -> list[str]:
    """Names of variables whose transpose is the weight of a ``nn.dense``."""
    names = []
    for call in _calls(expr, "nn.dense"):
        for moved in [w for w in [call.args[1]] if isinstance(w, Call)]:
            is_transpose = isinstance(moved.op, Op) and str(moved.op.name) == "transpose"
            if is_transpose and isinstance(moved.args[0], Var):
                names.append(str(moved.args[0].name_hint))
    return list(dict.fromkeys(names))


def _store(
    params: dict[str, Any],
    name: str,
    rows: np.ndarray,
    block: tuple[int, int],
    found: SparseWeights,
) -> None:
    from scipy.sparse import bsr_matrix

    stored = bsr_matrix(rows, blocksize=block)
    del params[name]
    found.weight_name.append(name)
    found.weight_shape.append([*stored.data.shape, *stored.indices.shape, *stored.indptr.shape])
    for part in ("data", "indices", "indptr"):
        params[f"{name}.{part}"] = tvm.nd.array(getattr(stored, part))


def _is_sparse(weight: np.ndarray, rows: np.ndarray, block: tuple[int, int], least: float) -> bool:
    whole = all(extent % size == 0 for extent, size in zip(rows.shape, block))
    return whole and bool(1.0 - np.count_nonzero(weight) / weight.size >= least)


def store_dense_weights(
    expr: RelayExpr, params: dict[str, Any], block_size: tuple[int, int], sparsity_threshold: float
) -> SparseWeights:
    """Store weights of ``nn.dense`` in `params` as the three arrays of a matrix of blocks.

    Parameters
    ----------
    params : values by name; a weight ``w`` makes room for ``w.data``, ``w.indices``, ``w.indptr``.
    block_size : rows and columns of blocks; weights that they do not divide stay.
    sparsity_threshold : the least share of zeros.
    """
    found = SparseWeights([], [])
    for call in _calls(expr, "nn.dense"):
        name = str(call.args[1].name_hint) if isinstance(call.args[1], Var) else ""
        if name not in params:
            continue
        weight = params[name].numpy()
        if _is_sparse(weight, weight, block_size, sparsity_threshold):
            _store(params, name, weight, block_size, found)
    return found


def weight_rows(weight: np.ndarray, kernel_layout: str) -> np.ndarray:
    """A convolution's weight as a matrix (out channels, places of the kernel * in channels)."""
    moved = weight.transpose([kernel_layout.index(axis) for axis in "OHWI"])
    return np.ascontiguousarray(moved.reshape(moved.shape[0], -1))


def store_conv_weights(
    expr: RelayExpr,
    params: dict[str, Any],
    block_size: tuple[int, int],
    sparsity_threshold: float,
    layout: str,
    kernel_size: int,
) -> SparseWeights:
    """:func:`store_dense_weights` for ``nn.conv2d`` of a layout and a size of kernels.

    Weights become matrices (out channels, places of the kernel * in channels).
    """
    found = SparseWeights([], [])
    for call in _calls(expr, "nn.conv2d"):
        name = str(call.args[1].name_hint) if isinstance(call.args[1], Var) else ""
        s = settings_of(call)
        kernel = [int(k) for k in s["kernel_size"] or ()]
        same = str(s["data_layout"]) == layout and kernel == [kernel_size, kernel_size]
        if name not in params or not same:
            continue
        weight = params[name].numpy()
        rows = weight_rows(weight, str(s["kernel_layout"]))
        if _is_sparse(weight, rows, block_size, sparsity_threshold):
            _store(params, name, rows, block_size, found)
    return found
