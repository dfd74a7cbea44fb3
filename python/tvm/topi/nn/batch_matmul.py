"""Batched matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..broadcast import broadcast_shape
from ..dense import check_inner
from ..utils import Extent, equal_const_int, get_const_tuple, is_constant, same_extent

__all__ = ["batch_matmul"]


def batch_matmul(
    a: te.Tensor,
    b: te.Tensor,
    oshape: Sequence[Extent] | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> te.Tensor:
    """Matrix products over leading batch dimensions, which broadcast where one of them is 1.

    Parameters
    ----------
    a : (..., m, k), or (..., k, m) with transpose_a.
    b : (..., n, k), or (..., k, n) without transpose_b; as many dimensions as a.
    oshape : the result's shape, where its symbolic extents cannot be derived.
    out_dtype : type to multiply and add in; a's by default.
    """
    shape_a, shape_b = get_const_tuple(a.shape), get_const_tuple(b.shape)
    if len(shape_a) != len(shape_b) or len(shape_a) < 3:
        raise ValueError(
            "topi.nn.batch_matmul: needs two tensors of the same rank, at least 3; got "
            f"{shape_a} and {shape_b}"
        )
    m, inner_a = shape_a[-2:][:: -1 if transpose_a else 1]
    inner_b, n = shape_b[-2:][:: -1 if transpose_b else 1]
    check_inner("batch_matmul", inner_a, inner_b)
    out = get_const_tuple(oshape) if oshape is not None else None
    if out is None:
        out = (*broadcast_shape(shape_a[:-2], shape_b[:-2]), m, n)
    dtype = out_dtype or a.dtype
    k = te.reduce_axis((0, inner_a), name="k")

    def body(*indices: Any) -> Any:
        *lead, i, j = indices
        at_a = [_batch_index(*each) for each in zip(lead, shape_a, out)]
        at_b = [_batch_index(*each) for each in zip(lead, shape_b, out)]
        left = a(*at_a, k, i) if transpose_a else a(*at_a, i, k)
        right = b(*at_b, j, k) if transpose_b else b(*at_b, k, j)
        return te.sum(left.astype(dtype) * right.astype(dtype), axis=[k])

    form = "".join("T" if transposed else "N" for transposed in (transpose_a, transpose_b))
    return te.compute(out, body, name=f"T_batch_matmul_{form}", tag=tag.BATCH_MATMUL)


def _batch_index(index: Any, extent: Extent, total: Extent) -> Any:
    """Where an operand has the batch of the result: at 0 if it has only one, known now or not."""
    if equal_const_int(extent, 1):
        return 0
    if is_constant(extent) or same_extent(extent, total):
        return index
    return tir.Select(extent == 1, tir.const(0, extent.dtype), index)
