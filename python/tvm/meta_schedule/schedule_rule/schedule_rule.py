"""Rules that turn one schedule into several, block by block."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from tvm import tir

from ..utils import Named

__all__ = ["PyScheduleRule", "ScheduleRule"]


class ScheduleRule(Named):
    """Base of rules, which define `apply`."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        """Take what the rule must know of a task."""

    def apply(self, sch: tir.Schedule, block: tir.schedule.BlockRV) -> list[tir.Schedule]:
        """The schedules that come of one by treating a block; itself if the rule does not fit.

        Parameters
        ----------
        sch : may be changed; copies are made where several come of it.
        """
        raise TypeError(f"{type(self).__name__} does not define apply")

    def clone(self) -> ScheduleRule:
        """A copy for another task."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """The rules for a kind of target: "llvm".

        Raises
        ------
        ValueError : there are none for it.
        """
        if kind not in _DEFAULTS:
            raise ValueError(
                f"ScheduleRule.create: no rules for {kind!r}, there are for {sorted(_DEFAULTS)}; "
                "give space_generator=ScheduleFn(...) instead"
            )
        return _DEFAULTS[kind]()


_DEFAULTS: dict[str, Callable[[], list[ScheduleRule]]] = {}


def register_default_rules(kind: str, make: Callable[[], list[ScheduleRule]]) -> None:
    """Enter the rules for a kind of target."""
    _DEFAULTS[kind] = make


class PyScheduleRule(ScheduleRule):
    """Base of rules that users define."""
