"""Matrix products under the names of Intel's MKL, as external operations of te; NumPy does them."""

from __future__ import annotations

from typing import Any

from tvm import te

from .external_products import external_product

__all__ = ["batch_matmul", "matmul", "matmul_u8s8s32"]


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """See `tvm.contrib.cblas.matmul`."""
    return external_product("tvm.contrib.mkl.matmul", lhs, rhs, transa, transb, 2, kwargs)


def matmul_u8s8s32(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """The exact product, in int32, of a uint8 and an int8 matrix, either of them transposed first.

    Raises
    ------
    TypeError : operands of other types.
    ValueError : an operand is no matrix.
    """
    if (str(lhs.dtype), str(rhs.dtype)) != ("uint8", "int8"):
        raise TypeError(
            f"mkl.matmul_u8s8s32: expected uint8 and int8, got {lhs.dtype} and {rhs.dtype}"
        )
    name = "tvm.contrib.mkl.matmul_u8s8s32"
    return external_product(name, lhs, rhs, transa, transb, 2, kwargs, "int32")


def batch_matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    iterative: bool = False,
    **kwargs: Any,
) -> te.Tensor:
    """See `tvm.contrib.cblas.batch_matmul`."""
    name = "tvm.contrib.mkl.batch_matmul" + ("_iterative" if iterative else "")
    return external_product(name, lhs, rhs, transa, transb, 3, kwargs)
