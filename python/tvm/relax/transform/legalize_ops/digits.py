"""Where an element of one shape is in another: digits of its row-major position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tir
from tvm.topi.utils import Extent, as_int, is_constant

__all__ = ["digits"]

_WIDEST = 2**31 - 1


@dataclass(frozen=True)
class _Term:
    """``base // divisor * scale``"""

    base: Any
    scale: int = 1
    divisor: int = 1

    def value(self) -> Any:
        quotient = self.base if self.divisor == 1 else self.base // self.divisor
        return quotient if self.scale == 1 else quotient * self.scale


def _total(terms: Sequence[_Term]) -> Any:
    """The sum, larger scales first."""
    ordered = sorted(terms, key=lambda term: (-term.scale, -term.divisor))
    total = ordered[0].value()
    for term in ordered[1:]:
        total = total + term.value()
    return total


def _split_constant(extent: Extent) -> tuple[int, Any]:
    """An extent as a number times what is not known, None for 1."""
    if is_constant(extent):
        return as_int(extent), None
    if isinstance(extent, tir.Mul):
        number, rest = _split_constant(extent.a)
        other, last = _split_constant(extent.b)
        both = last if rest is None else rest if last is None else rest * last
        return number * other, both
    return 1, extent


def _position(indices: Sequence[Any], shape: Sequence[Extent]) -> list[_Term]:
    """The row-major position of an element, as a sum."""
    terms: list[_Term] = []
    for index, extent in zip(indices, shape):
        number, symbol = _split_constant(extent)
        terms = [
            _Term(t.base if symbol is None else t.base * symbol, t.scale * number) for t in terms
        ]
        terms.append(_Term(index))
    return terms


def _remainder(terms: Sequence[_Term], extent: int) -> Any:
    """The sum modulo a number: terms that are multiples of it do not matter."""
    rest = [term for term in terms if term.scale % extent]
    if not rest:
        return 0
    if len(rest) > 1:
        return _total(rest) % extent
    term = rest[0]
    if extent % term.scale:
        return term.value() % extent
    whole = extent // term.scale * term.divisor
    if term.divisor == 1:
        return _Term(term.base % whole, term.scale).value()
    if whole > _WIDEST:
        # Only a leading digit is that wide, and it is in range already.
        return term.value()
    return _Term(term.base % whole, term.scale, term.divisor).value()


def _quotient(terms: Sequence[_Term], extent: int) -> list[_Term]:
    """The sum divided by a number: terms that are multiples of it are divided by themselves."""
    even = [_Term(t.base, t.scale // extent, t.divisor) for t in terms if t.scale % extent == 0]
    rest = [term for term in terms if term.scale % extent]
    if not rest:
        return even
    if len(rest) == 1 and extent % rest[0].scale == 0:
        term = rest[0]
        return [*even, _Term(term.base, 1, term.divisor * (extent // term.scale))]
    return [*even, _Term(_total(rest), 1, extent)]


def digits(indices: Sequence[Any], shape: Sequence[Extent], other: Sequence[Extent]) -> list[Any]:
    """The index in `other` of the element that is at `indices` in `shape`, row-major in both.

    Divisions go through sums as far as multiples allow, without a look at how large indices are, so
    that kernels are of one form however they are read.
    """
    terms = _position(indices, shape)
    places: list[Any] = []
    for extent in reversed(other):
        if not is_constant(extent):
            total = _total(terms)
            places.append(total % extent)
            terms = [_Term(total // extent)]
            continue
        number = as_int(extent)
        if number == 1 or not terms:
            places.append(0)
            continue
        places.append(_remainder(terms, number))
        terms = _quotient(terms, number)
    return places[::-1]
