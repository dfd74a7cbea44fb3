"""Discrete Fourier transforms: fast ones of rows and columns, and what is made of them.

Rows and columns of usual lengths have fast transforms of the library (`topi.fft_rows`,
`topi.fft_columns`). A transform of few elements is one product with a matrix of roots of unity. A
larger one, of n = p q elements, is q transforms of p, factors in between, and p of q (Cooley and
Tukey); one whose prime factors are too large for that is a convolution with a chirp (Bluestein),
which is made of transforms whose length is a power of two.

Data are three-dimensional here: what is before the axis, the axis, what is behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tvm import topi
from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import TupleGetItem, const
from tvm.relax.struct_info import open_shape

from ..arguments import Arguments, Complex, complex_converter
from .complex_numbers import Parts, parts_of, times
from .linear import product

__all__: list[str] = []

# The longest transform that may be one product.
_DIRECT = 640
# As many elements lie behind the axis of fast columns at least.
_VECTOR = 16


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
    parts = _around(a, parts, last)
    split = _rows_split(a, parts, extent)
    if split:
        rows = _rows(a, parts)
        imag = rows[1] if rows[1] is not None else a.call("zeros_like", rows[0])
        real = a.emit(op.fourier.irfft_rows(rows[0], imag, *_tables(a, split, 1, scale)))
    elif _is_one_product(extent):
        real, _ = _products(a, parts, _half_matrix(extent) * scale, only_real=True)
    else:
        real, _ = _transform(a, _mirrored(a, parts, extent), extent, 1, extent, scale)
    return a.emit(op.reshape(real, a.result_shape))


def _scale(a: Arguments, shape: tuple[int, ...]) -> float:
    """The factor of a transform over the dimensions named, as PyTorch's modes say."""
    count = math.prod(shape[axis] for axis in a.axes("dim") or [])
    return [1.0, 1 / math.sqrt(count), 1 / count][int(a["normalization"])]


def _complex(a: Arguments, parts: Parts) -> Complex:
    real, imag = parts
    return Complex(real, a.call("zeros_like", real) if imag is None else imag)


def _each(parts: Parts, move: Callable[[RelayExpr], RelayExpr]) -> Parts:
    real, imag = parts
    return move(real), None if imag is None else move(imag)


def _over(a: Arguments, parts: Parts, axes: list[int], sign: int) -> Parts:
    for axis in axes:
        extent = open_shape(parts[0].struct_info)[axis]
        parts = _along(a, parts, axis, sign, extent, 1.0)
    return parts


def _along(a: Arguments, parts: Parts, axis: int, sign: int, count: int, scale: float) -> Parts:
    """The first `count` elements of the transform along an axis; sign -1 is the forward one."""
    shape = list(open_shape(parts[0].struct_info))
    out = _transform(a, _around(a, parts, axis), shape[axis], sign, count, scale)
    shape[axis] = count
    return _each(out, lambda value: a.emit(op.reshape(value, shape)))


def _around(a: Arguments, parts: Parts, axis: int) -> Parts:
    """With the dimensions before and behind an axis as one each."""
    shape = open_shape(parts[0].struct_info)
    flat = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    return _each(parts, lambda value: a.emit(op.reshape(value, flat)))


def _is_one_product(n: int) -> bool:
    # Short products that fill no vectors take longer than a long one that does.
    return n <= _DIRECT and (n < 512 or n // _near_root(n) % 16 != 0)


def _transform(a: Arguments, parts: Parts, n: int, sign: int, count: int, scale: float) -> Parts:
    """The first `count` elements of the transform along the middle axis, of n elements."""
    split = _rows_split(a, parts, n)
    if split:
        return _fast_rows(a, parts, split, sign, count, scale)
    if _are_fast_columns(a, parts, n):
        return _fast_columns(a, parts, sign, count, scale)
    if _is_one_product(n):
        # The angle in whole turns and a rest: k t grows beyond what a float's sine is exact for.
        turns = np.outer(np.arange(count), np.arange(n)) % n
        return _products(a, parts, np.exp(sign * 2j * np.pi / n * turns) * scale)
    if _largest_prime(n) > _DIRECT:
        parts = _chirped(a, parts, n, sign, scale)
    else:
        parts = _in_two(a, parts, n, _near_root(n), sign, scale)
    if count == n:
        return parts
    return _each(parts, lambda value: a.emit(op.strided_slice(value, [1], [0], [count])))


def _is_fast(a: Arguments) -> bool:
    """Whether numbers are of a type that fast transforms compute in."""
    return str(a.result_dtype) in ("float32", "float64")


def _rows_split(a: Arguments, parts: Parts, n: int) -> tuple[int, int] | None:
    """The steps of the library's transform of rows, None where there is none."""
    is_row = open_shape(parts[0].struct_info)[2] == 1
    return topi.fft_split(n) if is_row and _is_fast(a) else None


def _are_fast_columns(a: Arguments, parts: Parts, n: int) -> bool:
    behind = open_shape(parts[0].struct_info)[2]
    return behind >= _VECTOR and topi.is_straight(n) and _is_fast(a)


def _rows(a: Arguments, parts: Parts) -> Parts:
    lead, n, _ = open_shape(parts[0].struct_info)
    return _each(parts, lambda value: a.emit(op.reshape(value, (lead, n))))


def _tables(
    a: Arguments, split: tuple[int, int], sign: int, scale: float
) -> tuple[RelayExpr, RelayExpr]:
    matrix, factors = topi.fft_tables(*split, sign, scale)
    return const(matrix, a.result_dtype), const(factors, a.result_dtype)


def _fast_rows(
    a: Arguments, parts: Parts, split: tuple[int, int], sign: int, count: int, scale: float
) -> Parts:
    real, imag = _rows(a, parts)
    tables = _tables(a, split, sign, scale)
    if imag is None and sign < 0:
        both = a.emit(op.fourier.rfft_rows(real, *tables, count))
    else:
        imag = a.call("zeros_like", real) if imag is None else imag
        both = a.emit(op.fourier.fft_rows(real, imag, *tables, count, sign))
    shape = (open_shape(real.struct_info)[0], count, 1)
    return _each(_both(a, both), lambda value: a.emit(op.reshape(value, shape)))


def _fast_columns(a: Arguments, parts: Parts, sign: int, count: int, scale: float) -> Parts:
    real, imag = parts
    imag = a.call("zeros_like", real) if imag is None else imag
    return _both(a, a.emit(op.fourier.fft_columns(real, imag, count, sign, scale)))


def _both(a: Arguments, pair: RelayExpr) -> Parts:
    return a.emit(TupleGetItem(pair, 0)), a.emit(TupleGetItem(pair, 1))


def _largest_prime(n: int) -> int:
    divisor = 2
    while divisor * divisor <= n:
        if n % divisor:
            divisor += 1
        else:
            n //= divisor
    return n


def _near_root(n: int) -> int:
    """The divisor of a number that is nearest to its root, from below."""
    return max(d for d in range(1, math.isqrt(n) + 1) if n % d == 0)


def _products(
    a: Arguments, parts: Parts, matrix: np.ndarray, only_real: bool = False, turn: bool = False
) -> Parts:
    """A matrix of complex numbers times the middle axis; the result's last two axes may turn."""
    dtype = a.result_dtype
    lead, n, behind = open_shape(parts[0].struct_info)

    def times_matrix(values: np.ndarray, data: RelayExpr) -> RelayExpr:
        if turn:
            # (behind, n) @ (n, count) would put the count last, where a view needs it first.
            data = a.emit(op.permute_dims(data, [0, 2, 1]))
        elif behind == 1:
            rows = a.emit(op.reshape(data, (lead, n)))
            out = a.emit(product(rows, const(values.T, dtype)))
            return a.emit(op.reshape(out, (lead, len(values), 1)))
        return a.emit(op.matmul(const(values, dtype), data))

    real, imag = parts
    cosines, sines = np.ascontiguousarray(matrix.real), np.ascontiguousarray(matrix.imag)
    out = times_matrix(cosines, real)
    if imag is not None:
        out = a.emit(op.subtract(out, times_matrix(sines, imag)))
    if only_real:
        return out, None
    other = times_matrix(sines, real)
    if imag is not None:
        other = a.emit(op.add(other, times_matrix(cosines, imag)))
    return out, other


def _matrix(n: int, sign: int) -> np.ndarray:
    return np.exp(sign * 2j * np.pi / n * (np.outer(np.arange(n), np.arange(n)) % n))


def _in_two(a: Arguments, parts: Parts, n: int, p: int, sign: int, scale: float) -> Parts:
    """Transforms of p elements that lie q apart, then of q."""
    q = n // p
    lead, _, behind = open_shape(parts[0].struct_info)

    def shaped(value: Parts, *shape: int) -> Parts:
        return _each(value, lambda part: a.emit(op.reshape(part, shape)))

    parts = _transform(a, shaped(parts, lead, p, q * behind), p, sign, p, 1.0)
    factors = np.exp(sign * 2j * np.pi / n * np.outer(np.arange(p), np.arange(q))) * scale
    factors = factors[:, :, None]
    constants = const(factors.real, a.result_dtype), const(factors.imag, a.result_dtype)
    parts = times(a, shaped(parts, lead, p, q, behind), constants)
    # Element j of the second transforms, of the i-th, is element i + p j of the whole.
    if behind == 1 and _is_one_product(q) and not topi.fft_split(q):
        turned = _products(a, shaped(parts, lead, p, q), _matrix(q, sign), turn=True)
        return shaped(turned, lead, n, 1)
    parts = _transform(a, shaped(parts, lead * p, q, behind), q, sign, q, 1.0)
    parts = shaped(parts, lead, p, q, behind)
    parts = _each(parts, lambda value: a.emit(op.permute_dims(value, [0, 2, 1, 3])))
    return shaped(parts, lead, n, behind)


def _chirped(a: Arguments, parts: Parts, n: int, sign: int, scale: float) -> Parts:
    """By the convolution of the elements, times a chirp, with the chirp's conjugate."""
    wide = 1 << (2 * n - 2).bit_length()
    chirp = np.exp(sign * 1j * np.pi / n * (np.arange(n) ** 2 % (2 * n)))
    wave = np.zeros(wide, complex)
    wave[:n] = chirp.conj()
    wave[wide - n + 1 :] = chirp.conj()[:0:-1]

    def times_each(value: Parts, factors: np.ndarray) -> Parts:
        column = factors[:, None]
        return times(
            a, value, (const(column.real, a.result_dtype), const(column.imag, a.result_dtype))
        )

    parts = times_each(parts, chirp)
    border = [(0, 0), (0, wide - n), (0, 0)]
    parts = _each(parts, lambda value: a.emit(op.nn.pad(value, border)))
    parts = _transform(a, parts, wide, -1, wide, 1.0)
    parts = times_each(parts, np.fft.fft(wave) / wide)
    parts = _transform(a, parts, wide, 1, n, 1.0)
    return times_each(parts, chirp * scale)


def _half_matrix(n: int) -> np.ndarray:
    """The inverse transform from the first half of a spectrum, of which the real part is taken."""
    half = n // 2 + 1
    # All but the first element and that of the highest frequency stand for their mirrors, too.
    weights = np.full(half, 2.0)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    turns = np.outer(np.arange(n), np.arange(half)) % n
    matrix = np.exp(2j * np.pi / n * turns) * weights
    # Of these elements PyTorch takes the real part alone.
    alone = [0, half - 1] if n % 2 == 0 else [0]
    matrix[:, alone] = matrix[:, alone].real
    return matrix


def _mirrored(a: Arguments, parts: Parts, n: int) -> Parts:
    """The whole spectrum of real numbers, from its first half."""

    def mirror(value: RelayExpr) -> RelayExpr:
        inner = a.emit(op.strided_slice(value, [1], [1], [n - n // 2]))
        return a.call("flip", inner, axis=[1])

    real, imag = parts
    full = a.emit(op.concat([real, mirror(real)], 1))
    if imag is None:
        return full, None
    return full, a.emit(op.concat([imag, a.call("negative", mirror(imag))], 1))
