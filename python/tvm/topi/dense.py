"""Products of two matrices."""

from __future__ import annotations

from typing import Any

from tvm import te

from . import tag
from .broadcast import add
from .utils import Extent, get_const_tuple, is_constant, same_extent

__all__ = ["dense", "matmul"]


def check_inner(where: str, left: Extent, right: Extent) -> None:
    """Refuse sizes that are summed over and known to differ."""
    if is_constant(left) and is_constant(right) and not same_extent(left, right):
        raise ValueError(f"topi.nn.{where}: inner sizes differ, {left} and {right}")


def dense(
    data: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
) -> te.Tensor:
    """data @ weight.T (+ bias), over the last dimension of data.

    Parameters
    ----------
    data : (..., in).
    weight : (out, in), layout-free: a schedule may store it differently.
    bias : (out,).
    out_dtype : type to multiply and add in; the data's by default.
    """
    shape = get_const_tuple(data.shape)
    out_size, in_size = get_const_tuple(weight.shape)
    check_inner("dense", shape[-1], in_size)
    dtype = out_dtype or data.dtype
    k = te.reduce_axis((0, in_size), name="k")
    product = te.compute(
        (*shape[:-1], out_size),
        lambda *i: te.sum(
            data(*i[:-1], k).astype(dtype) * weight(i[-1], k).astype(dtype), axis=[k]
        ),
        name="T_matmul_NT",
        tag=tag.DENSE,
        attrs={"layout_free_placeholders": [weight]},
    )
    return product if bias is None else add(product, bias)


def matmul(
    a: te.Tensor,
    b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> te.Tensor:
    """Product of two matrices (+ bias): (m, k) and (k, n) give (m, n).

    Parameters
    ----------
    bias : (n,).
    out_dtype : type to multiply and add in; a's by default.
    transpose_a, transpose_b : whether the operand's axes are swapped.
    """
    m, inner_a = get_const_tuple(a.shape)[:: -1 if transpose_a else 1]
    inner_b, n = get_const_tuple(b.shape)[:: -1 if transpose_b else 1]
    check_inner("matmul", inner_a, inner_b)
    dtype = out_dtype or a.dtype
    k = te.reduce_axis((0, inner_a), name="k")

    def body(i: Any, j: Any) -> Any:
        left = a(k, i) if transpose_a else a(i, k)
        right = b(j, k) if transpose_b else b(k, j)
        return te.sum(left.astype(dtype) * right.astype(dtype), axis=[k])

    form = "".join("T" if transposed else "N" for transposed in (transpose_a, transpose_b))
    product = te.compute((m, n), body, name=f"T_matmul_{form}", tag=tag.MATMUL)
    return product if bias is None else add(product, bias)
