"""Sparse matrices for programs that use `topi.nn.sparse_dense`."""

from . import utils as utils
