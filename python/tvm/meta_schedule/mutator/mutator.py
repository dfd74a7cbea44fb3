"""Changes to the decisions of a trace."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from tvm import tir

from ..utils import Named

__all__ = ["Mutator", "PyMutator"]


class Mutator(Named):
    """Base of mutators, which define `apply`."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        """Take what it must know of a task."""

    def apply(self, trace: tir.schedule.Trace, rand_state: int = -1) -> tir.schedule.Trace | None:
        """The trace with another decision; None if it has none to change."""
        raise TypeError(f"{type(self).__name__} does not define apply")

    def clone(self) -> Mutator:
        """A copy for another task."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> dict[Mutator, float]:
        """The mutators for a kind of target, with their chances.

        Raises
        ------
        ValueError : there are none for it.
        """
        if kind not in _DEFAULTS:
            raise ValueError(
                f"Mutator.create: no mutators for {kind!r}, there are for {sorted(_DEFAULTS)}; "
                "give mutator_probs={...} instead"
            )
        return _DEFAULTS[kind]()


_DEFAULTS: dict[str, Callable[[], dict[Mutator, float]]] = {}


def register_default_mutators(kind: str, make: Callable[[], dict[Mutator, float]]) -> None:
    """Enter the mutators for a kind of target."""
    _DEFAULTS[kind] = make


class PyMutator(Mutator):
    """Base of mutators that users define."""
