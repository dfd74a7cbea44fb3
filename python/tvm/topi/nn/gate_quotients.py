"""Sigmoids and hyperbolic tangents of gates as quotients, whose divisions are put off.

What a recurrent unit computes of its gates are sums and products of these functions. As quotients
of polynomials they take a division for each result instead of one for each function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tir

__all__ = ["GateFunctions", "Quotient"]

# tanh(x) is x times a quotient of polynomials in x^2, whose largest relative error up to the bound
# is the least there is, 1.2e-8; beyond it float32 rounds tanh to 1. Fitted by weighted least
# squares; rounding makes it 3.1e-7.
_BOUND = 8.5
_TOP = (
    0.9999999882210312,
    0.13413248698743038,
    0.0035340288540210095,
    2.1251074023464083e-05,
    1.426926492840743e-08,
)
_BOTTOM = (
    1.0,
    0.46746571445000573,
    0.026022759203767426,
    0.0003348867919959586,
    8.145139357830303e-07,
)


@dataclass(frozen=True)
class Quotient:
    """A number that is not divided yet; `bottom` is None where there is nothing to divide by."""

    top: Any
    bottom: Any = None

    def __mul__(self, other: Quotient) -> Quotient:
        return Quotient(self.top * other.top, _product(self.bottom, other.bottom))

    def __add__(self, other: Quotient) -> Quotient:
        top = _product(self.top, other.bottom) + _product(other.top, self.bottom)
        return Quotient(top, _product(self.bottom, other.bottom))

    @property
    def value(self) -> Any:
        """The number."""
        return self.top if self.bottom is None else self.top / self.bottom


def _product(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return a * b


class GateFunctions:
    """The functions of gates.

    Parameters
    ----------
    as_polynomials : in float32, within 5e-7 of the functions; else as the target has them.
    """

    def __init__(self, as_polynomials: bool) -> None:
        self._as_polynomials = as_polynomials

    def tanh(self, x: Any) -> Quotient:
        """Hyperbolic tangent."""
        if not self._as_polynomials:
            return Quotient(tir.tanh(x))
        bound = tir.const(_BOUND, "float32")
        x = tir.max(tir.min(x, bound), -bound)
        return Quotient(x * _polynomial(_TOP, x * x), _polynomial(_BOTTOM, x * x))

    def sigmoid(self, x: Any) -> Quotient:
        """Logistic function."""
        if not self._as_polynomials:
            return Quotient(tir.sigmoid(x))
        half = self.tanh(x * tir.const(0.5, "float32"))
        return Quotient(half.bottom + half.top, half.bottom + half.bottom)

    def one_minus_sigmoid(self, x: Any) -> Quotient:
        """What the logistic function lacks to 1."""
        if not self._as_polynomials:
            return Quotient(tir.sigmoid(-x))
        half = self.tanh(x * tir.const(0.5, "float32"))
        return Quotient(half.bottom - half.top, half.bottom + half.bottom)


def _polynomial(coefficients: tuple[float, ...], y: Any) -> Any:
    result = tir.const(coefficients[-1], "float32")
    for coefficient in reversed(coefficients[:-1]):
        result = result * y + tir.const(coefficient, "float32")
    return result
