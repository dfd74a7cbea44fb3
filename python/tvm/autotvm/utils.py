"""Small things that tuners share."""

from __future__ import annotations

import logging
import time
from types import TracebackType

from .env import GLOBAL_SCOPE
from .measure_node import MeasureResult

__all__ = ["EmptyContext", "format_si_prefix", "logger", "throughput"]

logger = logging.getLogger("autotvm")

_PREFIXES = {
    "Y": 24,
    "Z": 21,
    "E": 18,
    "P": 15,
    "T": 12,
    "G": 9,
    "M": 6,
    "k": 3,
    "": 0,
    "m": -3,
    "u": -6,
    "n": -9,
}


class EmptyContext:
    """A scope that does nothing."""

    def __enter__(self) -> EmptyContext:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None


class TuningScope:
    """Says that a tuner is at work, also if it ends with an error."""

    def __enter__(self) -> float:
        self._before = GLOBAL_SCOPE.in_tuning
        GLOBAL_SCOPE.in_tuning = True
        return time.time()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        GLOBAL_SCOPE.in_tuning = self._before


def format_si_prefix(value: float, prefix: str) -> float:
    """A number in units of an SI prefix, such as 2e9 in "G": 2.0.

    Raises
    ------
    ValueError : there is no such prefix.
    """
    if prefix not in _PREFIXES:
        raise ValueError(f"autotvm: no SI prefix is called {prefix!r}; there are {list(_PREFIXES)}")
    return value * 10.0 ** -_PREFIXES[prefix]


def throughput(flop: float, result: MeasureResult) -> float:
    """Floating point operations a second of a measurement, 0 of a failed one."""
    if int(result.error_no) != 0 or not result.costs:
        return 0.0
    mean = sum(float(cost) for cost in result.costs) / len(result.costs)
    return flop / mean if mean > 0 else 0.0
