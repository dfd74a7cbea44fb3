"""Matrix products."""

from __future__ import annotations

from tvm import te

from .. import tag
from ..broadcast import add
from ..utils import const_shape

__all__ = ["batch_matmul", "dense", "matmul"]


def _check_inner(where: str, left: int, right: int) -> None:
    if left != right:
        raise ValueError(f"topi.nn.{where}: inner sizes differ, {left} and {right}")


def dense(data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None) -> te.Tensor:
    """data @ weight.T (+ bias), over the last dimension of data.

    Parameters
    ----------
    data : (..., in).
    weight : (out, in), layout-free: a schedule may store it differently.
    bias : (out,).
    """
    shape = const_shape(data.shape)
    out_size, in_size = const_shape(weight.shape)
    _check_inner("dense", shape[-1], in_size)
    k = te.reduce_axis((0, in_size), name="k")
    product = te.compute(
        (*shape[:-1], out_size),
        lambda *i: te.sum(data(*i[:-1], k) * weight(i[-1], k), axis=[k]),
        name="dense",
        tag=tag.DENSE,
        attrs={"layout_free_placeholders": [weight]},
    )
    return product if bias is None else add(product, bias)


def matmul(
    a: te.Tensor, b: te.Tensor, transpose_a: bool = False, transpose_b: bool = False
) -> te.Tensor:
    """Product of two matrices: (m, k) and (k, n) give (m, n); a flag swaps an operand's axes."""
    m, inner_a = const_shape(a.shape)[:: -1 if transpose_a else 1]
    inner_b, n = const_shape(b.shape)[:: -1 if transpose_b else 1]
    _check_inner("matmul", inner_a, inner_b)
    k = te.reduce_axis((0, inner_a), name="k")

    def body(i, j):
        left = a(k, i) if transpose_a else a(i, k)
        right = b(j, k) if transpose_b else b(k, j)
        return te.sum(left * right, axis=[k])

    return te.compute((m, n), body, name="matmul", tag=tag.MATMUL)


def batch_matmul(
    a: te.Tensor, b: te.Tensor, transpose_a: bool = False, transpose_b: bool = False
) -> te.Tensor:
    """Matrix products over leading batch dimensions, which broadcast where one of them is 1.

    Parameters
    ----------
    a : (..., m, k), or (..., k, m) with transpose_a.
    b : (..., k, n), or (..., n, k) with transpose_b; as many dimensions as a.
    """
    shape_a, shape_b = const_shape(a.shape), const_shape(b.shape)
    if len(shape_a) != len(shape_b) or len(shape_a) < 3:
        raise ValueError(
            "topi.nn.batch_matmul: needs two tensors of the same rank, at least 3; got "
            f"{shape_a} and {shape_b}"
        )
    m, inner_a = shape_a[-2:][:: -1 if transpose_a else 1]
    inner_b, n = shape_b[-2:][:: -1 if transpose_b else 1]
    _check_inner("batch_matmul", inner_a, inner_b)
    for x, y in zip(shape_a[:-2], shape_b[:-2]):
        if x != y and 1 not in (x, y):
            raise ValueError(
                f"topi.nn.batch_matmul: batch sizes of {shape_a} and {shape_b} do not broadcast"
            )
    batch = [max(x, y) for x, y in zip(shape_a[:-2], shape_b[:-2])]
    k = te.reduce_axis((0, inner_a), name="k")

    def body(*indices):
        *lead, i, j = indices
        at_a = [0 if extent == 1 else v for v, extent in zip(lead, shape_a)]
        at_b = [0 if extent == 1 else v for v, extent in zip(lead, shape_b)]
        left = a(*at_a, k, i) if transpose_a else a(*at_a, i, k)
        right = b(*at_b, j, k) if transpose_b else b(*at_b, k, j)
        return te.sum(left * right, axis=[k])

    return te.compute((*batch, m, n), body, name="batch_matmul", tag=tag.BATCH_MATMUL)
