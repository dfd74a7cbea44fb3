"""Functions of one tensor, applied to each element."""

from __future__ import annotations

import math as _math
from collections.abc import Callable
from typing import Any

from tvm import te, tir

from . import tag

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "ceil",
    "ceil_log2",
    "clip",
    "cos",
    "cosh",
    "elementwise",
    "erf",
    "exp",
    "expm1",
    "fast_erf",
    "fast_exp",
    "fast_tanh",
    "fixed_point_multiply",
    "fixed_point_multiply_per_axis",
    "floor",
    "identity",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "negative",
    "reinterpret",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


def elementwise(x: te.Tensor, fn: Callable[[Any], Any], name: str) -> te.Tensor:
    """Tensor of ``fn(element)``; the stage is called ``T_<name>``."""
    return te.compute(x.shape, lambda *i: fn(x(*i)), name=f"T_{name}", tag=tag.ELEMWISE)


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def _round_as(x: te.Tensor, fn: Callable[[Any], Any], name: str) -> te.Tensor:
    """Rounding leaves whole numbers alone."""
    return elementwise(x, fn if _is_float(x.dtype) else lambda v: v, name)


def identity(x: te.Tensor) -> te.Tensor:
    """A copy of x."""
    return elementwise(x, lambda v: v, "identity")


def negative(x: te.Tensor) -> te.Tensor:
    """-x."""
    return elementwise(x, lambda v: -v, "negative")


def abs(x: te.Tensor) -> te.Tensor:
    """Magnitude."""
    return elementwise(x, tir.abs, "abs")


def sign(x: te.Tensor) -> te.Tensor:
    """-1, 0 or 1, in the type of x; 0 for NaN."""
    zero, high = tir.const(0, x.dtype), tir.const(1, x.dtype)
    low = zero if x.dtype.startswith("uint") else tir.const(-1, x.dtype)
    return elementwise(
        x, lambda v: tir.Select(v > zero, high, tir.Select(v < zero, low, zero)), "sign"
    )


def exp(x: te.Tensor) -> te.Tensor:
    """e to the power of x."""
    return elementwise(x, tir.exp, "exp")


def log(x: te.Tensor) -> te.Tensor:
    """Natural logarithm."""
    return elementwise(x, tir.log, "log")


def expm1(x: te.Tensor) -> te.Tensor:
    """exp(x) - 1, accurate also near zero.

    By e^x - 1 = tanh(x / 2) (e^x + 1), whose factors lose nothing where x is small; far from zero,
    where the product would overflow or the tangent is 1, the difference is exact enough.
    """
    half, one, far = (tir.const(v, x.dtype) for v in (0.5, 1.0, 0.5))

    def value(v: Any) -> Any:
        near = tir.tanh(v * half) * (tir.exp(v) + one)
        return tir.Select(tir.abs(v) < far, near, tir.exp(v) - one)

    return elementwise(x, value, "expm1")


def log1p(x: te.Tensor) -> te.Tensor:
    """log(1 + x), accurate also near zero."""
    return elementwise(x, tir.log1p, "log1p")


def log2(x: te.Tensor) -> te.Tensor:
    """Logarithm to base 2."""
    return elementwise(x, tir.log2, "log2")


def log10(x: te.Tensor) -> te.Tensor:
    """Logarithm to base 10."""
    return elementwise(x, tir.log10, "log10")


def sqrt(x: te.Tensor) -> te.Tensor:
    """Square root."""
    return elementwise(x, tir.sqrt, "sqrt")


def rsqrt(x: te.Tensor) -> te.Tensor:
    """One over the square root."""
    return elementwise(x, lambda v: tir.const(1.0, x.dtype) / tir.sqrt(v), "rsqrt")


def erf(x: te.Tensor) -> te.Tensor:
    """Gauss error function."""
    return elementwise(x, tir.erf, "erf")


def sigmoid(x: te.Tensor) -> te.Tensor:
    """1 / (1 + exp(-x))."""
    return elementwise(x, tir.sigmoid, "sigmoid")


def sin(x: te.Tensor) -> te.Tensor:
    """Sine."""
    return elementwise(x, tir.sin, "sin")


def cos(x: te.Tensor) -> te.Tensor:
    """Cosine."""
    return elementwise(x, tir.cos, "cos")


def tan(x: te.Tensor) -> te.Tensor:
    """Tangent."""
    return elementwise(x, tir.tan, "tan")


def asin(x: te.Tensor) -> te.Tensor:
    """Arc sine."""
    return elementwise(x, tir.asin, "asin")


def acos(x: te.Tensor) -> te.Tensor:
    """Arc cosine."""
    return elementwise(x, tir.acos, "acos")


def atan(x: te.Tensor) -> te.Tensor:
    """Arc tangent."""
    return elementwise(x, tir.atan, "atan")


def sinh(x: te.Tensor) -> te.Tensor:
    """Hyperbolic sine."""
    return elementwise(x, tir.sinh, "sinh")


def cosh(x: te.Tensor) -> te.Tensor:
    """Hyperbolic cosine."""
    return elementwise(x, tir.cosh, "cosh")


def tanh(x: te.Tensor) -> te.Tensor:
    """Hyperbolic tangent."""
    return elementwise(x, tir.tanh, "tanh")


# From here on the square of a float32 or a float16 leaves little of the 1 it is added to, and
# soon would overflow.
_HUGE = 100.0


def asinh(x: te.Tensor) -> te.Tensor:
    """Inverse of sinh, accurate also near zero, where 1 + x rounds to 1."""
    one, zero, huge = (tir.const(v, x.dtype) for v in (1.0, 0.0, _HUGE))

    def value(v: Any) -> Any:
        size = tir.abs(v)
        small = tir.min(size, huge)
        square = small * small
        near = tir.log1p(small + square / (one + tir.sqrt(one + square)))
        # For large v: v + sqrt(v^2 + 1) = 2 v + 1 / (2 v) + ...
        far = tir.log(tir.max(size, one)) + tir.const(_math.log(2.0), x.dtype)
        far = far + tir.const(0.25, x.dtype) / tir.max(size, one) / tir.max(size, one)
        result = tir.Select(size < huge, near, far)
        return tir.Select(v < zero, -result, result)

    return elementwise(x, value, "asinh")


def acosh(x: te.Tensor) -> te.Tensor:
    """Inverse of cosh for x >= 1, NaN below."""
    one, two, huge = (tir.const(v, x.dtype) for v in (1.0, 2.0, _HUGE))

    def value(v: Any) -> Any:
        above = tir.min(v, huge) - one
        near = tir.log1p(above + tir.sqrt(above * (above + two)))
        far = tir.log(tir.max(v, one)) + tir.const(_math.log(2.0), x.dtype)
        far = far - tir.const(0.25, x.dtype) / tir.max(v, one) / tir.max(v, one)
        return tir.Select(v < huge, near, far)

    return elementwise(x, value, "acosh")


def atanh(x: te.Tensor) -> te.Tensor:
    """Inverse of tanh for -1 < x < 1."""
    one, half, two = (tir.const(v, x.dtype) for v in (1.0, 0.5, 2.0))
    return elementwise(x, lambda v: half * tir.log1p(two * v / (one - v)), "atanh")


def floor(x: te.Tensor) -> te.Tensor:
    """Largest whole number not above x."""
    return _round_as(x, tir.floor, "floor")


def ceil(x: te.Tensor) -> te.Tensor:
    """Smallest whole number not below x."""
    return _round_as(x, tir.ceil, "ceil")


def trunc(x: te.Tensor) -> te.Tensor:
    """x without its fraction."""
    return _round_as(x, tir.trunc, "trunc")


def round(x: te.Tensor) -> te.Tensor:
    """Nearest whole number, halves to the even one, as NumPy and PyTorch round."""
    return _round_as(x, tir.nearbyint, "round")


def isnan(x: te.Tensor) -> te.Tensor:
    """Whether x is not a number; bool."""
    return elementwise(x, tir.isnan, "isnan")


def isinf(x: te.Tensor) -> te.Tensor:
    """Whether x is an infinity of either sign; bool."""
    return elementwise(x, tir.isinf, "isinf")


def isfinite(x: te.Tensor) -> te.Tensor:
    """Whether x is neither infinite nor NaN; bool."""
    return elementwise(x, tir.isfinite, "isfinite")


def cast(x: te.Tensor, dtype: str) -> te.Tensor:
    """x converted to another element type, as C converts; nonzero is true."""
    if dtype == "bool" and x.dtype != "bool":
        return elementwise(x, lambda v: v != tir.const(0, x.dtype), "cast")
    return elementwise(x, lambda v: v.astype(dtype), "cast")


def reinterpret(x: te.Tensor, dtype: str) -> te.Tensor:
    """The bits of x as another type of the same size."""
    return elementwise(x, lambda v: tir.reinterpret(dtype, v), "reinterpret")


def clip(x: te.Tensor, a_min: float, a_max: float) -> te.Tensor:
    """x limited to [a_min, a_max]; a limit outside of the type's range is left out."""
    if a_min > a_max:
        raise ValueError(f"topi.clip: a_min {a_min} exceeds a_max {a_max}")
    low, high = tir.min_value(x.dtype).value, tir.max_value(x.dtype).value
    if not _is_float(x.dtype):
        # Of whole numbers, those between the limits.
        a_min = a_min if _math.isinf(a_min) else _math.ceil(a_min)
        a_max = a_max if _math.isinf(a_max) else _math.floor(a_max)

    def limit(value: Any) -> Any:
        if a_max < high:
            value = tir.Min(value, tir.const(a_max, x.dtype))
        if a_min > low:
            value = tir.Max(value, tir.const(a_min, x.dtype))
        return value

    return elementwise(x, limit, "clip")


def ceil_log2(x: te.Tensor) -> te.Tensor:
    """Smallest k with 2**k >= x, for positive x; int32 for integers, else the type of x."""
    if _is_float(x.dtype):
        return elementwise(x, lambda v: tir.ceil(tir.log2(v)), "ceil_log2")
    bits = int(x.dtype.lstrip("uint"))

    def value(v: Any) -> Any:
        # Every bit below the highest set bit of v - 1 set too: their count is the answer.
        filled = v - tir.const(1, x.dtype)
        shift = 1
        while shift < bits:
            filled = filled | (filled >> shift)
            shift *= 2
        return tir.popcount(filled).astype("int32")

    return elementwise(x, value, "ceil_log2")


def _scale_q31(v: Any, multiplier: Any, left: Any, right: Any) -> Any:
    """(v << left) * multiplier / 2**(31 + right), halves rounded up, in 64 bits."""
    product = (v.astype("int64") << left.astype("int64")) * multiplier.astype("int64")
    shift = right.astype("int64") + tir.const(31, "int64")
    half = tir.const(1, "int64") << (shift - tir.const(1, "int64"))
    return ((product + half) >> shift).astype("int32")


def fixed_point_multiply(x: te.Tensor, multiplier: int, shift: int) -> te.Tensor:
    """x * multiplier * 2**(shift - 31) in integers, halves rounded up.

    Parameters
    ----------
    x : int32.
    multiplier : Q31 fixed-point number in [-2**31, 2**31).
    shift : positive for a shift to the left.
    """
    factor = tir.const(multiplier, "int32")
    left, right = (tir.const(max(s, 0), "int32") for s in (shift, -shift))
    return elementwise(x, lambda v: _scale_q31(v, factor, left, right), "fixed_point_multiply")


def fixed_point_multiply_per_axis(
    x: te.Tensor,
    multiplier: te.Tensor,
    lshift: te.Tensor,
    rshift: te.Tensor,
    axis: int | tuple[int, ...],
) -> te.Tensor:
    """:func:`fixed_point_multiply` with a multiplier and shifts for each index of some axes.

    Parameters
    ----------
    multiplier, lshift, rshift : int32; their dimensions are the given axes of x, in order.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def body(*i: Any) -> Any:
        at = [i[k] for k in axes]
        return _scale_q31(x(*i), multiplier(*at), lshift(*at), rshift(*at))

    return te.compute(x.shape, body, name="T_fixed_point_multiply_per_axis", tag=tag.BROADCAST)


def _exp_by_polynomial(v: Any) -> Any:
    """exp of a float32 from sums and products only: 2**n * p(r), |r| <= ln(2) / 2.

    p is the Taylor polynomial of degree 6, whose remainder on that range is below 2**-22; ln(2) is
    split in a short head and a tail, so that r is exact.
    """
    f32 = "float32"
    # Beyond these, 2**n has no normal float32.
    v = tir.max(tir.min(v, tir.const(88.3, f32)), tir.const(-87.3, f32))
    n = tir.floor(v * tir.const(1.0 / _math.log(2.0), f32) + tir.const(0.5, f32))
    head = 0.693359375
    r = v - n * tir.const(head, f32) - n * tir.const(_math.log(2.0) - head, f32)
    p = tir.const(1.0 / 720, f32)
    for k in (120, 24, 6, 2, 1, 1):
        p = p * r + tir.const(1.0 / k, f32)
    bits = (n.astype("int32") + tir.const(127, "int32")) << tir.const(23, "int32")
    return p * tir.reinterpret(f32, bits)


def _fast(x: te.Tensor, fn: Callable[[Any], Any], exact: Callable[..., Any], name: str) -> Any:
    """The approximation for float32, the exact function for other types."""
    return elementwise(x, fn, name) if x.dtype == "float32" else exact(x)


def fast_exp(x: te.Tensor) -> te.Tensor:
    """exp from arithmetic only; relative error below 3e-7, limited to [exp(-87.3), exp(88.3)]."""
    return _fast(x, _exp_by_polynomial, exp, "fast_exp")


def fast_tanh(x: te.Tensor) -> te.Tensor:
    """tanh from arithmetic only; absolute error below 1e-6."""

    def value(v: Any) -> Any:
        one, two = tir.const(1.0, "float32"), tir.const(2.0, "float32")
        # tanh is 1 in float32 from 9 on.
        size = tir.min(tir.abs(v), tir.const(9.0, "float32"))
        result = one - two / (_exp_by_polynomial(two * size) + one)
        return tir.Select(v < tir.const(0.0, "float32"), -result, result)

    return _fast(x, value, tanh, "fast_tanh")


def fast_erf(x: te.Tensor) -> te.Tensor:
    """erf from arithmetic only; absolute error below 1e-6.

    Formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions, 1964.
    """

    def value(v: Any) -> Any:
        f32 = "float32"
        one, size = tir.const(1.0, f32), tir.abs(v)
        t = one / (one + tir.const(0.3275911, f32) * size)
        p = tir.const(1.061405429, f32)
        for a in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            p = p * t + tir.const(a, f32)
        result = one - p * t * _exp_by_polynomial(-size * size)
        return tir.Select(v < tir.const(0.0, f32), -result, result)

    return _fast(x, value, erf, "fast_erf")
