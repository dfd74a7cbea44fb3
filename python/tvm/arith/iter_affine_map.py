"""Index expressions as digits of iterators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import tvm._ffi
from tvm.ir import PrimExpr, Range
from tvm.runtime import Object, convert

from . import _ffi_api

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
    "normalize_to_iter_sum",
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


def _size(value: Any, like: PrimExpr, what: str, least: int | None = 1) -> PrimExpr:
    """A size with the type of `like`; numbers are at least `least`."""
    if isinstance(value, int | tvm.tir.IntImm):
        if least is not None and int(value) < least:
            raise ValueError(f"{what} must be positive, got {int(value)}")
        return tvm.tir.const(int(value), like.dtype)
    if not isinstance(value, PrimExpr):
        raise TypeError(f"{what} must be an integer or an expression, got {type(value).__name__}")
    return value


class IterMapExpr(PrimExpr):
    """Base of what index expressions are written with: splits of iterators, and their sums."""


@tvm._ffi.register_object("arith.IterMark")
class IterMark(Object):
    """What is cut into digits: a loop or a fused sum, with values in ``[0, extent)``.

    Parameters
    ----------
    source : variable of a loop that begins at 0, or an IterSumExpr.
    extent : number, or an expression without iterators.
    """

    def __init__(self, source: PrimExpr, extent: int | PrimExpr) -> None:
        extent = _size(extent, source, "IterMark: extent")
        self.__init_handle_by_constructor__(_ffi_api.IterMark, source, extent)


@tvm._ffi.register_object("arith.IterSplitExpr")
class IterSplitExpr(IterMapExpr):
    """``(source // lower_factor) % extent * scale``, with numbers that no iterator changes."""

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
            _size(lower_factor, source.source, "IterSplitExpr: lower_factor"),
            _size(extent, source.source, "IterSplitExpr: extent"),
            _size(scale, source.source, "IterSplitExpr: scale", least=None),
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
    """`indices`, one IterSumExpr each, or the `errors` that say why there are none.

    `padding_predicate` is an expression of the iterators that says where one of them, lengthened to
    whole tiles, is outside of its own range. It holds for none of the iterations that run, but for
    points of the image without an origin when the inverse stands for the iterators.
    """


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
    input_iters : ranges of the loop variables. Extents may be expressions, of which is assumed that
        the loops run.
    predicate : which iterations run: a conjunction of bounds of single loops, which shorten them,
        and of sums such as ``i * 8 + j < 60``, which shorten the iterator that the sum is and that
        indices then have to take as a whole.
    check_level : what must hold of the digits, as a level or by its name.
    simplify_trivial_iterators : whether a loop of one trip is its first value instead of a digit.

    Returns
    -------
    A result with one sum of at most one split for each index, or with errors. A divisor that leaves
    a partial tile lengthens the iterator to whole tiles, as `padding_predicate` says; for a
    bijective map it is an error.

    Raises
    ------
    ValueError : the extent of a loop is not positive, or a range depends on another loop.

    >>> i, j = tvm.tir.Var("i", "int32"), tvm.tir.Var("j", "int32")
    >>> ranges = {i: tvm.ir.Range(0, 8), j: tvm.ir.Range(0, 16)}
    >>> tvm.arith.detect_iter_map([i * 4 + j // 4, j % 4], ranges).errors
    []
    >>> print(tvm.arith.detect_iter_map([i // 3, i % 3], ranges).padding_predicate)
    i//3 == 2 and 2 <= i%3
    """
    level = IterMapLevel.from_str(check_level) if isinstance(check_level, str) else check_level
    predicate = convert(predicate)
    return _ffi_api.DetectIterMap(
        indices, input_iters, predicate, int(level), simplify_trivial_iterators
    )


def normalize_to_iter_sum(index: PrimExpr, input_iters: Mapping[Any, Range]) -> IterSumExpr:
    """An index as a sum of digits of loops that are not fused, the largest scale first.

    A part that is not affine counts as a digit of its own.

    Raises
    ------
    ValueError : such a part has no bounds.

    >>> i, j = tvm.tir.Var("i", "int32"), tvm.tir.Var("j", "int32")
    >>> ranges = {i: tvm.ir.Range(0, 8), j: tvm.ir.Range(0, 16)}
    >>> found = tvm.arith.normalize_to_iter_sum(j + i * 20 + 3 + i * 4, ranges)
    >>> [int(split.scale) for split in found.args], int(found.base)
    ([24, 1], 3)
    """
    return _ffi_api.NormalizeToIterSum(index, input_iters)


def iter_map_simplify(
    indices: Sequence[Any],
    input_iters: Mapping[Any, Range],
    predicate: Any = True,
    check_level: IterMapLevel | int | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[PrimExpr]:
    """Indices by digits of loops where they are of that form, and as they are otherwise.

    Loops that an index divides as a whole stay together: ``(i*16 + j)//32`` is no ``i//2``. The
    arguments are those of `detect_iter_map`; where it fails because of the predicate, what holds
    without it is taken, unless the level is ``Bijective``.
    """
    level = IterMapLevel.from_str(check_level) if isinstance(check_level, str) else check_level
    found = _ffi_api.IterMapSimplify(
        indices, input_iters, convert(predicate), int(level), simplify_trivial_iterators
    )
    return list(found) or [convert(index) for index in indices]


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
