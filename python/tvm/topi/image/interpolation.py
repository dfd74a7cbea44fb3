"""Which elements a fractional position reads, and with which weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product as _combinations
from typing import Any

from tvm import tir

from ..utils import Extent

__all__ = ["clamp", "cubic_taps", "interpolate", "linear_taps"]

Taps = list[tuple[Any, Any]]  # (index, weight)


def clamp(index: Any, extent: Extent) -> Any:
    """The index, or the nearest one inside of the extent."""
    return tir.max(tir.min(index, tir.convert(extent - 1)), 0)


def linear_taps(position: Any) -> Taps:
    """The two neighbours of a position, nearer ones weighing more."""
    below = tir.floor(position)
    part = position - below
    index = below.astype("int32")
    return [(index, tir.const(1.0, part.dtype) - part), (index + 1, part)]


def _cubic_weights(part: Any, alpha: float) -> list[Any]:
    """Weights of the four neighbours, after Keys, "Cubic convolution interpolation", 1981."""

    def number(value: float) -> Any:
        return tir.const(value, part.dtype)

    def near(d: Any) -> Any:
        return (number(alpha + 2) * d - number(alpha + 3)) * d * d + number(1.0)

    def far(d: Any) -> Any:
        return ((number(alpha) * d - number(5 * alpha)) * d + number(8 * alpha)) * d - number(
            4 * alpha
        )

    rest = number(1.0) - part
    return [far(part + number(1.0)), near(part), near(rest), far(rest + number(1.0))]


def cubic_taps(position: Any, alpha: float, extent: Extent | None = None) -> Taps:
    """The four neighbours of a position.

    Parameters
    ----------
    alpha : slope parameter of the cubic, -0.5 or -0.75 as a rule.
    extent : neighbours outside of it weigh nothing, and the others make up for them; None for
        weights that do not look.
    """
    below = tir.floor(position)
    weights = _cubic_weights(position - below, alpha)
    indices = [below.astype("int32") + k for k in (-1, 0, 1, 2)]
    if extent is None:
        return list(zip(indices, weights))
    zero = tir.const(0.0, position.dtype)
    inside = [
        tir.Select(tir.all(i >= 0, i < extent), weight, zero) for i, weight in zip(indices, weights)
    ]
    total = inside[0] + inside[1] + inside[2] + inside[3]
    return [(i, weight / total) for i, weight in zip(indices, inside)]


def interpolate(taps: Sequence[Taps], read: Callable[[Sequence[Any]], Any], dtype: str) -> Any:
    """Weighted sum of the elements at every combination of the dimensions' taps.

    Parameters
    ----------
    taps : for each dimension.
    read : the element at an index along these dimensions.
    dtype : to sum in.
    """
    total: Any = None
    for combination in _combinations(*taps):
        weight = math.prod((w for _, w in combination[1:]), start=combination[0][1])
        value = read([index for index, _ in combination]).astype(dtype) * weight.astype(dtype)
        total = value if total is None else total + value
    return total
