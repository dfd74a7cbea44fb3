"""Changes to the decisions of a trace."""

from __future__ import annotations

import functools
import inspect
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
    """Base of mutators that users define.

    `apply` may take a random state behind the trace, as TVM's does; it is -1 where none is given.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        defined = cls.__dict__.get("apply")
        if defined is None:
            return
        needed = [
            parameter
            for parameter in inspect.signature(defined).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        if len(needed) == 3:

            @functools.wraps(defined)
            def apply(self: Any, trace: tir.schedule.Trace, rand_state: int = -1) -> Any:
                return defined(self, trace, rand_state)

            cls.apply = apply  # type: ignore[method-assign]
