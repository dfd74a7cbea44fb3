"""Places intermediate tensors in one block of memory; those alive together do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ALIGNMENT", "Lifetime", "plan_memory"]

# What the runtime's own allocations are aligned to, and kernels may rely on.
ALIGNMENT = 64


@dataclass(frozen=True)
class Lifetime:
    """One tensor: its size, the instruction that writes it and the last one that reads it."""

    nbytes: int
    first: int
    last: int

    def overlaps(self, other: Lifetime) -> bool:
        """Whether some instruction needs both; a kernel's inputs and outputs never share memory."""
        return self.first <= other.last and other.first <= self.last


def plan_memory(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Offset in bytes of each tensor, and the size of the block.

    The largest tensors are placed first, each at the lowest offset where no tensor it overlaps in
    time is in the way. The result is not always the smallest possible, but a large tensor never has
    to make way for small ones, which is what wastes most.
    """
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    total = 0
    for i in sorted(range(len(lifetimes)), key=lambda i: (-lifetimes[i].nbytes, i)):
        size = _align(lifetimes[i].nbytes)
        taken = sorted(
            (offsets[j], offsets[j] + _align(lifetimes[j].nbytes))
            for j in placed
            if lifetimes[j].overlaps(lifetimes[i])
        )
        offset = 0
        for start, end in taken:
            if start - offset >= size:
                break
            offset = max(offset, end)
        offsets[i] = offset
        placed.append(i)
        total = max(total, offset + size)
    return offsets, total


def _align(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
