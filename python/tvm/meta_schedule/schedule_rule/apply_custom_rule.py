"""The rule that asks functions of the user."""

from __future__ import annotations

from typing import Any

import tvm
from tvm.tir.schedule import BlockRV, Schedule

from .schedule_rule import ScheduleRule

__all__ = ["ApplyCustomRule"]


class ApplyCustomRule(ScheduleRule):
    """Schedules blocks that say how: their annotation ``schedule_rule`` is a function's name.

    The function is registered as ``meta_schedule.<target key>.<name>``, or under the name itself.
    """

    is_custom = True

    def __init__(self) -> None:
        self._keys: list[str] = []

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._keys = [] if context.target is None else [str(key) for key in context.target.keys]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        name = sch.get(block).annotations.get("schedule_rule")
        if name is None:
            return [sch]
        name = str(getattr(name, "value", name))
        if name == "None":
            return [sch]
        names = [f"meta_schedule.{key}.{name}" for key in self._keys] + [str(name)]
        for candidate in names:
            function = tvm.get_global_func(candidate, allow_missing=True)
            if function is not None:
                result = function(sch, block)
                return list(result) if not isinstance(result, Schedule) else [result]
        raise ValueError(
            f"ApplyCustomRule: the block asks for {name!r}, and no function is registered as "
            f"{names}"
        )
