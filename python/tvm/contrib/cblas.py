"""Matrix products by the BLAS of NumPy, as external operations of te."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

__all__ = ["batch_matmul", "matmul"]


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """``lhs @ rhs`` of two matrices, either of them transposed first.

    Parameters
    ----------
    lhs : float tensor of shape (m, k), or (k, m) if `transa`.
    rhs : of shape (k, n), or (n, k) if `transb`.
    kwargs : of ``te.extern``, such as a name.

    Raises
    ------
    ValueError : an operand is no matrix.
    """
    return _product("tvm.contrib.cblas.matmul", lhs, rhs, transa, transb, 2, kwargs)


def batch_matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    iterative: bool = False,
    **kwargs: Any,
) -> te.Tensor:
    """The same for each pair of matrices of two batches, of shapes (batch, m, k) and (batch, k, n).

    Parameters
    ----------
    iterative : one call of the library a pair, which gives the same values.

    Raises
    ------
    ValueError : an operand is no batch of matrices.
    """
    name = "tvm.contrib.cblas.batch_matmul" + ("_iterative" if iterative else "")
    return _product(name, lhs, rhs, transa, transb, 3, kwargs)


def _product(
    name: str,
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool,
    transb: bool,
    n_dims: int,
    kwargs: dict[str, Any],
) -> te.Tensor:
    for operand in (lhs, rhs):
        if len(operand.shape) != n_dims:
            raise ValueError(
                f"{name}: expected operands of {n_dims} dimensions, got {operand.op.name} of "
                f"{len(operand.shape)}"
            )
    rows = lhs.shape[-1] if transa else lhs.shape[-2]
    columns = rhs.shape[-2] if transb else rhs.shape[-1]
    kwargs.setdefault("name", "C")
    return te.extern(
        (*list(lhs.shape)[:-2], rows, columns),
        [lhs, rhs],
        lambda ins, outs: tir.call_packed(name, ins[0], ins[1], outs[0], transa, transb),
        dtype=lhs.dtype,
        **kwargs,
    )
