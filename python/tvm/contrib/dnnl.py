"""Matrix products under the name of oneDNN, as external operations of te; NumPy does them."""

from __future__ import annotations

from typing import Any

from tvm import te

from .external_products import external_product

__all__ = ["matmul"]


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """See `tvm.contrib.cblas.matmul`."""
    return external_product("tvm.contrib.dnnl.matmul", lhs, rhs, transa, transb, 2, kwargs)
