"""Products of rows with one of several matrices each, as mixtures of experts compute."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ..utils import get_const_tuple

__all__ = ["grouped_matmul"]


def grouped_matmul(data: te.Tensor, weight: te.Tensor, ends: te.Tensor) -> te.Tensor:
    """Rows of data times the matrix of their group.

    Parameters
    ----------
    data : (M, K), the rows of a group together, in the order of the groups.
    weight : (groups, K, N).
    ends : (groups,) integers: the row behind the last of each group, ascending. Rows behind the
        last group come out as zeros.

    Returns
    -------
    (M, N), of the type of the data; 16-bit products are summed up in float32.
    """
    rows, depth = get_const_tuple(data.shape)
    groups, _, columns = get_const_tuple(weight.shape)
    g = te.reduce_axis((0, groups), name="g")
    group = te.compute(
        (rows,),
        lambda i: te.sum(tir.Cast("int32", tir.Cast(ends.dtype, i) >= ends(g)), axis=g),
        name="group",
    )
    k = te.reduce_axis((0, depth), name="k")
    wide = "float32" if data.dtype in ("float16", "bfloat16") else data.dtype

    def element(i: Any, j: Any) -> Any:
        at = tir.min(group(i), groups - 1)
        return te.sum(data(i, k).astype(wide) * weight(at, k, j).astype(wide), axis=k)

    product = te.compute((rows, columns), element, name="grouped_matmul")
    return te.compute(
        (rows, columns),
        lambda i, j: tir.Select(group(i) < groups, product(i, j), tir.const(0, wide)).astype(
            data.dtype
        ),
        name="T_grouped_matmul",
        tag="grouped_matmul",
    )
