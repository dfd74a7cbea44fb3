"""Changes of programs that follow from the values of their parameters."""

from . import bsr_conv2d, bsr_dense, simplify_fc_transpose
from .values import Values

__all__ = ["Values", "bsr_conv2d", "bsr_dense", "simplify_fc_transpose"]
