"""Normalisation of activations, and what is added to them channel by channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from .. import reduction, tag
from ..broadcast import add, divide, maximum, multiply, power, subtract
from ..math import cast, identity, rsqrt, sqrt
from ..transform import expand_dims, reshape
from ..utils import (
    as_int,
    get_const_tuple,
    is_constant,
    normalize_axes,
    normalize_axis,
    prod,
    simplify,
)
from .pad import pad

__all__ = [
    "batch_norm",
    "bias_add",
    "group_norm",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "lrn",
    "rms_norm",
    "scale_shift_nchw",
    "scale_shift_nhwc",
]


def _spread(v: te.Tensor, axes: Sequence[int], rank: int) -> te.Tensor:
    """v, whose dimensions are the given axes, ready to broadcast with a tensor of that rank."""
    if list(axes) == list(range(rank - len(axes), rank)):
        return v
    if len(axes) == 1:
        return expand_dims(v, 1, rank - 1 - axes[0])
    shape = get_const_tuple(v.shape)
    return reshape(v, [shape[axes.index(k)] if k in axes else 1 for k in range(axes[0], rank)])


def bias_add(data: te.Tensor, bias: te.Tensor, axis: int = 1) -> te.Tensor:
    """data plus a number for each index along one dimension.

    Parameters
    ----------
    bias : (extent of the dimension,).
    """
    rank = len(data.shape)
    return add(data, _spread(bias, [normalize_axis(axis, rank)], rank))


def _scale_shift(data: te.Tensor, scale: te.Tensor, shift: te.Tensor, axis: int) -> te.Tensor:
    rank = len(data.shape)
    return add(multiply(data, _spread(scale, [axis], rank)), _spread(shift, [axis], rank))


def scale_shift_nchw(data: te.Tensor, scale: te.Tensor, shift: te.Tensor) -> te.Tensor:
    """data * scale + shift with a number of each for every channel of NCHW data."""
    return _scale_shift(data, scale, shift, 1)


def scale_shift_nhwc(data: te.Tensor, scale: te.Tensor, shift: te.Tensor) -> te.Tensor:
    """data * scale + shift with a number of each for every channel of NHWC data."""
    return _scale_shift(data, scale, shift, 3)


def _moments(x: te.Tensor, axes: Sequence[int]) -> tuple[te.Tensor, te.Tensor]:
    """Mean and variance over some dimensions, which stay with size 1.

    The variance is that of the differences from the mean: the mean of squares less the squared
    mean would lose all its digits where the mean is large.
    """
    average = reduction.mean(x, axes, keepdims=True)
    difference = subtract(x, average)
    return average, reduction.mean(multiply(difference, difference), axes, keepdims=True)


def _standardize(x: te.Tensor, axes: Sequence[int], epsilon: float) -> te.Tensor:
    """x with mean 0 and variance 1 over some dimensions."""
    average, variance = _moments(x, axes)
    return multiply(subtract(x, average), rsqrt(add(variance, epsilon)))


def _in_float32(x: te.Tensor) -> te.Tensor:
    """x in a type wide enough for sums of squares."""
    return cast(x, "float32") if x.dtype in ("float16", "bfloat16") else x


def batch_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    moving_mean: te.Tensor,
    moving_var: te.Tensor,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    training: bool = False,
    momentum: float = 0.1,
) -> list[te.Tensor]:
    """Batch normalisation, after Ioffe and Szegedy, ICML 2015.

    Parameters
    ----------
    gamma, beta, moving_mean, moving_var : (channels,).
    axis : the channel dimension.
    center, scale : whether beta is added, and whether gamma multiplies.
    training : normalise by the statistics of data rather than the moving ones.
    momentum : weight of the new statistics in the moving ones.

    Returns
    -------
    The normalised data, and the moving mean and variance: unchanged, or updated in training, where
    the variance is that of a sample, divided by the count less one.
    """
    rank = len(data.shape)
    at = normalize_axis(axis, rank)
    shape = get_const_tuple(data.shape)
    mean, variance = moving_mean, moving_var
    new_mean, new_variance = identity(moving_mean), identity(moving_var)
    if training:
        axes = [k for k in range(rank) if k != at]
        mean, variance = (reshape(v, (shape[at],)) for v in _moments(data, axes))
        count = simplify(prod(shape[k] for k in axes))
        if is_constant(count):
            unbiased = multiply(variance, as_int(count) / max(as_int(count) - 1, 1))
        else:
            more = count.astype(data.dtype)
            unbiased = multiply(variance, more / (more - tir.const(1, data.dtype)))
        kept = 1.0 - momentum
        new_mean = add(multiply(moving_mean, kept), multiply(mean, momentum))
        new_variance = add(multiply(moving_var, kept), multiply(unbiased, momentum))
    factor = rsqrt(add(variance, epsilon))
    if scale:
        factor = multiply(gamma, factor)
    shift = multiply(mean, factor)
    shift = subtract(beta, shift) if center else subtract(0.0, shift)
    return [_scale_shift(data, factor, shift, at), new_mean, new_variance]


def layer_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor | None,
    axis: int | Sequence[int] = -1,
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Layer normalisation, after Ba et al., arXiv:1607.06450.

    Parameters
    ----------
    gamma, beta : their dimensions are those of ``axis``; beta may be None.
    axis : dimensions to normalise over.
    """
    rank = len(data.shape)
    axes = normalize_axes(axis, rank)
    out = multiply(
        _standardize(_in_float32(data), axes, epsilon), _spread(_in_float32(gamma), axes, rank)
    )
    if beta is not None:
        out = add(out, _spread(_in_float32(beta), axes, rank))
    return out if out.dtype == data.dtype else cast(out, data.dtype)


def rms_norm(
    data: te.Tensor,
    weight: te.Tensor,
    axis: int | Sequence[int] = -1,
    epsilon: float = 1e-5,
) -> te.Tensor:
    """data divided by its root mean square, after Zhang and Sennrich, NeurIPS 2019.

    Parameters
    ----------
    weight : its dimensions are those of ``axis``.
    """
    rank = len(data.shape)
    axes = normalize_axes(axis, rank)
    x = _in_float32(data)
    square = reduction.mean(multiply(x, x), axes, keepdims=True)
    out = multiply(
        multiply(x, rsqrt(add(square, epsilon))), _spread(_in_float32(weight), axes, rank)
    )
    return out if out.dtype == data.dtype else cast(out, data.dtype)


def group_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Group normalisation, after Wu and He, arXiv:1803.08494.

    Parameters
    ----------
    gamma, beta : (channels,).
    num_groups : the channels of a group are neighbours.
    axes : dimensions to normalise over besides the channels of a group, usually the spatial ones.
    """
    shape = get_const_tuple(data.shape)
    at = normalize_axis(channel_axis, len(shape))
    if is_constant(shape[at]) and shape[at] % num_groups:
        raise ValueError(
            f"topi.nn.group_norm: {num_groups} groups do not divide {shape[at]} channels"
        )
    inner = simplify(shape[at] // num_groups)
    x = _in_float32(data)
    others = sorted(k for k in normalize_axes(axes, len(shape)) if k != at)
    average = _group_means(x, at, num_groups, inner, others)
    difference = te.compute(
        shape,
        lambda *i: x(*i) - average(*_group_of(i, at, inner, others)),
        name="T_group_difference",
        tag=tag.BROADCAST,
    )
    variance = _group_means(multiply(difference, difference), at, num_groups, inner, others)
    factor = rsqrt(add(variance, epsilon))
    out = te.compute(
        shape,
        lambda *i: difference(*i) * factor(*_group_of(i, at, inner, others)),
        name="T_group_standardized",
        tag=tag.BROADCAST,
    )
    out = _scale_shift(out, _in_float32(gamma), _in_float32(beta), at)
    return out if out.dtype == data.dtype else cast(out, data.dtype)


def _group_of(indices: Sequence[Any], at: int, inner: Any, others: Sequence[int]) -> list[Any]:
    """Where the statistics of an element's group are, in the result of :func:`_group_means`."""
    kept = [k for k in range(len(indices)) if k not in others]
    return [tir.indexdiv(indices[k], inner) if k == at else indices[k] for k in kept]


def _group_means(
    x: te.Tensor, at: int, num_groups: int, inner: Any, others: Sequence[int]
) -> te.Tensor:
    """Means over neighbouring channels and other dimensions, which the result lacks."""
    shape = get_const_tuple(x.shape)
    kept = [k for k in range(len(shape)) if k not in others]
    loops = {k: te.reduce_axis((0, inner if k == at else shape[k])) for k in sorted([at, *others])}
    count = prod([inner, *(shape[k] for k in others)])

    def total(*indices: Any) -> Any:
        place = dict(zip(kept, indices))
        where = [
            place[k] * inner + loops[k] if k == at else loops.get(k, place.get(k))
            for k in range(len(shape))
        ]
        return te.sum(x(*where), axis=list(loops.values()))

    sums = te.compute(
        [num_groups if k == at else shape[k] for k in kept],
        total,
        name="T_group_sum",
        tag=tag.COMM_REDUCE,
    )
    return divide(sums, float(count) if is_constant(count) else count)


def instance_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    channel_axis: int = 1,
    axis: Sequence[int] = (2, 3),
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Normalisation of each channel of each sample, after Ulyanov et al., arXiv:1607.08022.

    Parameters
    ----------
    gamma, beta : (channels,).
    axis : dimensions to normalise over.
    """
    axes = normalize_axes(axis, len(data.shape))
    out = _standardize(_in_float32(data), axes, epsilon)
    at = normalize_axis(channel_axis, len(data.shape))
    out = _scale_shift(out, _in_float32(gamma), _in_float32(beta), at)
    return out if out.dtype == data.dtype else cast(out, data.dtype)


def lrn(
    data: te.Tensor,
    size: int,
    axis: int = 1,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 2.0,
) -> te.Tensor:
    """data / (bias + alpha / size * sum of squares of ``size`` neighbours along axis) ** beta.

    Local response normalisation, after Krizhevsky et al., NeurIPS 2012.

    Parameters
    ----------
    size : of the neighbourhood, odd.
    """
    if size % 2 == 0:
        raise ValueError(f"topi.nn.lrn: size must be odd, got {size}")
    rank = len(data.shape)
    at = normalize_axis(axis, rank)
    border = [size // 2 if k == at else 0 for k in range(rank)]
    padded = pad(data, border)
    k = te.reduce_axis((0, size), name="k")

    def window(*i: Any) -> Any:
        value = padded(*i[:at], i[at] + k, *i[at + 1 :])
        return te.sum(value * value, axis=[k])

    squares = te.compute(data.shape, window, name="T_lrn_squares", tag=tag.COMM_REDUCE)
    return divide(data, power(add(multiply(squares, alpha / size), bias), beta))


def l2_normalize(data: te.Tensor, eps: float, axis: int | Sequence[int] | None = None) -> te.Tensor:
    """data / sqrt(max(sum of squares over some dimensions, eps))."""
    total = reduction.sum(multiply(data, data), axis, keepdims=True)
    return divide(data, sqrt(maximum(total, eps)))
