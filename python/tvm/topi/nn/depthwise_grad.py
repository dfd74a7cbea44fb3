"""Gradients of a convolution of each channel with filters of its own."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ..utils import as_int, as_pads, as_pair, get_const_tuple
from .pad import pad

__all__ = ["depthwise_conv2d_backward_input_nhwc", "depthwise_conv2d_backward_weight_nhwc"]


def depthwise_conv2d_backward_input_nhwc(
    Filter: te.Tensor,
    Out_grad: te.Tensor,
    oshape: Any,
    ishape: Any,
    stride: Any,
    padding: Any,
) -> te.Tensor:
    """Gradient with respect to the data of a depthwise convolution in NHWC.

    Parameters
    ----------
    Filter : (kernel height, kernel width, channels, multiplier).
    Out_grad : `oshape`, (batch, out height, out width, channels * multiplier).
    ishape : (batch, height, width, channels) of the data.
    padding : one size, two, or top, left, bottom and right.

    Returns
    -------
    `ishape`, in the type of `Out_grad`.
    """
    height, width, _, multiplier = (as_int(n) for n in get_const_tuple(Filter.shape))
    _, rows, columns, _ = (as_int(n) for n in get_const_tuple(oshape))
    stride_h, stride_w = as_pair(stride)
    top, left, _, _ = (as_int(n) for n in as_pads(padding, 2))
    r = te.reduce_axis((0, height), name="r")
    s = te.reduce_axis((0, width), name="s")
    m = te.reduce_axis((0, multiplier), name="m")

    def gather(n: Any, i: Any, j: Any, c: Any) -> Any:
        # The places that this element was multiplied into, where there is one for the tap.
        row, column = i + top - r, j + left - s
        used = tir.all(
            row >= 0,
            column >= 0,
            row < rows * stride_h,
            column < columns * stride_w,
            (row % stride_h).equal(0),
            (column % stride_w).equal(0),
        )
        grad = Out_grad[n, row // stride_h, column // stride_w, c * multiplier + m]
        taken = tir.if_then_else(used, grad, tir.const(0, Out_grad.dtype))
        return te.sum(taken * Filter[r, s, c, m], axis=[r, s, m])

    return te.compute(
        get_const_tuple(ishape),
        gather,
        name="T_depthwise_grad_data",
        tag="depthwise_conv2d_backward_input_nhwc",
    )


def depthwise_conv2d_backward_weight_nhwc(
    Input: te.Tensor,
    Out_grad: te.Tensor,
    oshape: Any,
    fshape: Any,
    stride: Any,
    padding: Any,
) -> te.Tensor:
    """Gradient with respect to the filters of a depthwise convolution in NHWC.

    Parameters
    ----------
    Input : (batch, height, width, channels).
    Out_grad : `oshape`, (batch, out height, out width, channels * multiplier).
    fshape : (kernel height, kernel width, channels, multiplier).
    padding : one size, two, or top, left, bottom and right.

    Returns
    -------
    `fshape`, in the type of `Input`.
    """
    batch, rows, columns, _ = (as_int(n) for n in get_const_tuple(oshape))
    stride_h, stride_w = as_pair(stride)
    top, left, bottom, right = (as_int(n) for n in as_pads(padding, 2))
    multiplier = as_int(get_const_tuple(fshape)[3])
    padded = pad(Input, [0, top, left, 0], [0, bottom, right, 0], name="padded_data")
    n = te.reduce_axis((0, batch), name="n")
    i = te.reduce_axis((0, rows), name="i")
    j = te.reduce_axis((0, columns), name="j")
    return te.compute(
        get_const_tuple(fshape),
        lambda r, s, c, m: te.sum(
            Out_grad[n, i, j, c * multiplier + m]
            * padded[n, i * stride_h + r, j * stride_w + s, c],
            axis=[n, i, j],
        ),
        name="T_depthwise_grad_weight",
        tag="depthwise_conv2d_backward_weight_nhwc",
    )
