"""What is measured, and what came of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tvm.auto_scheduler.measure_node import MAX_FLOAT, MeasureErrorNo

__all__ = ["MAX_FLOAT", "MeasureErrorNo", "MeasureInput", "MeasureResult"]


class MeasureInput(NamedTuple):
    """One measurement to make.

    Attributes
    ----------
    target : what the program is compiled for.
    task : `Task` whose template makes it.
    config : `ConfigEntity`, the point of the template's space.
    """

    target: Any
    task: Any
    config: Any


class MeasureResult(NamedTuple):
    """Times of one program.

    Attributes
    ----------
    costs : seconds of a run, one value a repeat; what went wrong where `error_no` is not 0.
    error_no : a `MeasureErrorNo`.
    all_cost : seconds for build and run together.
    timestamp : seconds since the epoch.
    """

    costs: tuple[Any, ...]
    error_no: int
    all_cost: float
    timestamp: float
