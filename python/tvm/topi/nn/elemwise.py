"""Activation functions: of one tensor, element by element."""

from __future__ import annotations

import math
from typing import Any

from tvm import te, tir

from .. import tag
from ..math import clip, elementwise
from ..utils import normalize_axis

__all__ = [
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "silu",
    "softplus",
    "softsign",
]


def relu(x: te.Tensor) -> te.Tensor:
    """max(x, 0)."""
    return elementwise(x, lambda v: tir.Max(v, tir.const(0, x.dtype)), "relu")


def leaky_relu(x: te.Tensor, alpha: float = 0.01) -> te.Tensor:
    """x where positive, alpha * x elsewhere."""
    slope = tir.const(alpha, x.dtype)
    return elementwise(
        x, lambda v: tir.Select(v > tir.const(0, x.dtype), v, v * slope), "leaky_relu"
    )


def prelu(x: te.Tensor, slope: te.Tensor, axis: int = 1) -> te.Tensor:
    """x where positive, slope * x elsewhere, with a slope for each index along one dimension.

    Parameters
    ----------
    slope : (extent of the dimension,).
    axis : the channel dimension.
    """
    at = normalize_axis(axis, len(x.shape))
    if len(slope.shape) != 1:
        raise ValueError(f"topi.nn.prelu: slope has one dimension, got {len(slope.shape)}")
    zero = tir.const(0, x.dtype)
    return te.compute(
        x.shape,
        lambda *i: tir.Select(x(*i) > zero, x(*i), x(*i) * slope(i[at])),
        name="T_prelu",
        tag=tag.BROADCAST,
    )


def relu6(x: te.Tensor) -> te.Tensor:
    """x limited to [0, 6]."""
    return clip(x, 0.0, 6.0)


def hardtanh(x: te.Tensor, min_val: float = -1.0, max_val: float = 1.0) -> te.Tensor:
    """x limited to [min_val, max_val]."""
    return clip(x, min_val, max_val)


def _hardsigmoid(value: Any) -> Any:
    zero, three, six = (tir.const(v, value.dtype) for v in (0.0, 3.0, 6.0))
    clamped = tir.Max(tir.Min(value + three, six), zero)
    return clamped * tir.const(1.0 / 6.0, value.dtype)


def hardsigmoid(x: te.Tensor) -> te.Tensor:
    """relu6(x + 3) / 6."""
    return elementwise(x, _hardsigmoid, "hardsigmoid")


def hardswish(x: te.Tensor) -> te.Tensor:
    """x * relu6(x + 3) / 6."""
    return elementwise(x, lambda v: v * _hardsigmoid(v), "hardswish")


def silu(x: te.Tensor) -> te.Tensor:
    """x * sigmoid(x)."""
    return elementwise(x, lambda v: v * tir.sigmoid(v), "silu")


def elu(x: te.Tensor, alpha: float = 1.0) -> te.Tensor:
    """x where positive, alpha * (exp(x) - 1) elsewhere."""
    zero, one, scale = (tir.const(v, x.dtype) for v in (0.0, 1.0, alpha))

    def value(v: Any) -> Any:
        # The exponent is limited, so the branch that is not taken cannot overflow.
        return tir.Select(v > zero, v, scale * (tir.exp(tir.Min(v, zero)) - one))

    return elementwise(x, value, "elu")


# Fixed point with zero mean and unit variance, Klambauer et al., arXiv:1706.02515.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def selu(x: te.Tensor) -> te.Tensor:
    """Self-normalising unit: a scaled elu."""
    zero, one = tir.const(0.0, x.dtype), tir.const(1.0, x.dtype)
    scale, both = (tir.const(v, x.dtype) for v in (_SELU_SCALE, _SELU_SCALE * _SELU_ALPHA))
    return elementwise(
        x,
        lambda v: tir.Select(v > zero, scale * v, both * (tir.exp(tir.Min(v, zero)) - one)),
        "selu",
    )


def _softplus(v: Any) -> Any:
    # log(1 + exp(v)) with an exponent that is never positive.
    return tir.Max(v, tir.const(0.0, v.dtype)) + tir.log1p(tir.exp(-tir.abs(v)))


def softplus(x: te.Tensor, beta: float = 1.0, threshold: float = 20.0) -> te.Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds the threshold."""
    scale, limit = tir.const(beta, x.dtype), tir.const(threshold, x.dtype)
    return elementwise(
        x, lambda v: tir.Select(v * scale > limit, v, _softplus(v * scale) / scale), "softplus"
    )


def log_sigmoid(x: te.Tensor) -> te.Tensor:
    """Logarithm of the sigmoid."""
    return elementwise(x, lambda v: -_softplus(-v), "log_sigmoid")


def softsign(x: te.Tensor) -> te.Tensor:
    """x / (1 + abs(x))."""
    return elementwise(x, lambda v: v / (tir.const(1.0, x.dtype) + tir.abs(v)), "softsign")


def mish(x: te.Tensor) -> te.Tensor:
    """x * tanh(softplus(x)), after Misra, arXiv:1908.08681."""
    return elementwise(x, lambda v: v * tir.tanh(_softplus(v)), "mish")


def gelu(x: te.Tensor, approximate: str = "none") -> te.Tensor:
    """Gaussian error linear unit, after Hendrycks and Gimpel, arXiv:1606.08415.

    Parameters
    ----------
    approximate : "none" for the exact form with erf, "tanh" for the approximation.
    """
    dtype = x.dtype
    half, one = tir.const(0.5, dtype), tir.const(1.0, dtype)

    def exact(v: Any) -> Any:
        halved = v * half
        return halved * tir.erf(v * tir.const(math.sqrt(0.5), dtype)) + halved

    def by_tanh(v: Any) -> Any:
        inner = (v + v * v * v * tir.const(0.044715, dtype)) * tir.const(
            math.sqrt(2.0 / math.pi), dtype
        )
        return v * half * (one + tir.tanh(inner))

    if approximate == "none":
        return elementwise(x, exact, "gelu")
    if approximate == "tanh":
        return elementwise(x, by_tanh, "gelu_tanh")
    raise ValueError(f"topi.gelu: approximate is 'none' or 'tanh', got {approximate!r}")
