"""Functions of one tensor, applied to each element."""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import te, tir

from . import tag

__all__ = [
    "cast",
    "clip",
    "erf",
    "exp",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "identity",
    "leaky_relu",
    "log",
    "negative",
    "relu",
    "relu6",
    "rsqrt",
    "sigmoid",
    "silu",
    "sqrt",
    "tanh",
]


def _map(x: te.Tensor, fn: Callable[[tir.PrimExpr], tir.PrimExpr], name: str) -> te.Tensor:
    return te.compute(x.shape, lambda *i: fn(x(*i)), name=name, tag=tag.ELEMWISE)


def _clamp(value: tir.PrimExpr, low: float, high: float) -> tir.PrimExpr:
    dtype = value.dtype
    return tir.Max(tir.Min(value, tir.const(high, dtype)), tir.const(low, dtype))


def exp(x: te.Tensor) -> te.Tensor:
    """e to the power of x."""
    return _map(x, tir.exp, "exp")


def log(x: te.Tensor) -> te.Tensor:
    """Natural logarithm."""
    return _map(x, tir.log, "log")


def sqrt(x: te.Tensor) -> te.Tensor:
    """Square root."""
    return _map(x, tir.sqrt, "sqrt")


def rsqrt(x: te.Tensor) -> te.Tensor:
    """One over the square root."""
    return _map(x, lambda v: tir.const(1.0, x.dtype) / tir.sqrt(v), "rsqrt")


def tanh(x: te.Tensor) -> te.Tensor:
    """Hyperbolic tangent."""
    return _map(x, tir.tanh, "tanh")


def sigmoid(x: te.Tensor) -> te.Tensor:
    """1 / (1 + exp(-x))."""
    return _map(x, tir.sigmoid, "sigmoid")


def erf(x: te.Tensor) -> te.Tensor:
    """Gauss error function."""
    return _map(x, tir.erf, "erf")


def negative(x: te.Tensor) -> te.Tensor:
    """-x."""
    return _map(x, lambda v: tir.const(0, x.dtype) - v, "negative")


def identity(x: te.Tensor) -> te.Tensor:
    """A copy of x."""
    return _map(x, lambda v: v, "copy")


def cast(x: te.Tensor, dtype: str) -> te.Tensor:
    """x converted to another element type, as C converts."""
    return _map(x, lambda v: v.astype(dtype), "cast")


def relu(x: te.Tensor) -> te.Tensor:
    """max(x, 0)."""
    return _map(x, lambda v: tir.Max(v, tir.const(0, x.dtype)), "relu")


def leaky_relu(x: te.Tensor, alpha: float = 0.01) -> te.Tensor:
    """x where positive, alpha * x elsewhere."""
    slope = tir.const(alpha, x.dtype)
    return _map(x, lambda v: tir.Select(v > tir.const(0, x.dtype), v, v * slope), "leaky_relu")


def clip(x: te.Tensor, a_min: float, a_max: float) -> te.Tensor:
    """x limited to [a_min, a_max]; an infinite limit is left out."""
    if a_min > a_max:
        raise ValueError(f"topi.clip: a_min {a_min} exceeds a_max {a_max}")

    def limit(value: tir.PrimExpr) -> tir.PrimExpr:
        if not math.isinf(a_max):
            value = tir.Min(value, tir.const(a_max, x.dtype))
        if not math.isinf(a_min):
            value = tir.Max(value, tir.const(a_min, x.dtype))
        return value

    return _map(x, limit, "clip")


def relu6(x: te.Tensor) -> te.Tensor:
    """x limited to [0, 6]."""
    return clip(x, 0.0, 6.0)


def hardtanh(x: te.Tensor, min_val: float = -1.0, max_val: float = 1.0) -> te.Tensor:
    """x limited to [min_val, max_val]."""
    return clip(x, min_val, max_val)


def _hardsigmoid(value: tir.PrimExpr) -> tir.PrimExpr:
    dtype = value.dtype
    return _clamp(value + tir.const(3.0, dtype), 0.0, 6.0) * tir.const(1.0 / 6.0, dtype)


def hardsigmoid(x: te.Tensor) -> te.Tensor:
    """relu6(x + 3) / 6."""
    return _map(x, _hardsigmoid, "hardsigmoid")


def hardswish(x: te.Tensor) -> te.Tensor:
    """x * relu6(x + 3) / 6."""
    return _map(x, lambda v: v * _hardsigmoid(v), "hardswish")


def silu(x: te.Tensor) -> te.Tensor:
    """x * sigmoid(x)."""
    return _map(x, lambda v: v * tir.sigmoid(v), "silu")


def gelu(x: te.Tensor, approximate: str = "none") -> te.Tensor:
    """Gaussian error linear unit, after Hendrycks and Gimpel, arXiv:1606.08415.

    Parameters
    ----------
    approximate : "none" for the exact form with erf, "tanh" for the approximation.
    """
    dtype = x.dtype
    half, one = tir.const(0.5, dtype), tir.const(1.0, dtype)

    def exact(v: tir.PrimExpr) -> tir.PrimExpr:
        return v * half * (one + tir.erf(v * tir.const(math.sqrt(0.5), dtype)))

    def by_tanh(v: tir.PrimExpr) -> tir.PrimExpr:
        inner = (v + v * v * v * tir.const(0.044715, dtype)) * tir.const(
            math.sqrt(2.0 / math.pi), dtype
        )
        return v * half * (one + tir.tanh(inner))

    if approximate == "none":
        return _map(x, exact, "gelu")
    if approximate == "tanh":
        return _map(x, by_tanh, "gelu_tanh")
    raise ValueError(f"topi.gelu: approximate is 'none' or 'tanh', got {approximate!r}")
