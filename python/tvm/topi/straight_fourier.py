"""Fourier transforms of few elements as straight programs, over values that are vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir

__all__ = ["LARGEST_PRIME", "LONGEST", "StraightFourier", "is_straight"]

# The longest program, of some 4000 operations on vectors.
LONGEST = 128
LARGEST_PRIME = 13

# Real and imaginary part.
Complex = tuple[Any, Any]
# What loads an element, called where it is needed first: all at once would not fit into registers.
Source = Callable[[], Complex]
# Takes an element of the result, with its number, as soon as there is one.
Sink = Callable[[int, Complex], None]


def _prime_factors(n: int) -> list[int]:
    """In rising order."""
    found, divisor = [], 2
    while divisor * divisor <= n:
        if n % divisor:
            divisor += 1
        else:
            found.append(divisor)
            n //= divisor
    return [*found, n] if n > 1 else found


def is_straight(n: int) -> bool:
    """Whether a transform of n elements is short enough to be written out, see `fft_columns`."""
    return 1 < n <= LONGEST and max(_prime_factors(n)) <= LARGEST_PRIME


class StraightFourier:
    """Transforms of elements that are expressions, written out operation by operation."""

    def __init__(self, ib: Any, dtype: str, lanes: int) -> None:
        self._ib = ib
        self._dtype = dtype if lanes == 1 else f"{dtype}x{lanes}"

    def named(self, value: Any) -> Any:
        """A variable for the value, so that it is computed once."""
        return self._ib.let("x", value)

    def scaled(self, value: Any, factor: float) -> Any:
        """The value itself where the factor is 1."""
        return value if factor == 1 else value * self._constant(factor)

    def transform(self, sources: Sequence[Source], sign: int) -> list[Complex]:
        """The discrete Fourier transform, not scaled."""
        result: list[Complex] = [(None, None)] * len(sources)
        self.transform_into(result.__setitem__, sources, sign)
        return result

    def transform_into(self, sink: Sink, sources: Sequence[Source], sign: int) -> None:
        """As :meth:`transform`."""
        n = len(sources)
        if n == 1:
            sink(0, sources[0]())
            return
        radix = 4 if n % 4 == 0 else _prime_factors(n)[0]
        width = n // radix
        parts = [self.transform(sources[i::radix], sign) for i in range(radix)]
        for k in range(width):
            turned = [self._turned(part[k], i * k, n, sign) for i, part in enumerate(parts)]
            for j, value in enumerate(self._short(turned, sign)):
                sink(k + j * width, value)

    def _constant(self, value: float) -> Any:
        return tir.const(value, self._dtype)

    def _pair(self, re: Any, im: Any) -> Complex:
        return self.named(re), self.named(im)

    def _turned(self, value: Complex, steps: int, n: int, sign: int) -> Complex:
        """Times exp(sign 2 pi i steps / n)."""
        re, im = value
        steps %= n
        if steps == 0:
            return value
        angle = sign * 2 * math.pi * steps / n
        cosine, sine = self._constant(math.cos(angle)), self._constant(math.sin(angle))
        return self._pair(re * cosine - im * sine, re * sine + im * cosine)

    def _plus(self, one: Complex, other: Complex) -> Complex:
        return self._pair(one[0] + other[0], one[1] + other[1])

    def _minus(self, one: Complex, other: Complex) -> Complex:
        return self._pair(one[0] - other[0], one[1] - other[1])

    def _short(self, values: list[Complex], sign: int) -> list[Complex]:
        """A transform of 2, 4 or a small odd number of elements."""
        if len(values) == 2:
            return [self._plus(*values), self._minus(*values)]
        if len(values) == 4:
            even, odd = self._plus(values[0], values[2]), self._plus(values[1], values[3])
            left, right = self._minus(values[0], values[2]), self._minus(values[1], values[3])
            # i times the difference, forwards or backwards.
            turned = (-right[1], right[0]) if sign > 0 else (right[1], -right[0])
            return [
                self._plus(even, odd),
                self._plus(left, turned),
                self._minus(even, odd),
                self._minus(left, turned),
            ]
        return self._odd(values, sign)

    def _odd(self, values: list[Complex], sign: int) -> list[Complex]:
        """Elements k and n - k share their cosines, and their sines but for the sign."""
        n, first = len(values), values[0]
        sums = [self._plus(values[k], values[n - k]) for k in range(1, n // 2 + 1)]
        differences = [self._minus(values[k], values[n - k]) for k in range(1, n // 2 + 1)]
        total = first
        for each in sums:
            total = self._plus(total, each)
        result: list[Complex] = [total] * n
        for j in range(1, n // 2 + 1):
            (re, im), (across, along) = first, (None, None)
            for k, (each, other) in enumerate(zip(sums, differences), 1):
                angle = sign * 2 * math.pi * (j * k % n) / n
                cosine, sine = self._constant(math.cos(angle)), self._constant(math.sin(angle))
                re, im = self._pair(re + each[0] * cosine, im + each[1] * cosine)
                if across is None:
                    across, along = self._pair(other[0] * sine, other[1] * sine)
                else:
                    across, along = self._pair(across + other[0] * sine, along + other[1] * sine)
            # The differences are turned by a quarter: times i.
            result[j] = self._pair(re - along, im + across)
            result[n - j] = self._pair(re + along, im - across)
        return result
