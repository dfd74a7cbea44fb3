"""Products of tensors."""

from __future__ import annotations

from tvm import te

from . import nn

__all__ = ["matmul"]


def matmul(a: te.Tensor, b: te.Tensor, transp_a: bool = False, transp_b: bool = False) -> te.Tensor:
    """Product of two matrices; a flag swaps an operand's axes."""
    return nn.matmul(a, b, transpose_a=transp_a, transpose_b=transp_b)
