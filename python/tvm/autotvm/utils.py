"""Small things that tuners share."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing.pool
import random
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from tvm.topi.utils import get_const_int, get_const_tuple

from .env import GLOBAL_SCOPE
from .measure_node import MeasureResult

__all__ = [
    "EmptyContext",
    "format_si_prefix",
    "get_const_int",
    "get_const_tuple",
    "get_func_name",
    "get_rank",
    "logger",
    "pool_map",
    "sample_ints",
    "throughput",
]

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


def get_rank(values: Sequence[float]) -> np.ndarray:
    """The place of each value when they are ordered, 1 for the largest."""
    order = np.argsort(-np.asarray(values), kind="stable")
    ranks = np.empty(len(order), "int64")
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def sample_ints(low: int, high: int, m: int) -> list[int]:
    """`m` different integers of low, ..., high - 1, drawn with Python's generator.

    Raises
    ------
    ValueError : there are not so many.
    """
    if m > high - low:
        raise ValueError(f"autotvm: there are no {m} different integers in [{low}, {high})")
    return random.sample(range(low, high), m)


def get_func_name(func: Any) -> str:
    """The name of a function, or of the class of an object that is called."""
    return str(getattr(func, "func_name", None) or getattr(func, "__qualname__", None)
               or type(func).__name__)  # fmt: skip


def pool_map(
    func: Callable[[Any], Any],
    args: Sequence[Any],
    batch_size: int,
    verbose: bool = False,
    pool: multiprocessing.pool.Pool | None = None,
) -> np.ndarray | None:
    """The results of a function for many arguments, computed in processes a batch at a time.

    Parameters
    ----------
    verbose : whether progress is logged.
    pool : the processes; by default new ones, for this call.

    Returns
    -------
    The results as rows of an array, None for no arguments.
    """
    found: list[Any] = []
    with contextlib.nullcontext(pool) if pool is not None else multiprocessing.Pool() as workers:
        for begin in range(0, len(args), batch_size):
            found += workers.map(func, args[begin : begin + batch_size])
            if verbose:
                logger.info("mapping %d/%d", len(found), len(args))
    return np.array(found) if found else None
