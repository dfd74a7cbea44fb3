"""Names for blocks, loops and sampled numbers of a schedule."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..expr import Var

__all__ = ["INLINED", "STAY", "BlockRV", "ExprRV", "LoopRV", "RV", "prefix_of"]

INLINED = "inlined"
STAY = "stay"

# A sampled number is an expression variable, so that other sizes can be computed from it.
ExprRV: TypeAlias = Var


class BlockRV:
    """A block of a schedule, whatever happens to the function around it."""

    __slots__ = ()


class LoopRV:
    """A loop of a schedule, until a primitive takes it apart.

    Two of them are no loops but places: `compute_at` leaves a block where it is for `STAY`, and
    inlines it for `INLINED`.
    """

    __slots__ = ("place",)

    def __init__(self, place: str | None = None) -> None:
        self.place = place


RV: TypeAlias = BlockRV | LoopRV | Var


def prefix_of(rv: Any) -> str:
    """The letter its name in a trace starts with."""
    if isinstance(rv, BlockRV):
        return "b"
    return "l" if isinstance(rv, LoopRV) else "v"
