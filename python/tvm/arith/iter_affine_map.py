"""Index expressions as digits of iterators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import tvm._ffi
from tvm.ir import PrimExpr, Range
from tvm.runtime import Object

from . import _ffi_api

__all__ = [
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "detect_iter_map",
    "normalize_iter_map_to_expr",
]


class IterMapLevel(IntEnum):
    """How strict `detect_iter_map` is: digits may overlap, may not, or must all be used once."""

    NoCheck = 0
    Surjective = 1
    Bijective = 3


@tvm._ffi.register_object("arith.IterMark")
class IterMark(Object):
    """What is cut into digits: a loop or a fused sum, with values in ``[0, extent)``."""


@tvm._ffi.register_object("arith.IterSplitExpr")
class IterSplitExpr(PrimExpr):
    """``(source // lower_factor) % extent * scale``."""


@tvm._ffi.register_object("arith.IterSumExpr")
class IterSumExpr(PrimExpr):
    """A sum of splits (`args`) and a `base` without iterators."""


@tvm._ffi.register_object("arith.IterMapResult")
class IterMapResult(Object):
    """`indices`, one IterSumExpr each, or the `errors` that say why there are none."""


def detect_iter_map(
    indices: Sequence[Any],
    input_iters: Mapping[Any, Range],
    check_level: IterMapLevel | int = IterMapLevel.Surjective,
) -> IterMapResult:
    """Write index expressions by digits of loops.

    Parameters
    ----------
    indices : integer expressions of the loops.
    input_iters : ranges of the loop variables, with constant extents.
    check_level : what must hold of the digits.

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
    return _ffi_api.DetectIterMap(indices, input_iters, int(check_level))


def normalize_iter_map_to_expr(expr: PrimExpr) -> PrimExpr:
    """The plain expression that a sum of splits stands for."""
    return _ffi_api.NormalizeIterMapToExpr(expr)
