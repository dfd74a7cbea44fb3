"""Functions of mathematical physics, by operators that every target has.

Series and approximations are numbered as in Abramowitz and Stegun, "Handbook of Mathematical
Functions" (1964). Those that are good for float32 only are not used for other types, so that the
operator is reported as one that cannot be imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["SPECIAL_FUNCTIONS"]

# Below this arguments are moved up by the recurrence, to where the asymptotic series are exact.
_LARGE, _MOVED = 8, 7
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
# Bernoulli's numbers B(2k), as far as the series of the zeta function is taken.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_TERMS_OF_ZETA = 10


def _as_float(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Of the coefficients of rising powers."""
    value = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _from_integer(x: Tensor) -> Tensor:
    """The distance from the nearest integer, times pi."""
    return (x - x.round()) * math.pi


def _lgamma(x: Tensor) -> Tensor:
    """6.1.41, moved by 6.1.16, and reflected by 6.1.17."""
    x = _as_float(x)
    reflected = x < 0.5
    y = torch.where(reflected, 1 - x, x)
    is_small = y < _LARGE
    product = y
    for k in range(1, _MOVED):
        product = product * (y + k)
    z = torch.where(is_small, y + _MOVED, y)
    inverse = 1 / z
    series = _polynomial(inverse * inverse, _STIRLING) * inverse
    value = (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + series
    value = value - torch.where(is_small, product, torch.ones_like(product)).log()
    value = torch.where(
        reflected, math.log(math.pi) - _from_integer(x).sin().abs().log() - value, value
    )
    return torch.where(x.isinf(), x.abs(), value)


def _digamma(x: Tensor) -> Tensor:
    """6.3.18, moved by 6.3.6, and reflected by 6.3.7."""
    x = _as_float(x)
    reflected = x < 0.5
    y = torch.where(reflected, 1 - x, x)
    is_small = y < _LARGE
    below = 1 / y
    for k in range(1, _MOVED):
        below = below + 1 / (y + k)
    z = torch.where(is_small, y + _MOVED, y)
    inverse = 1 / (z * z)
    series = _polynomial(inverse, (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)) * inverse
    value = z.log() - 0.5 / z - series - torch.where(is_small, below, torch.zeros_like(below))
    angle = _from_integer(x)
    value = torch.where(reflected, value - math.pi / angle.tan(), value)
    value = torch.where((x < 0) & (angle == 0), torch.full_like(x, math.nan), value)
    return torch.where(x == 0, torch.copysign(torch.full_like(x, math.inf), -x), value)


def _zeta(x: int, q: Tensor) -> Tensor:
    """The sum of (k + q)^-x over all k, of positive q: some terms, and 23.1.30 for the rest."""
    value = torch.zeros_like(q)
    for k in range(_TERMS_OF_ZETA):
        value = value + (q + k) ** -x
    z = q + _TERMS_OF_ZETA
    last = z**-x
    value = value + z ** (1 - x) / (x - 1) + last / 2
    factor, faculty = x, 2.0
    for k, number in enumerate(_BERNOULLI, 1):
        last = last / z
        value = value + last * (factor * number / faculty)
        last = last / z
        factor *= (x + 2 * k - 1) * (x + 2 * k)
        faculty *= (2 * k + 1) * (2 * k + 2)
    return value


def _cotangent_derivative(n: int) -> list[int]:
    """The n-th derivative of the cotangent as a polynomial of it: coefficients of rising powers."""
    terms = [0, 1]
    for _ in range(n):
        slopes = [power * term for power, term in enumerate(terms)][1:]
        terms = [0] * (len(slopes) + 2)
        for power, slope in enumerate(slopes):
            terms[power] -= slope
            terms[power + 2] -= slope
    return terms


def _polygamma(n: int, x: Tensor) -> Tensor:
    """6.4.10, and reflected by 6.4.7."""
    if n == 0:
        return _digamma(x)
    x = _as_float(x)
    reflected = x < 0.5
    y = torch.where(reflected, 1 - x, x)
    sign = 1 if n % 2 else -1
    value = _zeta(n + 1, y) * (sign * math.factorial(n))
    angle = _from_integer(x)
    turned = _polynomial(1 / angle.tan(), _cotangent_derivative(n)) * math.pi ** (n + 1)
    value = torch.where(reflected, -sign * value - turned, value)
    return torch.where((x <= 0) & (angle == 0), torch.full_like(x, sign * math.inf), value)


# M. Giles, "Approximating the erfinv function", GPU Computing Gems (2011), table 5.
_NEAR = (1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06,
         -3.5233877e-06, 3.43273939e-07, 2.81022636e-08)  # fmt: skip
_FAR = (2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
        0.00134934322, 0.000100950558, -0.000200214257)  # fmt: skip


def _erfinv(x: Tensor) -> Tensor:
    x = _as_float(x)
    w = -((1 - x) * (1 + x)).log()
    factor = torch.where(w < 5, _polynomial(w - 2.5, _NEAR), _polynomial(w.sqrt() - 3, _FAR))
    y = factor * x
    if x.dtype == torch.float64:
        # Each of Newton's steps doubles the digits.
        for _ in range(2):
            slope = (2 / math.sqrt(math.pi)) * (-y * y).exp()
            tail = torch.where(x > 0, (1 - x) - torch.erfc(y), torch.erfc(-y) - (1 + x))
            y = y + torch.where(x > 0, -tail, -tail) / slope
    return torch.where(x.abs() == 1, x * math.inf, y)


# 9.8.1 to 9.8.4: I0 and I1 near zero, and by exp(x) / sqrt(x) elsewhere.
_I0_NEAR = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_I0_FAR = (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537,
           -0.01647633, 0.00392377)  # fmt: skip
_I1_NEAR = (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411)
_I1_FAR = (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312,
           0.01787654, -0.00420059)  # fmt: skip
_BORDER = 3.75


def _bessel_i(order: int, is_scaled: bool) -> Callable[[Tensor], Tensor]:
    near_terms, far_terms = (_I1_NEAR, _I1_FAR) if order else (_I0_NEAR, _I0_FAR)

    def function(x: Tensor) -> Tensor:
        x = _as_float(x)
        if x.dtype != torch.float32:
            return NotImplemented
        size = x.abs()
        near = _polynomial((x / _BORDER).square(), near_terms) * (x if order else 1)
        away = size.clamp(min=_BORDER)
        far = _polynomial(_BORDER / away, far_terms) / away.sqrt()
        far = far * x.sign() if order else far
        # The root of the exponential twice, as it is out of range before the product is.
        grown = (size / 2).exp()
        if is_scaled:
            near = near * (-size).exp()
        else:
            far = far * grown * grown
        return torch.where(size < _BORDER, near, far)

    return function


# W. Press et al., "Numerical Recipes" (1992), section 6.2: erfc within 1.2e-7 of itself.
_ERFC = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
         1.48851587, -0.82215223, 0.17087277)  # fmt: skip


def _erfcx(x: Tensor) -> Tensor:
    """exp(x * x) * erfc(x)."""
    x = _as_float(x)
    if x.dtype != torch.float32:
        return NotImplemented
    t = 2 / (2 + x.abs())
    value = t * _polynomial(t, _ERFC).exp()
    return torch.where(x < 0, 2 * (x * x).exp() - value, value)


def _erfc(x: Tensor) -> Tensor:
    x = _as_float(x)
    if x.dtype != torch.float32:
        return 1 - torch.erf(x)
    # One minus nearly one has few digits.
    return torch.where(x > 0.5, (-x * x).exp() * _erfcx(x.clamp(min=0)), 1 - torch.erf(x))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lgamma": _lgamma,
    "digamma": _digamma,
    "polygamma": _polygamma,
    "erfc": _erfc,
    "erfcx": _erfcx,
    "erfinv": _erfinv,
    "i0": _bessel_i(0, is_scaled=False),
    "i0e": _bessel_i(0, is_scaled=True),
    "i1": _bessel_i(1, is_scaled=False),
    "i1e": _bessel_i(1, is_scaled=True),
}
# What PyTorch's definitions of other operators call them.
_PRIMITIVES = {
    "erfinv": "erf_inv",
    **{name: f"bessel_{name}" for name in ("i0", "i0e", "i1", "i1e")},
}


def _operators(name: str) -> list[Any]:
    """The operators of a function's name, each in a namespace of its own."""
    found = [
        getattr(torch.ops.aten, name, None),
        getattr(torch.ops.aten, f"special_{name}", None),
        getattr(torch.ops.prims, _PRIMITIVES.get(name, name), None),
    ]
    return [packet.default for packet in found if packet is not None]


SPECIAL_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    operator: function for name, function in _FUNCTIONS.items() for operator in _operators(name)
}
"""How operators are defined by others."""
