"""Elements of vectors in another order, in registers: squares transposed, pairs taken apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tvm import tir

__all__ = ["joined_pairs", "parts_of_pairs", "reversed_lanes", "transposed_square"]

# Bits within which processors of x86 interleave two vectors by one instruction.
_SEGMENT = 128

# Binds a value to a variable.
Name = Callable[[Any], Any]


def _shuffled(one: Any, other: Any, lanes: Iterable[int]) -> Any:
    return tir.Shuffle([one, other], [tir.const(lane, "int32") for lane in lanes])


def reversed_lanes(vector: Any, name: Name) -> Any:
    """The elements of a vector from the last to the first."""
    lanes = vector.dtype.lanes
    return vector if lanes == 1 else name(_shuffled(vector, vector, range(lanes)[::-1]))


def parts_of_pairs(first: Any, second: Any, name: Name) -> tuple[Any, Any]:
    """Vectors of the first and of the second elements of the pairs that two vectors hold."""
    lanes = first.dtype.lanes
    if lanes == 1:
        return first, second
    even, odd = (_shuffled(first, second, range(k, 2 * lanes, 2)) for k in (0, 1))
    return name(even), name(odd)


def joined_pairs(one: Any, other: Any, name: Name) -> tuple[Any, Any]:
    """The inverse of :func:`parts_of_pairs`."""
    lanes = one.dtype.lanes
    if lanes == 1:
        return one, other
    places = [lane for k in range(lanes) for lane in (k, k + lanes)]
    low, high = (_shuffled(one, other, places[k : k + lanes]) for k in (0, lanes))
    return name(low), name(high)


def transposed_square(rows: Sequence[Any], name: Name) -> list[Any]:
    """The columns of a square whose rows are vectors, as many as these have lanes: at most 16.

    Neighbours in segments of vectors are interleaved, then segments are moved. Each step is one
    instruction of x86 processors.
    """
    lanes = len(rows)
    if lanes == 1:
        return list(rows)
    segment = min(lanes, _SEGMENT // rows[0].dtype.bits)
    digits = segment.bit_length() - 1
    rows, distance = list(rows), 1
    while distance < segment:
        rows = _interleaved(rows, distance, segment, name)
        distance *= 2
    columns: list[Any] = [None] * lanes
    for k in range(segment):
        # Steps of 1, 2, ... leave columns in the order of their reversed binary digits.
        column = sum(1 << (digits - 1 - place) for place in range(digits) if k >> place & 1)
        parts = _segments_turned(rows[k::segment], segment, name)
        columns[column::segment] = parts
    return columns


def _interleaved(rows: list[Any], distance: int, segment: int, name: Name) -> list[Any]:
    """Of rows a distance apart, as many elements of either in turn: lower halves, upper halves."""
    lanes, half = len(rows), segment // 2

    def places(start: int) -> list[int]:
        return [
            side + at + step
            for base in range(start, lanes, segment)
            for at in range(base, base + half, distance)
            for side in (0, lanes)
            for step in range(distance)
        ]

    result = list(rows)
    for k in (k for k in range(lanes) if not k & distance):
        one, other = rows[k], rows[k + distance]
        result[k] = name(_shuffled(one, other, places(0)))
        result[k + distance] = name(_shuffled(one, other, places(half)))
    return result


def _segments_turned(rows: list[Any], segment: int, name: Name) -> list[Any]:
    """One, two or four vectors of as many segments, transposed."""
    count = len(rows)
    if count == 1:
        return rows

    def picked(both: Sequence[Any], segments: Sequence[int]) -> Any:
        lanes = [s * segment + k for s in segments for k in range(segment)]
        return name(_shuffled(both[0], both[1], lanes))

    if count == 2:
        return [picked(rows, (k, k + 2)) for k in (0, 1)]
    low, high = (
        [picked(rows[k : k + 2], (s, s + 1, s + 4, s + 5)) for k in (0, 2)] for s in (0, 2)
    )
    return [picked(both, (s, s + 2, s + 4, s + 6)) for both in (low, high) for s in (0, 1)]
