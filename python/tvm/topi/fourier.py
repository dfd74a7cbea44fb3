"""Fast Fourier transforms: of rows by products and in registers, of short columns in registers.

A transform of n = p q elements is q transforms of p elements, factors, and p transforms of q
(Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965). The
first ones are products with a small matrix whose columns are the lanes of vectors: elements of the
row are broadcast, wherever they lie, so the transposition between the two steps costs nothing. The
second ones are straight programs over the vectors that come out, one for each element. Of complex
numbers the first ones are straight programs too, over vectors of transforms, whose results are
transposed in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tvm import te, tir
from tvm.target import Target

from .signal import circle_tables
from .straight_fourier import LARGEST_PRIME, LONGEST, StraightFourier, is_straight
from .utils import as_int, const_shape
from .vector_shuffles import joined_pairs, parts_of_pairs, reversed_lanes, transposed_square

__all__ = [
    "fft_columns",
    "fft_pairs",
    "fft_rows",
    "fft_split",
    "fft_tables",
    "irfft_rows",
    "is_straight",
    "rfft_halves",
    "rfft_pairs",
    "rfft_rows",
    "rfft_turns",
]

# Matrices and factors have columns for whole vectors of every processor.
_COLUMNS = 16
# Registers for sums of the first step, of 32 or 16 that a processor has; the others hold the
# columns of the matrix and what is broadcast.
_SUMS = 16
# The longest first step.
_FIRST = 64


def _padded(p: int) -> int:
    return -(-p // _COLUMNS) * _COLUMNS


def fft_split(n: int) -> tuple[int, int] | None:
    """The lengths (p, q) of the two steps of a transform of n = p q elements, see `rfft_rows`.

    The steps are estimated by their operations on vectors. None for lengths that no two steps fit:
    below 32, above 8192, and of prime factors that are too large.
    """

    def cost(p: int) -> float:
        q = n // p
        return _padded(p) * (p * q + 2 * q * math.log2(q) + 2 * q)

    fitting = [
        p for p in range(4, _FIRST + 1) if n % p == 0 and n // p >= 4 and is_straight(n // p)
    ]
    if n < 2 * _COLUMNS or not fitting:
        return None
    best = min(fitting, key=cost)
    return best, n // best


def fft_tables(p: int, q: int, sign: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """What the first step multiplies with, and the factors behind it, as float64.

    Parameters
    ----------
    p, q : of :func:`fft_split`.
    sign : of the exponents: -1 for the transform, 1 for its inverse.
    scale : a factor of the whole transform.

    Returns
    -------
    matrix : (2, p, columns), real and imaginary parts of exp(sign 2 pi i j k / p), with zeros
        behind the p-th column up to a multiple of 16.
    factors : (2, q, columns), of scale exp(sign 2 pi i j k / (p q)).
    """

    def roots(count: int, n: int, factor: float) -> np.ndarray:
        # In whole turns and a rest: products grow beyond what a float's sine is exact for.
        turns = np.outer(np.arange(count), np.arange(p)) % n
        values = np.zeros((2, count, _padded(p)))
        angles = sign * 2 * np.pi / n * turns
        values[0, :, :p], values[1, :, :p] = np.cos(angles) * factor, np.sin(angles) * factor
        return values

    return roots(p, p, 1.0), roots(q, p * q, scale)


@dataclass(frozen=True)
class _Steps:
    """What a kernel needs to know of its transform."""

    rows: int
    p: int
    q: int
    columns: int
    sign: int
    dtype: str

    @property
    def n(self) -> int:
        return self.p * self.q


def _steps(
    data: te.Tensor,
    matrix: te.Tensor,
    factors: te.Tensor,
    sign: int,
    half: bool = False,
    parts: int = 1,
) -> _Steps:
    rows, given = const_shape(data.shape)
    _, p, columns = const_shape(matrix.shape)
    _, q, _ = const_shape(factors.shape)
    if sign not in (-1, 1):
        raise ValueError(f"topi.fft_rows: sign is -1 or 1, got {sign}")
    wanted = p * q // 2 + 1 if half else p * q * parts
    if given != wanted:
        raise ValueError(
            f"topi.fft_rows: tables of {p} x {q} are for rows of {wanted} elements, got "
            f"{[rows, given]}"
        )
    _check_type(data)
    return _Steps(rows, p, q, columns, sign, data.dtype)


def _check_type(data: te.Tensor) -> None:
    if data.dtype not in ("float32", "float64"):
        raise ValueError(f"topi.fft: data are float32 or float64, got {data.dtype}")


def _check_count(steps: _Steps, count: int) -> None:
    if not 0 < count <= steps.n:
        raise ValueError(f"topi.fft_rows: count is at most {steps.n} elements, got {count}")


def rfft_rows(
    data: te.Tensor, matrix: te.Tensor, factors: te.Tensor, count: int
) -> list[te.Tensor]:
    """The first elements of the transforms of rows of real numbers.

    Parameters
    ----------
    data : (rows, n), float32 or float64.
    matrix, factors : of ``fft_tables(p, q, -1)`` with n = p q.
    count : how many elements of each transform, at most n.

    Returns
    -------
    Real and imaginary parts, (rows, count) each.
    """
    return _forward([data], matrix, factors, as_int(count), -1)


def fft_rows(
    real: te.Tensor, imag: te.Tensor, matrix: te.Tensor, factors: te.Tensor, count: int, sign: int
) -> list[te.Tensor]:
    """The first elements of the transforms of rows of complex numbers, see :func:`rfft_rows`.

    Parameters
    ----------
    real, imag : (rows, n).
    sign : that of the tables.

    Raises
    ------
    ValueError : data of another length or type, another sign, or more elements than there are.
    """
    return _forward([real, imag], matrix, factors, as_int(count), as_int(sign))


def _forward(
    data: list[te.Tensor], matrix: te.Tensor, factors: te.Tensor, count: int, sign: int
) -> list[te.Tensor]:
    steps = _steps(data[0], matrix, factors, sign)
    _check_count(steps, count)
    shape = (steps.rows, count)
    if not _is_for_processors():
        return _sums(steps, data, matrix, factors, count)

    def body(ins: Any, outs: Any) -> tir.Stmt:
        kernel = _Kernel(steps, ins[-2], ins[-1])
        ib = kernel.ib
        with ib.for_range(0, steps.rows, "row", kind="parallel") as row:
            source, out = (_Row(ib, buffers, row) for buffers in (ins[:-2], outs))
            if len(data) == 2:
                kernel.complex_transform(source, out, count)
            else:
                kernel.first_step(lambda k, i: source.element(k * steps.q + i))
                used = -(-count // steps.p)
                kernel.copy(kernel.second_step(steps.q, used, is_complex=True), out, count)
        return ib.get()

    return list(_extern([shape, shape], [*data, matrix, factors], body, "T_fft", steps.dtype))


def fft_pairs(
    data: te.Tensor, matrix: te.Tensor, factors: te.Tensor, count: int, sign: int
) -> te.Tensor:
    """As :func:`fft_rows`, of complex numbers that are pairs of neighbours.

    Parameters
    ----------
    data : (rows, 2 n), real and imaginary parts in turn.

    Returns
    -------
    (rows, 2 count).
    """
    count, sign = as_int(count), as_int(sign)
    steps = _steps(data, matrix, factors, sign, parts=2)
    _check_count(steps, count)
    if not _is_for_processors():
        real, imag = _taken_apart(data)
        return _as_pairs(*_sums(steps, [real, imag], matrix, factors, count))

    def body(ins: Any, outs: Any) -> tir.Stmt:
        kernel = _Kernel(steps, ins[-2], ins[-1])
        ib = kernel.ib
        with ib.for_range(0, steps.rows, "row", kind="parallel") as row:
            source, out = (_Row(ib, buffers, row, pairs=True) for buffers in (ins[:1], outs))
            kernel.complex_transform(source, out, count)
        return ib.get()

    shape = (steps.rows, 2 * count)
    return _extern([shape], [data, matrix, factors], body, "T_fft_pairs", steps.dtype)


def rfft_turns(n: int) -> np.ndarray:
    """exp(-2 pi i k / n) for k up to n / 2: (2, n // 2 + 1), float64, for :func:`rfft_halves`."""
    angles = -2 * np.pi / n * np.arange(n // 2 + 1)
    return np.stack([np.cos(angles), np.sin(angles)])


def rfft_halves(
    data: te.Tensor, matrix: te.Tensor, factors: te.Tensor, turns: te.Tensor
) -> list[te.Tensor]:
    """The first halves of the transforms of rows of real numbers, by transforms of half as many.

    Neighbours count as real and imaginary parts; of their transform, its elements and their mirrors
    make those of the even and of the odd numbers.

    Parameters
    ----------
    data : (rows, n), n even.
    matrix, factors : of ``fft_tables(p, q, -1, scale / 2)`` with n / 2 = p q.
    turns : :func:`rfft_turns` of n.

    Returns
    -------
    Real and imaginary parts, (rows, n / 2 + 1) each.

    Raises
    ------
    ValueError : the tables are for another length, or data of another type.
    """
    return _halves(data, matrix, factors, turns, pairs=False)


def rfft_pairs(
    data: te.Tensor, matrix: te.Tensor, factors: te.Tensor, turns: te.Tensor
) -> te.Tensor:
    """As :func:`rfft_halves`, with real and imaginary parts in turn: (rows, n + 2)."""
    (found,) = _halves(data, matrix, factors, turns, pairs=True)
    return found


def _halves(
    data: te.Tensor, matrix: te.Tensor, factors: te.Tensor, turns: te.Tensor, pairs: bool
) -> list[te.Tensor]:
    steps = _steps(data, matrix, factors, -1, parts=2)
    half = steps.n
    if const_shape(turns.shape) != (2, half + 1):
        raise ValueError(
            f"topi.rfft_halves: rows of {2 * half} elements need turns of shape {[2, half + 1]}, "
            f"got {list(const_shape(turns.shape))}"
        )
    if not _is_for_processors():
        found = _unmixed(_sums(steps, list(_taken_apart(data)), matrix, factors, half), turns)
        return [_as_pairs(*found)] if pairs else found

    def body(ins: Any, outs: Any) -> tir.Stmt:
        kernel = _Kernel(steps, *ins[1:3])
        ib = kernel.ib
        with ib.for_range(0, steps.rows, "row", kind="parallel") as row:
            source = _Row(ib, ins[:1], row, pairs=True)
            # The element behind the last one is the first again.
            mixed = [ib.allocate(steps.dtype, (half + 1,), f"mixed_{k}") for k in ("re", "im")]
            kernel.complex_transform(source, _Row(ib, mixed), half)
            for part in mixed:
                part[half] = part[0]
            kernel.unmix(mixed, ib.buffer_ptr(ins[3]), _Row(ib, outs, row, pairs))
        return ib.get()

    shapes = [(steps.rows, 2 * half + 2)] if pairs else [(steps.rows, half + 1)] * 2
    found = _extern(shapes, [data, matrix, factors, turns], body, "T_rfft_halves", steps.dtype)
    return [found] if pairs else list(found)


def irfft_rows(
    real: te.Tensor, imag: te.Tensor, matrix: te.Tensor, factors: te.Tensor
) -> te.Tensor:
    """Rows of real numbers from the first halves of their transforms.

    Parameters
    ----------
    real, imag : (rows, n // 2 + 1); imaginary parts of the first element, and of the last one if n
        is even, count as zero.
    matrix, factors : of ``fft_tables(p, q, 1)`` with n = p q.

    Returns
    -------
    (rows, n).
    """
    steps = _steps(real, matrix, factors, 1, half=True)
    n, q = steps.n, steps.q
    given = n // 2 + 1
    if not _is_for_processors():
        return _sums(steps, _whole(steps, real, imag), matrix, factors, n)[0]

    def body(ins: Any, outs: Any) -> tir.Stmt:
        kernel = _Kernel(steps, ins[-2], ins[-1])
        ib = kernel.ib
        with ib.for_range(0, steps.rows, "row", kind="parallel") as row:
            whole = [
                kernel.mirrored(ib.buffer_ptr(buffer), row, given, is_odd=part == 1)
                for part, buffer in enumerate(ins[:2])
            ]
            zero = tir.const(0, steps.dtype)
            whole[1][0] = zero
            if n % 2 == 0:
                whole[1][n // 2] = zero
            columns = q // 2 + 1
            kernel.first_step(lambda k, i: [part[k * q + i] for part in whole], columns)
            result = kernel.second_step(columns, q, is_complex=False)
            kernel.copy(result, _Row(ib, outs, row), n)
        return ib.get()

    shape = (steps.rows, n)
    return _extern([shape], [real, imag, matrix, factors], body, "T_irfft", steps.dtype)


def fft_columns(
    real: te.Tensor, imag: te.Tensor, count: int, sign: int, scale: float = 1.0
) -> list[te.Tensor]:
    """The first elements of transforms of complex numbers along the middle of three axes.

    Parameters
    ----------
    real, imag : (outer, n, inner), float32 or float64, with n of `is_straight`, and at least 16
        inner elements, as many as vectors have.
    count : how many elements of each transform, at most n.
    sign : of the exponents: -1 for the transform, 1 for its inverse.
    scale : what results are multiplied with.

    Returns
    -------
    Real and imaginary parts, (outer, count, inner) each.

    Raises
    ------
    ValueError : there is no straight program for n, or there are too few inner elements.
    """
    outer, n, inner = const_shape(real.shape)
    count, dtype = as_int(count), real.dtype
    if not is_straight(n) or inner < _COLUMNS:
        raise ValueError(
            f"topi.fft_columns: n is at most {LONGEST} and has prime factors up to "
            f"{LARGEST_PRIME}, with at least {_COLUMNS} inner elements, got {[outer, n, inner]}"
        )
    _check_type(real)
    factor = float(scale)
    if not _is_for_processors():
        return _column_sums(real, imag, count, as_int(sign), factor)

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        lanes = _lanes(dtype)
        sources, results = ([ib.buffer_ptr(buffer) for buffer in side] for side in (ins, outs))
        vectors = -(-inner // lanes)
        with ib.for_range(0, outer * vectors, "each", kind="parallel") as each:
            lead = tir.indexdiv(each, vectors)
            # The last vector ends with the row, over elements of the one before.
            start = tir.min(tir.indexmod(each, vectors) * lanes, inner - lanes)
            across = start if lanes == 1 else tir.Ramp(start, 1, lanes)
            program = StraightFourier(ib, dtype, lanes)

            def load(k: int) -> Any:
                return tuple(program.named(source[lead, k, across]) for source in sources)

            def store(k: int, parts: Any) -> None:
                if k < count:
                    for result, part in zip(results, parts):
                        result[lead, k, across] = program.scaled(part, factor)

            program.transform_into(store, [partial(load, k) for k in range(n)], as_int(sign))
        return ib.get()

    shape = (outer, count, inner)
    return list(_extern([shape, shape], [real, imag], body, "T_fft_columns", dtype))


def _extern(
    shapes: Sequence[tuple[int, ...]],
    inputs: list[te.Tensor],
    body: Callable[[Any, Any], tir.Stmt],
    name: str,
    dtype: str,
) -> Any:
    return te.extern(shapes, inputs, body, name=name, dtype=[dtype] * len(shapes), tag="fft")


def _is_for_processors() -> bool:
    target = Target.current(allow_none=True)
    return target is None or "cpu" in target.keys


def _sums(
    steps: _Steps, data: list[te.Tensor], matrix: te.Tensor, factors: te.Tensor, count: int
) -> list[te.Tensor]:
    """Both steps as sums, for devices, whose threads have one element each."""
    rows, p, q = steps.rows, steps.p, steps.q

    def first(part: int) -> te.Tensor:
        k = te.reduce_axis((0, p), "k")

        def total(row: Any, i: Any, at: Any) -> Any:
            value = data[0](row, k * q + i) * matrix[part, k, at]
            if len(data) == 2:
                other = data[1](row, k * q + i) * matrix[1 - part, k, at]
                value = value + other if part else value - other
            return te.sum(value, axis=k)

        return te.compute((rows, q, p), total, name=f"T_fft_first_{part}")

    re, im = first(0), first(1)

    def between(part: int) -> te.Tensor:
        def value(row: Any, i: Any, at: Any) -> Any:
            cosine, sine = factors[0, i, at], factors[1, i, at]
            if part:
                return re(row, i, at) * sine + im(row, i, at) * cosine
            return re(row, i, at) * cosine - im(row, i, at) * sine

        return te.compute((rows, q, p), value, name=f"T_fft_between_{part}")

    parts = between(0), between(1)
    tables = circle_tables(q, steps.dtype)

    def second(part: int) -> te.Tensor:
        i = te.reduce_axis((0, q), "i")

        def total(row: Any, at: Any) -> Any:
            turn = (i * (at // p)) % q
            cosine, sine = tables[0](turn), tables[1](turn) * tir.const(steps.sign, steps.dtype)
            values = [each(row, i, at % p) for each in parts]
            if part:
                return te.sum(values[0] * sine + values[1] * cosine, axis=i)
            return te.sum(values[0] * cosine - values[1] * sine, axis=i)

        return te.compute((rows, count), total, name=f"T_fft_second_{part}")

    return [second(0), second(1)]


def _column_sums(
    real: te.Tensor, imag: te.Tensor, count: int, sign: int, scale: float
) -> list[te.Tensor]:
    outer, n, inner = const_shape(real.shape)
    dtype = real.dtype
    tables = circle_tables(n, dtype)

    def part(which: int) -> te.Tensor:
        k = te.reduce_axis((0, n), "k")

        def total(lead: Any, at: Any, across: Any) -> Any:
            turn = (k * at) % n
            cosine = tables[0](turn) * tir.const(scale, dtype)
            sine = tables[1](turn) * tir.const(sign * scale, dtype)
            re, im = real(lead, k, across), imag(lead, k, across)
            return te.sum(re * sine + im * cosine if which else re * cosine - im * sine, axis=k)

        return te.compute((outer, count, inner), total, name=f"T_fft_columns_{which}")

    return [part(0), part(1)]


def _whole(steps: _Steps, real: te.Tensor, imag: te.Tensor) -> list[te.Tensor]:
    """The spectrum of real numbers, from its first half."""
    n, given = steps.n, steps.n // 2 + 1
    zero = tir.const(0, steps.dtype)

    def re(row: Any, k: Any) -> Any:
        return tir.if_then_else(k < given, real(row, k), real(row, n - k))

    def im(row: Any, k: Any) -> Any:
        value = tir.if_then_else(k < given, imag(row, k), -imag(row, n - k))
        return tir.if_then_else(tir.any(k == 0, k * 2 == n), zero, value)

    return [te.compute((steps.rows, n), part, name=f"T_whole_{part.__name__}") for part in (re, im)]


def _taken_apart(pairs: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    rows, length = const_shape(pairs.shape)

    def part(k: int) -> te.Tensor:
        return te.compute((rows, length // 2), lambda i, j: pairs(i, j * 2 + k), name="T_part")

    return part(0), part(1)


def _as_pairs(real: te.Tensor, imag: te.Tensor) -> te.Tensor:
    rows, length = const_shape(real.shape)
    return te.compute(
        (rows, length * 2),
        lambda i, j: tir.if_then_else(j % 2 == 0, real(i, j // 2), imag(i, j // 2)),
        name="T_pairs",
    )


def _unmixed(mixed: list[te.Tensor], turns: te.Tensor) -> list[te.Tensor]:
    """`_Kernel.unmix`, element by element."""
    rows, half = const_shape(mixed[0].shape)

    def part(which: int) -> te.Tensor:
        def value(row: Any, k: Any) -> Any:
            here, there = ([m(row, at % half) for m in mixed] for at in (k, half - k))
            return _unmixed_parts(here, there, (turns(0, k), turns(1, k)))[which]

        return te.compute((rows, half + 1), value, name=f"T_unmixed_{which}")

    return [part(0), part(1)]


def _unmixed_parts(here: Sequence[Any], there: Sequence[Any], turn: Sequence[Any]) -> Any:
    """An element of the transform of real numbers, of twice that of their pairs and its mirror."""
    (re, im), (far_re, far_im), (cosine, sine) = here, there, turn
    odd_re, odd_im = im + far_im, far_re - re
    return (
        re + far_re + cosine * odd_re - sine * odd_im,
        im - far_im + cosine * odd_im + sine * odd_re,
    )


class _Row:
    """Complex numbers side by side, as two buffers of parts or one of pairs; or real ones.

    Parameters
    ----------
    row : of buffers of rows; without it they hold one.
    """

    def __init__(self, ib: Any, buffers: Sequence[Any], row: Any = None, pairs: bool = False):
        self._row = () if row is None else (row,)
        self._buffers = buffers if row is None else [ib.buffer_ptr(buffer) for buffer in buffers]
        self._pairs = pairs

    def _at(self, place: Any) -> tuple[Any, ...]:
        return (*self._row, place)

    def element(self, at: Any) -> list[Any]:
        """The parts of one number."""
        return [buffer[self._at(at)] for buffer in self._buffers]

    def load(self, start: Any, lanes: int, name: Callable[[Any], Any]) -> Any:
        """The parts of as many numbers."""
        if not self._pairs:
            return tuple(name(b[self._at(_across(start, lanes))]) for b in self._buffers)
        (buffer,) = self._buffers
        both = [buffer[self._at(_across(start * 2 + k, lanes))] for k in (0, lanes)]
        first, second = map(name, both)
        return parts_of_pairs(first, second, name)

    def store(
        self, start: Any, lanes: int, parts: Sequence[Any], name: Callable[[Any], Any]
    ) -> None:
        """Write as many numbers."""
        if not self._pairs:
            for buffer, part in zip(self._buffers, parts, strict=True):
                buffer[self._at(_across(start, lanes))] = part
            return
        (buffer,) = self._buffers
        real, imag = parts
        for k, value in enumerate(joined_pairs(real, imag, name)):
            buffer[self._at(_across(start * 2 + k * lanes, lanes))] = value


def _across(start: Any, lanes: int) -> Any:
    return start if lanes == 1 else tir.Ramp(start, 1, lanes)


class _Kernel:
    """The statements of one row's transform."""

    def __init__(self, steps: _Steps, matrix: Any, factors: Any) -> None:
        self.ib = tir.ir_builder.create()
        self._steps = steps
        self._matrix = self.ib.buffer_ptr(matrix)
        self._factors = self.ib.buffer_ptr(factors)
        self._lanes = _lanes(steps.dtype)
        self._between: list[Any] = []

    def each(self, count: int, body: Callable[[Any], None]) -> None:
        """Run `body` for the numbers below `count`, in vectors."""
        ib, lanes = self.ib, self._lanes
        whole = count - count % lanes
        if whole:
            with (
                ib.for_range(0, whole // lanes, "v") as v,
                ib.for_range(0, lanes, "lane", kind="vectorize") as lane,
            ):
                body(v * lanes + lane)
        if count % lanes:
            with ib.for_range(0, count % lanes, "rest") as rest:
                body(rest + whole)

    def mirrored(self, source: Any, row: Any, given: int, is_odd: bool) -> Any:
        """A row of n elements of which the first ones are given, the others their mirrors."""
        n = self._steps.n
        whole = self.ib.allocate(self._steps.dtype, (n,), "whole")
        self.each(given, lambda i: whole.__setitem__(i, source[row, i]))

        def mirror(i: Any) -> None:
            value = source[row, n - given - i]
            whole[given + i] = -value if is_odd else value

        self.each(n - given, mirror)
        return whole

    def vectors(self, count: int, body: Callable[[Any, int], None]) -> None:
        """Run `body` for the places below `count`: the first of each vector, and its lanes."""
        ib, lanes = self.ib, self._lanes
        whole = count - count % lanes
        if whole:
            with ib.for_range(0, whole // lanes, "v") as v:
                body(v * lanes, lanes)
        if count % lanes:
            with ib.for_range(0, count % lanes, "rest") as rest:
                body(rest + whole, 1)

    def copy(self, values: Sequence[Any], out: _Row, count: int) -> None:
        """The first elements of what the second step gave as a row of the result."""
        p, columns = self._steps.p, self._steps.columns

        def copied(source: Any, to: Any, elements: int) -> None:
            def body(start: Any, lanes: int) -> None:
                parts = [self._name(part[_across(source + start, lanes)]) for part in values]
                out.store(to + start, lanes, parts, self._name)

            self.vectors(elements, body)

        if p == columns:
            copied(0, 0, count)
            return
        whole, rest = divmod(count, p)
        # What columns there are behind the p-th go where the next elements will be.
        over = min(max(0, (count - columns) // p + 1), whole)
        with self.ib.for_range(0, over, "k") as k:
            copied(k * columns, k * p, columns)
        for last in range(over, whole):
            copied(last * columns, last * p, p)
        copied(whole * columns, whole * p, rest)

    def _name(self, value: Any) -> Any:
        """A variable for a value, so that it is computed once."""
        return self.ib.let("x", value)

    def complex_transform(self, source: _Row, out: _Row, count: int) -> None:
        """The first elements of the transform of a row."""
        steps, lanes = self._steps, self._lanes
        if is_straight(steps.p):
            self.straight_first_step(source)
        else:
            self.first_step(lambda k, i: source.load(k * steps.q + i, 1, lambda value: value))
        used = -(-count // steps.p)
        if steps.p == steps.columns and count % lanes == 0:
            self.second_step(steps.q, used, is_complex=True, out=out, count=count)
        else:
            self.copy(self.second_step(steps.q, used, is_complex=True), out, count)

    def unmix(self, mixed: Sequence[Any], turns: Any, out: _Row) -> None:
        """The transform of real numbers, of twice that of their pairs with its first element again
        behind it, see :func:`rfft_halves`."""
        ib, lanes, half = self.ib, self._lanes, self._steps.n
        count = half + 1
        with ib.for_range(0, -(-count // lanes), "v") as v:
            # The last vector ends with the row, over some of the one before.
            start = tir.min(v * lanes, count - lanes)
            name = self._name
            here = [name(part[_across(start, lanes)]) for part in mixed]
            back = half + 1 - lanes - start
            there = [reversed_lanes(name(part[_across(back, lanes)]), name) for part in mixed]
            angle = [turns[k, _across(start, lanes)] for k in (0, 1)]
            out.store(start, lanes, _unmixed_parts(here, there, angle), name)

    def first_step(
        self, element: Callable[[Any, Any], Sequence[Any]], width: int | None = None
    ) -> None:
        """Transforms of p elements each, times the factors.

        Parameters
        ----------
        element : of its number and that of its transform to the parts of an element.
        width : how many transforms, q by default.
        """
        steps, ib = self._steps, self.ib
        width = steps.q if width is None else width
        self._between = [
            ib.allocate(steps.dtype, (width * steps.columns,), f"between_{part}")
            for part in ("re", "im")
        ]
        vectors = steps.columns // self._lanes
        # Of as many transforms at once as there are registers for.
        at_once = max(1, min(width, _SUMS // (2 * min(vectors, 4))))
        even = -(-width // -(-width // at_once))
        for panel in range(0, vectors, 4):
            panels = range(panel, min(vectors, panel + 4))
            blocks, rest = divmod(width, even)
            with ib.for_range(0, blocks, "block") as block:
                self._block(element, block * even, even, panels)
            if rest:
                self._block(element, blocks * even, rest, panels)

    def straight_first_step(self, source: _Row) -> None:
        """As many transforms of p elements as vectors have lanes, transposed, times the factors."""
        steps, ib = self._steps, self.ib
        # Fewer transforms than a vector has lanes are in narrower ones.
        lanes = min(self._lanes, 1 << (steps.q.bit_length() - 1))
        self._between = [
            ib.allocate(steps.dtype, (steps.q * steps.columns,), f"between_{part}")
            for part in ("re", "im")
        ]
        program = StraightFourier(ib, steps.dtype, lanes)
        with ib.for_range(0, -(-steps.q // lanes), "block") as block:
            # The last vector ends with the transforms, over some of the one before.
            start = tir.min(block * lanes, steps.q - lanes)

            def load(k: int) -> Any:
                return source.load(k * steps.q + start, lanes, program.named)

            done = program.transform([partial(load, k) for k in range(steps.p)], steps.sign)
            done += [done[-1]] * (steps.columns - steps.p)
            for first in range(0, steps.columns, lanes):
                square = done[first : first + lanes]
                turned = [
                    transposed_square([parts[k] for parts in square], program.named) for k in (0, 1)
                ]
                for i, (re, im) in enumerate(zip(*turned)):
                    across = _across(first, lanes)
                    cosine, sine = (self._factors[part, start + i, across] for part in (0, 1))
                    place = _across((start + i) * steps.columns + first, lanes)
                    self._between[0][place] = re * cosine - im * sine
                    self._between[1][place] = re * sine + im * cosine

    def _block(
        self, element: Callable[[Any, Any], Sequence[Any]], start: Any, count: int, panels: range
    ) -> None:
        steps, ib, lanes = self._steps, self.ib, self._lanes
        width = len(panels) * lanes
        with ib.new_scope():
            sums = ib.allocate(steps.dtype, (count * 2 * width,), "sums", scope="local")

            def of(i: int, part: int, v: int, lane: Any) -> Any:
                return ((i * 2 + part) * len(panels) + v) * lanes + lane

            for i in range(count * 2 * len(panels)):
                with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                    sums[i * lanes + lane] = tir.const(0, steps.dtype)
            with ib.for_range(0, steps.p, "k") as k:
                for i in range(count):
                    parts = element(k, start + i)
                    for v, panel in enumerate(panels):
                        with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                            at = panel * lanes + lane
                            cosine, sine = self._matrix[0, k, at], self._matrix[1, k, at]
                            re, im = of(i, 0, v, lane), of(i, 1, v, lane)
                            sums[re] = sums[re] + parts[0] * cosine
                            sums[im] = sums[im] + parts[0] * sine
                            if len(parts) == 2:
                                sums[re] = sums[re] - parts[1] * sine
                                sums[im] = sums[im] + parts[1] * cosine
            for i in range(count):
                for v, panel in enumerate(panels):
                    with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                        at = panel * lanes + lane
                        cosine, sine = (self._factors[part, start + i, at] for part in (0, 1))
                        re, im = sums[of(i, 0, v, lane)], sums[of(i, 1, v, lane)]
                        place = (start + i) * steps.columns + at
                        self._between[0][place] = re * cosine - im * sine
                        self._between[1][place] = re * sine + im * cosine

    def second_step(
        self,
        given: int,
        used: int,
        is_complex: bool,
        out: _Row | None = None,
        count: int = 0,
    ) -> list[Any]:
        """Transforms of q elements each: (used, columns), flat.

        Parameters
        ----------
        given : how many elements of each there are; the others are their mirrors.
        used : how many elements of each are wanted.
        is_complex : whether imaginary parts are, too.
        out : where the first `count` results go instead, which are whole vectors.
        """
        steps, ib, lanes = self._steps, self.ib, self._lanes
        size = used * steps.columns
        results = [
            ib.allocate(steps.dtype, (size,), f"result_{part}")
            for part in (() if out else ("re", "im") if is_complex else ("re",))
        ]
        with ib.for_range(0, steps.columns // lanes, "v") as v:

            def places(k: int) -> Any:
                start = k * steps.columns + v * lanes
                return start if lanes == 1 else tir.Ramp(start, 1, lanes)

            program = StraightFourier(ib, steps.dtype, lanes)

            def load(k: int) -> Any:
                mirror = k >= given
                at = places(steps.q - k if mirror else k)
                re, im = (program.named(part[at]) for part in self._between)
                return (re, -im) if mirror else (re, im)

            def store(k: int, parts: Any) -> None:
                if out is not None:
                    start = k * steps.columns + v * lanes
                    if (k + 1) * steps.columns <= count:
                        out.store(start, lanes, parts, program.named)
                    elif k < used:
                        with ib.if_scope(start < count):
                            out.store(start, lanes, parts, program.named)
                elif k < used:
                    for result, part in zip(results, parts):
                        result[places(k)] = part

            sources = [partial(load, k) for k in range(steps.q)]
            program.transform_into(store, sources, steps.sign)
        return results


def _lanes(dtype: str) -> int:
    target = Target.current(allow_none=True) or Target("llvm")
    lanes = int(target.vector_width) // tir.const(0, dtype).dtype.bits
    return max(1, min(_COLUMNS, lanes))
