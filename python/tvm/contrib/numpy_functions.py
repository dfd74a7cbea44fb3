"""Functions of BLAS and of random numbers that programs call by TVM's names; NumPy does the work.

They are in the registry as soon as `tvm` is imported, so that a library loaded from a file, or a
``call_packed`` in a program, finds them.
"""

from __future__ import annotations

import numpy as np

from tvm._ffi import register_func
from tvm.runtime import NDArray

__all__: list[str] = []

_rng = np.random.default_rng()


def _product(left: NDArray, right: NDArray, out: NDArray, transa: bool, transb: bool) -> None:
    a, b = np.from_dlpack(left), np.from_dlpack(right)
    product = np.matmul(a.swapaxes(-1, -2) if transa else a, b.swapaxes(-1, -2) if transb else b)
    if product.shape != tuple(out.shape):
        raise ValueError(f"matmul: the product has shape {product.shape}, the output {out.shape}")
    out.copyfrom(product.astype(out.dtype, copy=False))


for _library in ("cblas", "mkl"):
    for _name in ("matmul", "batch_matmul", "batch_matmul_iterative"):
        register_func(f"tvm.contrib.{_library}.{_name}", _product)
register_func("tvm.contrib.dnnl.matmul", _product)


@register_func("tvm.contrib.mkl.matmul_u8s8s32")
def _exact_product(left: NDArray, right: NDArray, out: NDArray, transa: bool, transb: bool) -> None:
    a, b = left.numpy().astype("int32"), right.numpy().astype("int32")
    out.copyfrom(np.matmul(a.T if transa else a, b.T if transb else b))


@register_func("tvm.contrib.random.seed")
def _seed(seed: int) -> None:
    global _rng
    _rng = np.random.default_rng(seed)


@register_func("tvm.contrib.random.randint")
def _randint(low: int, high: int, out: NDArray) -> None:
    out.copyfrom(_rng.integers(low, high, size=tuple(out.shape)).astype(out.dtype))


@register_func("tvm.contrib.random.uniform")
def _uniform(low: float, high: float, out: NDArray) -> None:
    out.copyfrom(_rng.uniform(low, high, size=tuple(out.shape)).astype(out.dtype))


@register_func("tvm.contrib.random.normal")
def _normal(loc: float, scale: float, out: NDArray) -> None:
    out.copyfrom(_rng.normal(loc, scale, size=tuple(out.shape)).astype(out.dtype))
