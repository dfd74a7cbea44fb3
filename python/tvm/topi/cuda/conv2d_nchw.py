"""Convolution of NCHW data: tiles of image and filters in registers and shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te

from .. import nn
from ..utils import as_int
from ._common import as_outputs, inline_injective

__all__ = ["conv2d_nchw", "schedule_conv2d_nchw"]

# A block computes 16 columns of 16 filters; a thread four filters of one column.
_COLUMNS = 16
_FILTER_THREADS = 4
_FILTERS = 4
_CHANNELS = 4


def conv2d_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of NCHW data with OIHW weights.

    See :func:`tvm.topi.nn.conv2d_nchw`; :func:`schedule_conv2d_nchw` goes with it.
    """
    return nn.conv2d_nchw(data, weight, stride, padding, dilation, out_dtype)


def _convolution_of(output: te.Tensor) -> te.Tensor:
    tensor = output
    while len(tensor.op.reduce_axis) == 0:
        computed = [t for t in tensor.op.input_tensors if isinstance(t.op, te.ComputeOp)]
        if not computed:
            raise ValueError(
                f"topi.cuda: {output.op.name} is no convolution and reads none; schedule it with "
                "topi.cuda.schedule_injective"
            )
        tensor = computed[0]
    return tensor


def schedule_conv2d_nchw(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule a convolution of NCHW data, with elementwise functions behind it.

    Padding, and the zeros of a transposed convolution, are made when data goes to shared memory.
    """
    (output,) = as_outputs(outs)
    s = te.create_schedule(output.op)
    conv = _convolution_of(output)
    data, weight = conv.op.input_tensors
    inline_injective(s, [output], keep=[conv, data])
    if isinstance(data.op, te.ComputeOp):
        s[data].set_scope("shared")
        data_shared = data
    else:
        data_shared = s.cache_read(data, "shared", [conv])
    if isinstance(weight.op, te.ComputeOp):
        s[weight].compute_inline()
    weight_shared = s.cache_read(weight, "shared", [conv])
    if output.op.same_as(conv.op):
        accumulator = s.cache_write(output, "local")
    else:
        s[conv].set_scope("local")
        accumulator = conv

    n, f, y, x = s[output].op.axis
    bx, tx = s[output].split(x, factor=_COLUMNS)
    f, fi = s[output].split(f, factor=_FILTERS)
    bf, tf = s[output].split(f, factor=_FILTER_THREADS)
    s[output].reorder(n, bf, y, bx, tf, tx, fi)
    bz = s[output].fuse(n, bf)
    s[output].bind(bz, te.thread_axis("blockIdx.z"))
    s[output].bind(y, te.thread_axis("blockIdx.y"))
    s[output].bind(bx, te.thread_axis("blockIdx.x"))
    s[output].bind(tf, te.thread_axis((0, _FILTER_THREADS), "threadIdx.y"))
    s[output].bind(tx, te.thread_axis((0, _COLUMNS), "threadIdx.x"))
    s[accumulator].compute_at(s[output], tx)
    _, f, y, x = s[accumulator].op.axis
    loops = list(s[accumulator].op.reduce_axis)
    (channel,) = (loop for loop in loops if loop.var.name == "rc")
    window = [loop for loop in loops if loop.var.name != "rc"]
    channel, channel_in = s[accumulator].split(
        channel, factor=min(_CHANNELS, as_int(channel.dom.extent))
    )
    s[accumulator].reorder(channel, channel_in, *window, f, y, x)
    s[accumulator].unroll(f)
    for shared in (data_shared, weight_shared):
        s[shared].compute_at(s[accumulator], channel)
        fused = s[shared].fuse(*s[shared].op.axis)
        fused, tx = s[shared].split(fused, factor=_COLUMNS)
        _, ty = s[shared].split(fused, factor=_FILTER_THREADS)
        s[shared].bind(tx, te.thread_axis((0, _COLUMNS), "threadIdx.x"))
        s[shared].bind(ty, te.thread_axis((0, _FILTER_THREADS), "threadIdx.y"))
    return s
