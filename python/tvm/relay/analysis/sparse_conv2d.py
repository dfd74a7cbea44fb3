"""Weights of convolutions worth storing as sparse matrices."""

from .sparse_weights import SparseWeights
from .sparse_weights import store_conv_weights as process_params

__all__ = ["SparseWeights", "process_params"]
