"""How the places that a block reads follow from the places that it writes."""

from __future__ import annotations

from typing import Any, NamedTuple

from tvm import tir

__all__ = ["AccessPattern", "access_pattern", "is_elementwise_copy"]


class AccessPattern(NamedTuple):
    """What is known of a read region.

    Attributes
    ----------
    injective : no written index is used for two read ones. ordered : read indices are in the order
        of the written ones. Both are False where an index is neither a constant nor a written one,
        moved by a constant at most.
    """

    injective: bool
    ordered: bool


def access_pattern(read: tir.BufferRegion, write: tir.BufferRegion) -> AccessPattern:
    """Compare the indices that a block reads with those that it writes."""
    unknown = AccessPattern(False, False)
    place: dict[tir.Var, int] = {}
    for number, part in enumerate(write.region):
        if not isinstance(part.min, tir.Var) or not isinstance(part.extent, tir.IntImm):
            return unknown
        place[part.min] = number
    used = []
    for part in read.region:
        if not isinstance(part.extent, tir.IntImm):
            return unknown
        if isinstance(part.min, tir.IntImm):
            continue
        var = _without_shift(part.min)
        if var not in place:
            return unknown
        used.append(place[var])
    return AccessPattern(len(set(used)) == len(used), used == sorted(used))


def _without_shift(index: Any) -> Any:
    if isinstance(index, tir.Add | tir.Sub) and isinstance(index.b, tir.IntImm):
        return index.a
    if isinstance(index, tir.Add) and isinstance(index.a, tir.IntImm):
        return index.b
    return index


def is_elementwise_copy(node: tir.Block) -> bool:
    """Whether a block may stand beside a tile of what it reads: each element is read in place."""
    return len(node.writes) == 1 and all(
        all(access_pattern(region, node.writes[0])) for region in node.reads
    )
