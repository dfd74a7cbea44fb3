"""Shapes and paddings in the forms the operators need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["as_int", "as_pair", "as_padding", "const_shape", "normalize_axes", "normalize_axis"]


def as_int(value: Any) -> int:
    """A Python int from an int or an ``IntImm``.

    Raises
    ------
    ValueError : the value is a symbolic expression.
    """
    if isinstance(value, int):
        return value
    literal = getattr(value, "value", None)
    if not isinstance(literal, int):
        raise ValueError(f"topi: expected a constant size, got {value}; use a fixed shape")
    return literal


def const_shape(shape: Iterable[Any]) -> tuple[int, ...]:
    """The shape as Python ints."""
    return tuple(as_int(extent) for extent in shape)


def as_pair(value: int | Sequence[int]) -> tuple[int, int]:
    """``3`` is (3, 3), ``(1, 2)`` is itself."""
    if isinstance(value, int):
        return value, value
    pair = tuple(as_int(x) for x in value)
    if len(pair) == 1:
        return pair[0], pair[0]
    if len(pair) != 2:
        raise ValueError(f"topi: expected one or two numbers (height, width), got {pair}")
    return pair[0], pair[1]


def as_padding(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) from one number, (height, width) or all four.

    Raises
    ------
    ValueError : another count of numbers, or a negative one.
    """
    sizes = (padding,) if isinstance(padding, int) else tuple(as_int(x) for x in padding)
    if len(sizes) in (1, 2):
        sizes = (sizes[0], sizes[-1], sizes[0], sizes[-1])
    if len(sizes) != 4 or min(sizes) < 0:
        raise ValueError(
            "topi: padding is one size, (height, width) or (top, left, bottom, right), none "
            f"negative; got {padding}"
        )
    return sizes[0], sizes[1], sizes[2], sizes[3]


def normalize_axis(axis: int, ndim: int) -> int:
    """Axis counted from the front.

    Raises
    ------
    IndexError : the axis is out of [-ndim, ndim).
    """
    if not -ndim <= axis < ndim:
        raise IndexError(f"topi: axis {axis} is out of range for {ndim} dimensions")
    return axis % ndim


def normalize_axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, sorted, without repetition; None means all."""
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(sorted({normalize_axis(as_int(a), ndim) for a in axes}))
