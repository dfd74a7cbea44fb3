"""Convolution of NHWC data on tensor cores, with images as the rows of the fragments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te

from .. import nn
from ..utils import const_shape
from ._common import as_outputs
from .tensor_intrin import (
    intrin_wmma_gemm,
    intrin_wmma_load_matrix_A,
    intrin_wmma_load_matrix_W,
    intrin_wmma_store_matrix,
)

__all__ = ["conv2d_nhwc_tensorcore", "schedule_conv2d_nhwc_tensorcore"]

_SIZE = 16
_WARP = 32
# Elements by which a row in shared memory is longer than the tile, so that the rows of a fragment
# lie in different banks.
_PAD = 8


def conv2d_nhwc_tensorcore(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str = "float32",
) -> te.Tensor:
    """Convolution of half precision NHWC data with HWIO weights, added up in `out_dtype`.

    Raises
    ------
    ValueError : images, channels or filters are no multiples of 16.
    """
    batch, _, _, channels = const_shape(data.shape)
    filters = const_shape(weight.shape)[3]
    for extent, what in ((batch, "images"), (channels, "channels"), (filters, "filters")):
        if extent % _SIZE:
            raise ValueError(
                f"topi.cuda.conv2d_nhwc_tensorcore: {extent} {what} are no multiple of {_SIZE}; "
                "pad them, or use topi.nn.conv2d_nhwc"
            )
    return nn.conv2d_nhwc(data, weight, stride, padding, dilation, out_dtype)


def _spread(s: te.Schedule, stage: te.Tensor, warps: int, vector: int) -> None:
    """Let all threads of a block compute a stage in turns."""
    fused = s[stage].fuse(*s[stage].op.axis)
    fused, lane = s[stage].split(fused, factor=vector)
    fused, tx = s[stage].split(fused, factor=_WARP)
    _, ty = s[stage].split(fused, factor=warps)
    s[stage].bind(tx, te.thread_axis((0, _WARP), "threadIdx.x"))
    s[stage].bind(ty, te.thread_axis((0, warps), "threadIdx.y"))
    s[stage].vectorize(lane)


def schedule_conv2d_nhwc_tensorcore(
    outs: te.Tensor | Sequence[te.Tensor], warps: int = 2, depth: int = 2
) -> te.Schedule:
    """Schedule :func:`conv2d_nhwc_tensorcore`.

    Parameters
    ----------
    warps : warps of a block, each with a fragment of filters of its own.
    depth : fragments of channels whose operands are in shared memory at a time.
    """
    (output,) = as_outputs(outs)
    if len(output.op.reduce_axis) != 3:
        raise ValueError(
            f"topi.cuda.schedule_conv2d_nhwc_tensorcore: {output.op.name} is no convolution; pass "
            "the result of conv2d_nhwc_tensorcore"
        )
    s = te.create_schedule(output.op)
    data, weight = output.op.input_tensors
    *_, channels, filters = const_shape(weight.shape)
    warps = warps if filters % (warps * _SIZE) == 0 else 1
    depth = depth if channels % (depth * _SIZE) == 0 else 1
    if isinstance(data.op, te.ComputeOp):
        s[data].set_scope("shared")
        data_shared = data
    else:
        data_shared = s.cache_read(data, "shared", [output])
    weight_shared = s.cache_read(weight, "shared", [output])
    left = s.cache_read(data_shared, "wmma.matrix_a", [output])
    right = s.cache_read(weight_shared, "wmma.matrix_b", [output])
    product = s.cache_write(output, "wmma.accumulator")

    n, h, w, f = s[output].op.axis
    n, n_in = s[output].split(n, factor=_SIZE)
    f, f_in = s[output].split(f, factor=_SIZE)
    bf, tf = s[output].split(f, factor=warps)
    s[output].reorder(h, w, n, bf, tf, n_in, f_in)
    bz = s[output].fuse(h, w)
    s[output].bind(bz, te.thread_axis("blockIdx.z"))
    s[output].bind(n, te.thread_axis("blockIdx.y"))
    s[output].bind(bf, te.thread_axis("blockIdx.x"))
    s[output].bind(tf, te.thread_axis((0, warps), "threadIdx.y"))

    s[product].compute_at(s[output], tf)
    n, h, w, f = s[product].op.axis
    ry, rx, rc = sorted(s[product].op.reduce_axis, key=lambda loop: "ry rx rc".find(loop.var.name))
    rc, rc_in = s[product].split(rc, factor=_SIZE)
    rc_out, rc = s[product].split(rc, factor=depth)
    s[product].reorder(rc_out, ry, rx, rc, h, w, n, f, rc_in)
    s[left].compute_at(s[product], rc)
    s[right].compute_at(s[product], rc)
    s[data_shared].compute_at(s[product], rx)
    s[weight_shared].compute_at(s[product], rx)

    block, taps = (_SIZE, 1, 1, _SIZE), (1, 1, _SIZE, _SIZE)
    row = depth * _SIZE + _PAD
    columns = warps * _SIZE + _PAD
    image = [_SIZE, _SIZE, _SIZE, 1]
    window = [_SIZE * _SIZE, _SIZE * _SIZE, _SIZE, 1]
    shape = (_SIZE,) * 3
    s[data_shared].storage_align(s[data_shared].op.axis[2], row, 0)
    s[weight_shared].storage_align(s[weight_shared].op.axis[2], columns, 0)
    load_a = intrin_wmma_load_matrix_A(
        image, [row, row, row, 1], shape, "row_major", block, block, data.dtype
    )
    s[left].tensorize(s[left].op.axis[0], load_a)
    load_b = intrin_wmma_load_matrix_W(
        window, [_SIZE * columns, _SIZE * columns, columns, 1], shape, "row_major", taps, taps,
        weight.dtype,
    )  # fmt: skip
    s[right].tensorize(s[right].op.axis[0], load_b)
    a = te.placeholder(block, name="a", dtype=data.dtype)
    b = te.placeholder(taps, name="b", dtype=weight.dtype)
    l = te.reduce_axis((0, _SIZE), name="l")
    dtype = output.dtype
    c = te.compute(
        block,
        lambda n, h, w, f: te.sum(
            a[n, h, w, l].astype(dtype) * b[0, 0, l, f].astype(dtype), axis=l
        ),
        name="c",
    )
    gemm = intrin_wmma_gemm(a, b, c, image, window, image, shape)
    s[product].tensorize(h, gemm)
    _, height, width, size = const_shape(output.shape)
    store = intrin_wmma_store_matrix(
        [height * width * size, width * size, size, 1], image, shape, dtype, block, block, "global"
    )
    s[output].tensorize(n_in, store)
    _spread(s, data_shared, warps, 8 if isinstance(data.op, te.PlaceholderOp) else 1)
    _spread(s, weight_shared, warps, 8)
    return s
