"""Transposed convolution, which is a convolution of data with zeros between its pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te

from .. import nn
from .conv2d_nchw import schedule_conv2d_nchw

__all__ = ["conv2d_transpose_nchw", "schedule_conv2d_transpose_nchw"]


def conv2d_transpose_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any,
    padding: Any,
    out_dtype: str | None = None,
    output_padding: Any = 0,
) -> te.Tensor:
    """Transposed convolution of NCHW data with IOHW weights.

    See :func:`tvm.topi.nn.conv2d_transpose_nchw`; :func:`schedule_conv2d_transpose_nchw` goes with
    it.
    """
    return nn.conv2d_transpose_nchw(data, weight, stride, padding, out_dtype, output_padding)


def schedule_conv2d_transpose_nchw(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule a transposed convolution, with elementwise functions behind it."""
    return schedule_conv2d_nchw(outs)
