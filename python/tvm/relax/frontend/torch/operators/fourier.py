"""Discrete Fourier transforms: products with matrices of roots of unity.

A transform of n elements is one product with a matrix of n rows where n is small. A larger one of
n = p q is p q / p transforms of p, factors in between, and p of q (Cooley and Tukey); one whose
prime factors are too large for that is a convolution with a chirp (Bluestein), which is made of
transforms whose length is a power of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import Constant, const
from tvm.relax.struct_info import static_shape

from ..arguments import Arguments, Complex, complex_converter
from .complex_numbers import Parts, parts_of, times
from .linear import product

__all__: list[str] = []

# The longest transform that is one product.
_DIRECT = 640


@complex_converter("_fft_r2c.default")
def _fft_r2c(a: Arguments) -> Complex:
    """Of real numbers, over the last of the dimensions first; the other half is its mirror."""
    *others, last = a.axes("dim") or []
    extent = a.shape("self")[last]
    count = extent // 2 + 1 if a["onesided"] else extent
    parts = _along(a, (a.operand("self"), None), last, -1, count, _scale(a, a.shape("self")))
    return _complex(a, _over(a, parts, others, -1))


@complex_converter("_fft_c2c.default")
def _fft_c2c(a: Arguments) -> Complex:
    axes = a.axes("dim") or []
    sign = -1 if a["forward"] else 1
    parts = parts_of(a, a["self"])
    scale = _scale(a, a.shape("self"))
    for axis in axes:
        parts = _along(a, parts, axis, sign, a.shape("self")[axis], scale)
        scale = 1.0
    return _complex(a, parts)


@complex_converter("_fft_c2r.default")
def _fft_c2r(a: Arguments) -> RelayExpr:
    """From the half of a spectrum to real numbers."""
    *others, last = a.axes("dim") or []
    extent = int(a["last_dim_size"])
    given = a.shape("self")[last]
    a.refuse_unless(given == extent // 2 + 1, f"of {given} elements to {extent}")
    parts = _over(a, parts_of(a, a["self"]), others, 1)
    scale = _scale(a, a.result_shape)
    rows, shape, order = _rows(a, parts, last)
    if extent <= _DIRECT:
        out = _half_product(a, rows, extent, scale)
    else:
        out = _transform(a, _mirrored(a, rows, extent), extent, 1, extent, scale)[0]
    return _from_rows(a, out, shape, order)


def _scale(a: Arguments, shape: tuple[int, ...]) -> float:
    """The factor of a transform over the dimensions named, as PyTorch's modes say."""
    count = math.prod(shape[axis] for axis in a.axes("dim") or [])
    return [1.0, 1 / math.sqrt(count), 1 / count][int(a["normalization"])]


def _complex(a: Arguments, parts: Parts) -> Complex:
    real, imag = parts
    return Complex(real, a.call("zeros_like", real) if imag is None else imag)


def _over(a: Arguments, parts: Parts, axes: list[int], sign: int) -> Parts:
    for axis in axes:
        extent = static_shape(parts[0].struct_info)[axis]
        parts = _along(a, parts, axis, sign, extent, 1.0)
    return parts


def _along(a: Arguments, parts: Parts, axis: int, sign: int, count: int, scale: float) -> Parts:
    """The first `count` elements of the transform along an axis; sign -1 is the forward one."""
    extent = static_shape(parts[0].struct_info)[axis]
    rows, shape, order = _rows(a, parts, axis)
    real, imag = _transform(a, rows, extent, sign, count, scale)
    out = _from_rows(a, real, shape, order)
    return out, None if imag is None else _from_rows(a, imag, shape, order)


def _rows(a: Arguments, parts: Parts, axis: int) -> tuple[Parts, tuple[int, ...], list[int]]:
    """Parts as matrices whose rows are along an axis, the other extents, and where axes went."""
    shape = static_shape(parts[0].struct_info)
    order = [*(k for k in range(len(shape)) if k != axis), axis]
    rest = tuple(shape[k] for k in order[:-1])

    def flat(value: RelayExpr) -> RelayExpr:
        if order != sorted(order):
            value = a.emit(op.permute_dims(value, order))
        return a.emit(op.reshape(value, (math.prod(rest), shape[axis])))

    real, imag = parts
    return (flat(real), None if imag is None else flat(imag)), rest, order


def _from_rows(a: Arguments, rows: RelayExpr, rest: tuple[int, ...], order: list[int]) -> RelayExpr:
    extent = static_shape(rows.struct_info)[1]
    value = a.emit(op.reshape(rows, (*rest, extent)))
    if order == sorted(order):
        return value
    return a.emit(op.permute_dims(value, [int(k) for k in np.argsort(order)]))


def _transform(a: Arguments, rows: Parts, n: int, sign: int, count: int, scale: float) -> Parts:
    """The first `count` elements of the transform of each row of n."""
    if n <= _DIRECT:
        # Exact multiples of the angle: k t grows beyond what a float's sine is exact for.
        turns = np.outer(np.arange(n), np.arange(count)) % n
        return _times_matrix(a, rows, np.exp(sign * 2j * np.pi / n * turns) * scale)
    primes = _prime_factors(n)
    if primes[-1] > _DIRECT:
        parts = _chirped(a, rows, n, sign, scale)
    else:
        parts = _in_two(a, rows, n, _near_root(n), sign, scale)
    if count == n:
        return parts
    real, imag = parts
    return _first(a, real, count), None if imag is None else _first(a, imag, count)


def _first(a: Arguments, rows: RelayExpr, count: int) -> RelayExpr:
    return a.emit(op.strided_slice(rows, [1], [0], [count]))


def _prime_factors(n: int) -> list[int]:
    found, divisor = [], 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            found.append(divisor)
            n //= divisor
        divisor += 1
    return [*found, n] if n > 1 else found


def _near_root(n: int) -> int:
    """The divisor nearest to the root of a number that is no prime, from below."""
    return max(d for d in range(2, math.isqrt(n) + 1) if n % d == 0)


def _constants(a: Arguments, values: np.ndarray) -> tuple[Constant, Constant]:
    return const(values.real, a.result_dtype), const(values.imag, a.result_dtype)


def _times_matrix(a: Arguments, rows: Parts, matrix: np.ndarray) -> Parts:
    """Rows times a matrix of complex numbers."""
    cosines, sines = _constants(a, matrix)
    real, imag = rows
    out = a.emit(product(real, cosines)), a.emit(product(real, sines))
    if imag is None:
        return out
    turned = a.emit(product(imag, sines)), a.emit(product(imag, cosines))
    return a.emit(op.subtract(out[0], turned[0])), a.emit(op.add(out[1], turned[1]))


def _in_two(a: Arguments, rows: Parts, n: int, p: int, sign: int, scale: float) -> Parts:
    """Transforms of p elements that lie q apart, then of q."""
    q = n // p
    count = static_shape(rows[0].struct_info)[0]

    def each(parts: Parts, move: Callable[[RelayExpr], RelayExpr]) -> Parts:
        real, imag = parts
        return move(real), None if imag is None else move(imag)

    def turned(extents: tuple[int, int], flat: tuple[int, int]) -> Callable[..., RelayExpr]:
        def move(value: RelayExpr) -> RelayExpr:
            apart = a.emit(op.reshape(value, (count, *extents)))
            return a.emit(op.reshape(a.emit(op.permute_dims(apart, [0, 2, 1])), flat))

        return move

    parts = each(rows, turned((p, q), (count * q, p)))
    parts = _transform(a, parts, p, sign, p, 1.0)
    factors = np.exp(sign * 2j * np.pi / n * np.outer(np.arange(q), np.arange(p))) * scale
    parts = each(parts, lambda value: a.emit(op.reshape(value, (count, q, p))))
    parts = times(a, parts, _constants(a, factors))
    parts = each(parts, turned((q, p), (count * p, q)))
    parts = _transform(a, parts, q, sign, q, 1.0)
    return each(parts, turned((p, q), (count, n)))


def _chirped(a: Arguments, rows: Parts, n: int, sign: int, scale: float) -> Parts:
    """By the convolution of the rows, times a chirp, with the chirp's conjugate."""
    wide = 1 << (2 * n - 2).bit_length()
    chirp = np.exp(sign * 1j * np.pi / n * (np.arange(n) ** 2 % (2 * n)))
    wave = np.zeros(wide, complex)
    wave[:n] = chirp.conj()
    wave[wide - n + 1 :] = chirp.conj()[:0:-1]
    parts = times(a, rows, _constants(a, chirp))
    real, imag = (
        None if p is None else a.emit(op.nn.pad(p, [(0, 0), (0, wide - n)])) for p in parts
    )
    assert real is not None
    parts = _transform(a, (real, imag), wide, -1, wide, 1.0)
    parts = times(a, parts, _constants(a, np.fft.fft(wave) / wide))
    parts = _transform(a, parts, wide, 1, n, 1.0)
    return times(a, parts, _constants(a, chirp * scale))


def _half_product(a: Arguments, rows: Parts, n: int, scale: float) -> RelayExpr:
    """The real result of the inverse transform of the first half of a spectrum."""
    half = n // 2 + 1
    # All but the first element and that of the highest frequency stand for their mirrors, too.
    weights = np.full((half, 1), 2.0)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    turns = np.outer(np.arange(half), np.arange(n)) % n
    matrix = np.exp(2j * np.pi / n * turns) * weights * scale
    # Of these elements PyTorch takes the real part alone.
    matrix[0].imag = 0
    if n % 2 == 0:
        matrix[-1].imag = 0
    cosines, sines = _constants(a, matrix)
    real, imag = rows
    out = a.emit(product(real, cosines))
    if imag is None:
        return out
    return a.emit(op.subtract(out, a.emit(product(imag, sines))))


def _mirrored(a: Arguments, rows: Parts, n: int) -> Parts:
    """The whole spectrum of real numbers, from its first half."""

    def whole(value: RelayExpr) -> RelayExpr:
        inner = a.emit(op.strided_slice(value, [1], [1], [n - n // 2]))
        return a.call("flip", inner, axis=[1])

    real, imag = rows
    full = a.emit(op.concat([real, whole(real)], 1))
    if imag is None:
        return full, None
    return full, a.emit(op.concat([imag, a.call("negative", whole(imag))], 1))
