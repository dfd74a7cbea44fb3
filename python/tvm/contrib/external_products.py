"""Matrix products that functions of other libraries compute, as external operations of te."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir

__all__ = ["external_product", "products_of"]


def external_product(
    name: str,
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool,
    transb: bool,
    n_dims: int,
    kwargs: dict[str, Any],
    dtype: str | None = None,
) -> te.Tensor:
    """``lhs @ rhs``, which a function of the registry computes.

    Parameters
    ----------
    name : of the function, which gets both operands, the result, and whether each operand is
        transposed first.
    n_dims : dimensions of the operands: 2 for matrices, 3 for batches of them.
    kwargs : of ``te.extern``, such as a name.
    dtype : element type of the result; by default that of `lhs`.

    Raises
    ------
    ValueError : an operand has another number of dimensions.
    """
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
        dtype=dtype or lhs.dtype,
        **kwargs,
    )


def products_of(library: str) -> tuple[Callable[..., te.Tensor], Callable[..., te.Tensor]]:
    """`matmul` and `batch_matmul` of a library that is not linked here.

    Whoever links it registers what a built program calls, ``tvm.contrib.<library>.matmul`` and
    ``batch_matmul``; the error of a call names the one that is missing.
    """

    def matmul(
        lhs: te.Tensor,
        rhs: te.Tensor,
        transa: bool = False,
        transb: bool = False,
        dtype: str | None = None,
    ) -> te.Tensor:
        """``lhs @ rhs`` of two matrices, either of them transposed first.

        Parameters
        ----------
        dtype : element type of the result; by default that of `lhs`.

        Raises
        ------
        ValueError : an operand is no matrix.
        """
        name = f"tvm.contrib.{library}.matmul"
        return external_product(name, lhs, rhs, transa, transb, 2, {}, dtype)

    def batch_matmul(
        lhs: te.Tensor,
        rhs: te.Tensor,
        transa: bool = False,
        transb: bool = False,
        dtype: str | None = None,
    ) -> te.Tensor:
        """The same for each pair of matrices of two batches."""
        name = f"tvm.contrib.{library}.batch_matmul"
        return external_product(name, lhs, rhs, transa, transb, 3, {}, dtype)

    return matmul, batch_matmul
