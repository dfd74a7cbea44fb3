"""Matrix products of AMD's hipBLAS, which is not linked here, as external operations of te."""

from .external_products import products_of

__all__ = ["batch_matmul", "matmul"]

matmul, batch_matmul = products_of("hipblas")
