"""What a rule is."""

from __future__ import annotations

from tvm import tir
from tvm.target import Target
from tvm.tir.schedule import Schedule

__all__ = ["ScheduleRule"]


class ScheduleRule:
    """Knows schedules for some programs."""

    def apply(
        self, func: tir.PrimFunc, target: Target, tunable: bool
    ) -> Schedule | list[Schedule] | None:
        """A schedule of `func`, or several where `tunable`; None where the rule knows none.

        Parameters
        ----------
        tunable : whether the caller measures and chooses.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it schedules")
