"""Rows of the operator table for neural networks: normalisations, windows, images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import te, tir, topi
from tvm.topi.nn.pooling import max_pool

from .precision import accumulated_in_float32, computed_in_float32
from .registry import OpPattern, register

__all__: list[str] = []

_ELEMWISE, _INJECTIVE = OpPattern.ELEMWISE, OpPattern.INJECTIVE
_HEAVY, _OPAQUE = OpPattern.OUT_FUSABLE, OpPattern.OPAQUE


def _max_pool_with_indices(
    x: te.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
) -> list[te.Tensor]:
    """Maxima over windows of the last dimensions, and where they are.

    Positions count row-major over the pooled dimensions, int64; of equal elements the first is
    taken, of NaN the last, as in PyTorch.
    """
    rank = len(kernel)
    shape = [int(n) for n in x.shape]
    axes = range(len(shape) - rank, len(shape))
    best = max_pool(x, axes, kernel, stride, dilation, padding, ceil_mode)
    loops = [te.reduce_axis((0, extent), name=f"w{k}") for k, extent in enumerate(kernel)]
    nowhere = math.prod(shape[axis] for axis in axes)

    def position(*i: Any) -> Any:
        at = [
            i[axis] * stride[k] + loops[k] * dilation[k] - padding[k] for k, axis in enumerate(axes)
        ]
        inside = [c for p, axis in zip(at, axes) for c in (p >= 0, p < shape[axis])]
        flat: Any = 0
        for p, axis in zip(at, axes):
            flat = flat * shape[axis] + p
        value = x(*i[: len(shape) - rank], *at)
        place = tir.Select(value == best(*i), flat, nowhere)
        if _is_float(x):
            # A NaN is the maximum of its window and equals nothing. Negative numbers are the least
            # for the last one.
            place = tir.Select(tir.isnan(value), -1 - flat, place)
        return te.min(
            tir.if_then_else(tir.all(*inside), place, tir.const(nowhere, "int32")), axis=loops
        )

    places = te.compute(best.shape, position, name="T_pool_position")
    if _is_float(x):
        found = places
        places = te.compute(
            best.shape,
            lambda *i: tir.Select(found(*i) < 0, -1 - found(*i), found(*i)),
            name="T_pool_position_of_nan",
            tag=topi.tag.ELEMWISE,
        )
    return [best, topi.cast(places, "int64")]


def _is_float(x: te.Tensor) -> bool:
    return str(x.dtype).startswith(("float", "bfloat"))


def _masked_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """Softmax of scores in which -inf stands for what is not seen: 0, also where nothing is."""
    shape = topi.utils.get_const_tuple(x.shape)
    (at,) = topi.utils.normalize_axes((axis,), len(shape))
    # exp(x - lowest) is 0 for -inf whatever the maximum.
    lowest = tir.min_value(x.dtype)
    largest = topi.maximum(topi.max(x, at, keepdims=True), lowest)
    power = topi.exp(topi.subtract(x, largest))
    total = topi.sum(power, at, keepdims=True)
    tiny = tir.const(1e-30, x.dtype)
    return topi.divide(power, topi.maximum(total, tiny))


def _extend(x: te.Tensor, before: Sequence[int], after: Sequence[int], mode: str) -> te.Tensor:
    """x with a border of its own elements: "reflect", "replicate" or "circular".

    Negative sizes cut.
    """
    shape = [int(n) for n in x.shape]

    def read(*i: Any) -> Any:
        at = []
        for index, extent, front, behind in zip(i, shape, before, after):
            if front == behind == 0:
                at.append(index)
                continue
            place = index - front
            if mode == "reflect":
                place = tir.abs(place)
                last = tir.const(extent - 1, "int32")
                place = last - tir.abs(last - place)
            elif mode == "replicate":
                place = tir.max(tir.min(place, extent - 1), 0)
            else:
                place = tir.floormod(place, extent)
            at.append(place)
        return x(*at)

    out = [n + b + a for n, b, a in zip(shape, before, after)]
    return te.compute(out, read, name="T_extend", tag=topi.tag.INJECTIVE)


def _frame_windows(
    x: te.Tensor,
    depth: int,
    out_depth: int,
    taps: int,
    stride: int,
    dilation: int,
    before: int,
) -> te.Tensor:
    """Frames side by side; see `relax.op.nn.frame_windows`."""
    frames, height, width, channels = (int(n) for n in x.shape)

    def read(frame: Any, h: Any, w: Any, c: Any) -> Any:
        tap, c = tir.indexdiv(c, channels), tir.indexmod(c, channels)
        n, d = tir.indexdiv(frame, out_depth), tir.indexmod(frame, out_depth)
        place = d * stride + tap * dilation - before
        inside = tir.all(place >= 0, place < depth)
        value = x(n * depth + place, h, w, c)
        return tir.if_then_else(inside, value, tir.const(0, x.dtype))

    shape = (frames // depth * out_depth, height, width, taps * channels)
    return te.compute(shape, read, name="T_frame_windows", tag=topi.tag.INJECTIVE)


def _col2im(
    x: te.Tensor,
    output_size: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> te.Tensor:
    """Sums of overlapping patches: (batch, channels * window, patches) to NCHW."""
    batch, rows, _ = (int(n) for n in x.shape)
    kernel_h, kernel_w = kernel
    blocks = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(output_size, padding, dilation, kernel, stride)
    ]
    loops = [te.reduce_axis((0, kernel_h), "ky"), te.reduce_axis((0, kernel_w), "kx")]

    def read(n: Any, c: Any, *at: Any) -> Any:
        conditions, block = [], []
        for k in range(2):
            # The patch whose window has this pixel at the loop's place, if there is one.
            reach = at[k] + padding[k] - loops[k] * dilation[k]
            index = tir.floordiv(reach, stride[k])
            conditions += [reach >= 0, tir.floormod(reach, stride[k]).equal(0), index < blocks[k]]
            block.append(index)
        row = (c * kernel_h + loops[0]) * kernel_w + loops[1]
        value = x(n, row, block[0] * blocks[1] + block[1])
        zero = tir.const(0, x.dtype)
        return te.sum(tir.if_then_else(tir.all(*conditions), value, zero), axis=loops)

    channels = rows // (kernel_h * kernel_w)
    return te.compute((batch, channels, *output_size), read, name="T_col2im")


def _resize2d(
    x: te.Tensor,
    size: Sequence[int],
    roi: Sequence[float],
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    **settings: Any,
) -> te.Tensor:
    return topi.image.resize2d(
        x, roi, size, bicubic_alpha=cubic_alpha, bicubic_exclude=bool(cubic_exclude), **settings
    )


def _affine(
    gamma: te.Tensor, beta: te.Tensor, center: bool, scale: bool
) -> tuple[te.Tensor, te.Tensor]:
    """The factors of a normalisation; those that are switched off are ones and zeros."""
    one, zero = topi.full_like(gamma, 1.0), topi.full_like(beta, 0.0)
    return gamma if scale else one, beta if center else zero


def _layer_norm(
    x: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    axes: Sequence[int],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> te.Tensor:
    gamma, beta = _affine(gamma, beta, center, scale)
    return topi.nn.layer_norm(x, gamma, beta, axes, epsilon)


def _rms_norm(
    x: te.Tensor, weight: te.Tensor, axes: Sequence[int], epsilon: float = 1e-5
) -> te.Tensor:
    return topi.nn.rms_norm(x, weight, axes, epsilon)


def _group_norm(
    x: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> te.Tensor:
    gamma, beta = _affine(gamma, beta, center, scale)
    return topi.nn.group_norm(x, gamma, beta, num_groups, channel_axis, axes, epsilon)


register("nn.layer_norm", _layer_norm, _OPAQUE)
register("nn.rms_norm", _rms_norm, _OPAQUE)
register("nn.head_attention", topi.nn.head_attention, _OPAQUE, tunable=False)
register("nn.group_norm", _group_norm, _OPAQUE)
register("nn.instance_norm", topi.nn.instance_norm, _OPAQUE)
register("nn.masked_softmax", computed_in_float32(_masked_softmax), _OPAQUE)

for _name in ("elu", "log_sigmoid", "mish", "selu", "softplus", "softsign"):
    register(f"nn.{_name}", computed_in_float32(getattr(topi.nn, _name)), _ELEMWISE)
register("nn.prelu", topi.nn.prelu, OpPattern.BROADCAST)
register("nn.extend", _extend, _INJECTIVE)

register("nn.conv_transpose", accumulated_in_float32(topi.nn.conv_transpose), _HEAVY)
register("nn.grouped_matmul", topi.nn.grouped_matmul, _OPAQUE)
register("nn.frame_windows", _frame_windows, _INJECTIVE)
register("nn.col2im", computed_in_float32(_col2im), _OPAQUE)

register("nn.pool1d", computed_in_float32(topi.nn.pool1d), _HEAVY)
register("nn.pool3d", computed_in_float32(topi.nn.pool3d), _HEAVY)
register("nn.max_pool_with_indices", _max_pool_with_indices, _OPAQUE, tunable=False)
register("nn.adaptive_pool1d", computed_in_float32(topi.nn.adaptive_pool1d), _HEAVY)
register("nn.adaptive_pool2d", computed_in_float32(topi.nn.adaptive_pool), _HEAVY)
register("nn.adaptive_pool3d", computed_in_float32(topi.nn.adaptive_pool3d), _HEAVY)

register("image.resize1d", topi.image.resize1d, _INJECTIVE)
register("image.resize2d", _resize2d, _INJECTIVE)
register("image.resize3d", topi.image.resize3d, _INJECTIVE)
register("image.grid_sample", topi.image.grid_sample, _OPAQUE, tunable=False)

register("image.deformable_columns", topi.nn.deformable_columns, _OPAQUE, tunable=False)
register("vision.roi_align", topi.vision.roi_align_nchw, _OPAQUE, tunable=False)
register("vision.roi_align_nhwc", topi.vision.roi_align_nhwc, _OPAQUE, tunable=False)
register("vision.roi_pool", topi.vision.roi_pool_nchw, _OPAQUE, tunable=False)
register("vision.ps_roi_align", topi.vision.ps_roi_align_nchw, _OPAQUE, tunable=False)
register("vision.ps_roi_pool", topi.vision.ps_roi_pool_nchw, _OPAQUE, tunable=False)
