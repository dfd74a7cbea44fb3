"""Sums of a few elements with constant factors, for loops that a schedule unrolls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from tvm import tir

__all__ = ["combination"]


def combination(
    which: tir.PrimExpr, matrix: Sequence[Sequence[Fraction]], read: Callable[[int], tir.PrimExpr]
) -> tir.PrimExpr:
    """Column `which` of `matrix` times what `read` gives; the loop of `which` is to be unrolled."""
    sums = []
    for column in range(len(matrix[0])):
        factors = [(row[column], k) for k, row in enumerate(matrix) if row[column] != 0]
        # Positive terms first, so that none has to be negated.
        factors.sort(key=lambda term: term[0] < 0)
        total: Any = None
        for factor, k in factors:
            value = read(k)
            size = abs(factor)
            term = value if size == 1 else value * tir.const(float(size), value.dtype)
            if total is None:
                total = term if factor > 0 else -term
            else:
                total = total + term if factor > 0 else total - term
        sums.append(total)
    result = sums[-1]
    for column in reversed(range(len(sums) - 1)):
        result = tir.Select(which.equal(column), sums[column], result)
    return result
