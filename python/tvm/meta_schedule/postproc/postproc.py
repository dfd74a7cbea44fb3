"""Finishing touches on a candidate that a search proposes."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from tvm import tir

from ..utils import Named

__all__ = ["PyPostproc", "Postproc"]


class Postproc(Named):
    """Base of postprocessors, which define `apply`."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        """Take what it must know of a task."""

    def apply(self, sch: tir.Schedule) -> bool:
        """Finish a schedule; returns whether it may be measured."""
        raise TypeError(f"{type(self).__name__} does not define apply")

    def clone(self) -> Postproc:
        """A copy for another task."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> list[Postproc]:
        """The postprocessors for a kind of target: "llvm".

        Raises
        ------
        ValueError : there are none for it.
        """
        if kind not in _DEFAULTS:
            raise ValueError(
                f"Postproc.create: none for {kind!r}, there are for {sorted(_DEFAULTS)}; "
                "give postprocs=[...] instead"
            )
        return _DEFAULTS[kind]()


_DEFAULTS: dict[str, Callable[[], list[Postproc]]] = {}


def register_default_postprocs(kind: str, make: Callable[[], list[Postproc]]) -> None:
    """Enter the postprocessors for a kind of target."""
    _DEFAULTS[kind] = make


class PyPostproc(Postproc):
    """Base of postprocessors that users define."""
