"""Index expressions as digits of iterators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import tvm._ffi
from tvm.ir import PrimExpr, Range
from tvm.runtime import Object, convert

from . import _ffi_api
from .analyzer import Analyzer
from .pattern import detect_clip_bound

__all__ = [
    "IterMapExpr",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "detect_iter_map",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "normalize_iter_map_to_expr",
]


class IterMapLevel(IntEnum):
    """How strict `detect_iter_map` is: digits may overlap, may not, or must all be used once."""

    NoCheck = 0
    Surjective = 1
    Bijective = 3

    @staticmethod
    def from_str(name: str) -> IterMapLevel:
        """The level of a name, in any case: "bijective", "surjective" or "nocheck".

        Raises
        ------
        ValueError : there is no such level.
        """
        levels = {level.name.lower(): level for level in IterMapLevel}
        found = levels.get(name.lower().replace("_", ""))
        if found is None:
            raise ValueError(f'IterMapLevel: "{name}" is none of {", ".join(levels)}')
        return found


def _constant(value: Any, what: str) -> int:
    if not isinstance(value, int | tvm.tir.IntImm):
        raise TypeError(f"{what} must be a constant, got {value}")
    return int(value)


def _positive(value: Any, what: str) -> int:
    number = _constant(value, what)
    if number < 1:
        raise ValueError(f"{what} must be positive, got {number}")
    return number


class IterMapExpr(PrimExpr):
    """Base of what index expressions are written with: splits of iterators, and their sums."""


@tvm._ffi.register_object("arith.IterMark")
class IterMark(Object):
    """What is cut into digits: a loop or a fused sum, with values in ``[0, extent)``.

    Parameters
    ----------
    source : variable of a loop that begins at 0, or an IterSumExpr.
    extent : constant.
    """

    def __init__(self, source: PrimExpr, extent: int | PrimExpr) -> None:
        extent = _positive(extent, "IterMark: extent")
        self.__init_handle_by_constructor__(_ffi_api.IterMark, source, extent)


@tvm._ffi.register_object("arith.IterSplitExpr")
class IterSplitExpr(IterMapExpr):
    """``(source // lower_factor) % extent * scale``, with constant numbers."""

    def __init__(
        self,
        source: IterMark,
        lower_factor: int | PrimExpr,
        extent: int | PrimExpr,
        scale: int | PrimExpr,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.IterSplitExpr,
            source,
            _positive(lower_factor, "IterSplitExpr: lower_factor"),
            _positive(extent, "IterSplitExpr: extent"),
            _constant(scale, "IterSplitExpr: scale"),
            source.source.dtype,
        )


@tvm._ffi.register_object("arith.IterSumExpr")
class IterSumExpr(IterMapExpr):
    """A sum of splits (`args`) and a `base` without iterators."""

    def __init__(self, args: Sequence[IterSplitExpr], base: int | PrimExpr) -> None:
        if isinstance(base, int):
            base = tvm.tir.const(base, args[0].dtype if len(args) else "int32")
        self.__init_handle_by_constructor__(_ffi_api.IterSumExpr, list(args), base)


@tvm._ffi.register_object("arith.IterMapResult")
class IterMapResult(Object):
    """`indices`, one IterSumExpr each, or the `errors` that say why there are none."""

    @property
    def padding_predicate(self) -> PrimExpr:
        """Where indices are padding: nowhere, since partial tiles are an error."""
        return tvm.tir.const(False, "bool")


def detect_iter_map(
    indices: Sequence[Any],
    input_iters: Mapping[Any, Range],
    predicate: Any = True,
    check_level: IterMapLevel | int | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """Write index expressions by digits of loops.

    Parameters
    ----------
    indices : integer expressions of the loops.
    input_iters : ranges of the loop variables, with constant extents.
    predicate : which iterations run: constant bounds of single loops, which shorten them, and
        constant limits of sums such as ``i * 8 + j < 60``, which shorten the iterator that the sum
        is and that indices then have to take as a whole.
    check_level : what must hold of the digits, as a level or by its name.
    simplify_trivial_iterators : whether a loop of one trip is its first value instead of a digit.

    Returns
    -------
    A result with one sum of at most one split for each index, or with errors. Divisors must divide
    the extents they cut; a partial tile is an error.

    Raises
    ------
    ValueError : the extent of a loop is no positive constant, or a range depends on another loop.

    >>> i, j = tvm.tir.Var("i", "int32"), tvm.tir.Var("j", "int32")
    >>> ranges = {i: tvm.ir.Range(0, 8), j: tvm.ir.Range(0, 16)}
    >>> tvm.arith.detect_iter_map([i * 4 + j // 4, j % 4], ranges).errors
    []
    """
    level = IterMapLevel.from_str(check_level) if isinstance(check_level, str) else check_level
    trivial = not simplify_trivial_iterators
    if predicate is True:
        return _ffi_api.DetectIterMap(indices, input_iters, int(level), trivial, [], [])
    predicate = Analyzer().simplify(convert(predicate))
    sums, limits, rest = _limited_sums(predicate, list(input_iters.keys()))
    ranges = _shortened(input_iters, rest)
    if isinstance(ranges, str):
        return _ffi_api.IterMapResult([], [ranges])
    return _ffi_api.DetectIterMap(indices, ranges, int(level), trivial, sums, limits)


def _limited_sums(predicate: Any, loops: list[Any]) -> tuple[list[Any], list[int], Any]:
    """Sums of loops that a conjunction limits, their limits, and the other conditions."""
    if isinstance(predicate, tvm.tir.And):
        left, right = (_limited_sums(part, loops) for part in (predicate.a, predicate.b))
        rest = [part for part in (left[2], right[2]) if part is not True]
        joined = tvm.tir.all(*rest) if rest else True
        return left[0] + right[0], left[1] + right[1], joined
    if isinstance(predicate, tvm.tir.LT | tvm.tir.LE):
        total, limit = predicate.a, predicate.b
    elif isinstance(predicate, tvm.tir.GT | tvm.tir.GE):
        total, limit = predicate.b, predicate.a
    else:
        return [], [], predicate
    if not isinstance(limit, tvm.tir.IntImm) or len(detect_clip_bound(predicate, loops)):
        return [], [], predicate
    strict = isinstance(predicate, tvm.tir.LT | tvm.tir.GT)
    return [total], [int(limit) + (not strict)], True


def _shortened(iters: Mapping[Any, Range], predicate: Any) -> dict[Any, Range] | str:
    """Ranges of the iterations that run, or why they are none."""
    ranges = dict(iters.items())
    if predicate is True:
        return ranges
    if isinstance(predicate, tvm.tir.IntImm):
        return ranges if int(predicate) else f"no iteration runs: {predicate}"
    bounds = detect_clip_bound(predicate, list(ranges))
    numbers = [bound for bound in bounds if bound is not None]
    if not numbers or not all(isinstance(bound, tvm.tir.IntImm) for bound in numbers):
        return f"the predicate is more than constant bounds of iterators and sums: {predicate}"
    for var, low, high in zip(ranges, bounds[::2], bounds[1::2], strict=True):
        own = ranges[var]
        if low is None and high is None:
            continue
        if not isinstance(own.min, tvm.tir.IntImm) or not isinstance(own.extent, tvm.tir.IntImm):
            return f"the range of {var} must be constant where the predicate bounds it"
        first, last = int(own.min), int(own.min) + int(own.extent) - 1
        first = first if low is None else max(first, int(low))
        last = last if high is None else min(last, int(high))
        if last < first:
            return f"no iteration runs: {predicate}"
        ranges[var] = Range.from_min_extent(
            tvm.tir.const(first, var.dtype), tvm.tir.const(last - first + 1, var.dtype)
        )
    return ranges


def iter_map_simplify(
    indices: Sequence[Any],
    input_iters: Mapping[Any, Range],
    predicate: Any = True,
    check_level: IterMapLevel | int | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[PrimExpr]:
    """Indices by digits of loops where they are of that form, and simplified otherwise.

    The arguments are those of `detect_iter_map`.
    """
    found = detect_iter_map(
        indices, input_iters, predicate, check_level, simplify_trivial_iterators
    )
    analyzer = Analyzer()
    for var, bound in input_iters.items():
        analyzer.bind(var, bound)
    if len(found.errors):
        return [analyzer.simplify(index) for index in indices]
    return [analyzer.simplify(normalize_iter_map_to_expr(index)) for index in found.indices]


def inverse_affine_iter_map(
    iter_map: Sequence[IterSumExpr], outputs: Sequence[Any]
) -> Mapping[Any, PrimExpr]:
    """Values of the loops where the indices of a map have the values `outputs`.

    Parameters
    ----------
    iter_map : what `detect_iter_map` found at level ``Bijective``.

    Returns
    -------
    From the loops that have digits to expressions of `outputs`.

    Raises
    ------
    ValueError : the numbers of indices and outputs differ.
    """
    return _ffi_api.InverseAffineIterMap(list(iter_map), list(outputs))


def normalize_iter_map_to_expr(expr: PrimExpr) -> PrimExpr:
    """The plain expression that a sum of splits stands for."""
    return _ffi_api.NormalizeIterMapToExpr(expr)
