"""What patterns say of each other, and who is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Constraint", "add_constraint", "open_contexts"]


@dataclass(frozen=True)
class Constraint:
    """One pattern's value is read by another.

    Attributes
    ----------
    only : whether nothing else reads it.
    index : as which operand; -1 for any.
    """

    producer: Any
    consumer: Any
    only: bool
    index: int


open_contexts: list[list[Any]] = []
"""Constraints of the pattern contexts that are open, the innermost last."""


def add_constraint(constraint: Any) -> None:
    """Tell the innermost open context, if there is one."""
    if open_contexts:
        open_contexts[-1].append(constraint)
