"""Operators of networks that are made of others."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import error
from tvm.ir import RelayExpr

from ...expr import Call, const
from ..base import make_call
from ..binary import add, divide, greater, less, maximum, minimum, multiply, subtract
from ..manipulate import permute_dims, reshape
from ..rules import known_shape, number
from ..selection import where
from ..statistical import mean, variance
from ..unary import exp, rsqrt

__all__ = ["batch_flatten", "instance_norm", "pixel_shuffle", "prelu", "selu", "softplus"]

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""The constants of Klambauer et al., NeurIPS 2017."""


def _like(value: float, x: RelayExpr) -> RelayExpr:
    return const(value, str(x.struct_info.dtype))


def _spread(v: RelayExpr, axis: int, rank: int) -> RelayExpr:
    """A vector, or a single element, along one axis of a tensor."""
    (length,) = known_shape(v.struct_info) or (-1,)
    return reshape(v, [length if k == axis % rank else 1 for k in range(rank)])


def selu(data: RelayExpr) -> Call:
    """The scaled exponential linear unit, after Klambauer et al., NeurIPS 2017."""
    below = minimum(data, _like(0.0, data))
    curve = multiply(make_call("expm1", below), _like(_SELU_ALPHA, data))
    return multiply(add(maximum(data, _like(0.0, data)), curve), _like(_SELU_SCALE, data))


def softplus(data: RelayExpr, beta: float = 1.0, threshold: float = 20.0) -> Call:
    """log(1 + exp(beta * data)) / beta, and data itself where beta * data exceeds a threshold."""
    scaled = multiply(data, _like(beta, data))
    # The branch that is not chosen must not overflow.
    curve = make_call("log1p", exp(minimum(scaled, _like(threshold, data))))
    return where(greater(scaled, _like(threshold, data)), data, divide(curve, _like(beta, data)))


def prelu(data: RelayExpr, alpha: RelayExpr, axis: int = 1) -> Call:
    """data where it is positive, and elsewhere data times a slope for each index along an axis.

    Parameters
    ----------
    alpha : (extent of the axis,), or (1,) for all.
    """
    rank = data.struct_info.ndim
    slope = _spread(alpha, axis % rank, rank)
    return where(less(data, _like(0.0, data)), multiply(data, slope), data)


def pixel_shuffle(data: RelayExpr, upscale_factor: int) -> Call:
    """(..., C * r * r, H, W) as (..., C, H * r, W * r), after Shi et al., CVPR 2016."""
    shape = known_shape(data.struct_info)
    if shape is None or len(shape) < 3:
        raise error.ValueError(
            f"relax.nn.pixel_shuffle: takes at least three axes of known extents, got "
            f"{data.struct_info}"
        )
    *lead, channels, height, width = shape
    r, count = upscale_factor, number(channels)
    if count is not None and count % (r * r):
        raise error.ValueError(
            f"relax.nn.pixel_shuffle: {count} channels are no multiple of {r} * {r}"
        )
    n = len(lead)
    apart = reshape(data, [*lead, channels // (r * r), r, r, height, width])
    moved = permute_dims(apart, [*range(n), *(n + k for k in (0, 3, 1, 4, 2))])
    return reshape(moved, [*lead, channels // (r * r), height * r, width * r])


def batch_flatten(data: RelayExpr) -> Call:
    """All axes but the first as one."""
    shape = known_shape(data.struct_info)
    if shape is None:
        raise error.ValueError(
            f"relax.nn.batch_flatten: the shape must be known, got {data.struct_info}"
        )
    return reshape(data, [shape[0], -1])


def instance_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Normalisation of each channel of each sample, after Ulyanov et al., arXiv:1607.08022.

    Parameters
    ----------
    gamma, beta : (channels,).
    axes : to normalise over, usually the spatial ones.
    center, scale : whether beta is added, and whether gamma multiplies.
    """
    rank = data.struct_info.ndim
    average = mean(data, list(axes), keepdims=True)
    spread = variance(data, list(axes), keepdims=True)
    out = multiply(subtract(data, average), rsqrt(add(spread, _like(epsilon, data))))
    if scale:
        out = multiply(out, _spread(gamma, channel_axis, rank))
    return add(out, _spread(beta, channel_axis, rank)) if center else out
