"""What rules for processors have in common."""

from __future__ import annotations

from abc import abstractmethod

from tvm import tir
from tvm.target import Target
from tvm.tir.schedule import Schedule

from ..base import BlockInfo, ScheduleRule, normalize_prim_func, try_inline

__all__ = ["CPUScheduleRule"]


class CPUScheduleRule(ScheduleRule):
    """A rule for targets with the key ``cpu``; what it cannot schedule is left to the next rule."""

    def apply(self, func: tir.PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        """A schedule of `func`; None where the rule does not fit."""
        if not self.is_target_available(target):
            return None
        sch = Schedule(func)
        blocks = normalize_prim_func(sch)
        if not blocks:
            return None
        try:
            fits = self._schedule(sch, try_inline(sch, blocks))
        except tir.ScheduleError:
            return None
        return sch if fits else None

    def is_target_available(self, target: Target) -> bool:
        """Whether the rule knows schedules for a target."""
        return "cpu" in target.keys

    @abstractmethod
    def _schedule(self, sch: Schedule, blocks: list[BlockInfo]) -> bool:
        """Schedule the blocks that are left after inlining; False where the rule does not fit."""
