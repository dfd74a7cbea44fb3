"""What is measured, and what came of it: the values that pass between the parts of a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tir

from .arg_info import ArgInfo

__all__ = ["MeasureCandidate", "RunnerResult"]


class MeasureCandidate:
    """A schedule to measure: `sch`, and `args_info`, what its function takes."""

    def __init__(self, sch: tir.Schedule, args_info: Sequence[ArgInfo] | None) -> None:
        self.sch = sch
        self.args_info = list(args_info or ())


class RunnerResult:
    """Seconds of each repeat in `run_secs`, or why there are none in `error_msg`.

    `at_least` is how long a call ran that was stopped, in seconds; None if it was not.
    """

    def __init__(
        self,
        run_secs: Sequence[float] | None,
        error_msg: str | None,
        at_least: float | None = None,
    ) -> None:
        self.run_secs = None if run_secs is None else [float(_number(s)) for s in run_secs]
        self.error_msg = error_msg
        self.at_least = None if at_least is None else float(at_least)


def _number(value: Any) -> Any:
    return getattr(value, "value", value)
