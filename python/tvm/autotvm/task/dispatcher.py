"""Configurations from records."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from tvm.target import Target

from ..measure_node import MeasureInput, MeasureResult
from .context import (
    ApplyConfig,
    ApplyFixedConfig,
    DispatchContext,
    FallbackContext,
    clear_fallback_cache,
    get_config,
)
from .records import load_from_buffer, load_from_file

__all__ = [
    "ApplyConfig",
    "ApplyFixedConfig",
    "ApplyGraphBest",
    "ApplyHistoryBest",
    "DispatchContext",
    "FallbackContext",
    "clear_fallback_cache",
    "get_config",
    "record_pairs",
]


class ApplyHistoryBest(DispatchContext):
    """The fastest recorded configuration of each workload.

    Parameters
    ----------
    records : a record file by path or opened, pairs of inputs and results, or several of either.

    Attributes
    ----------
    best_by_model, best_by_targetkey : (model or key of a target, workload) to the fastest pair.

    Raises
    ------
    FileNotFoundError : there is no such file. ValueError : a record cannot be read.
    """

    def __init__(self, records: Any) -> None:
        super().__init__()
        self.best_by_targetkey: dict[tuple[str, Any], tuple[MeasureInput, MeasureResult]] = {}
        self.best_by_model: dict[tuple[str, Any], tuple[MeasureInput, MeasureResult]] = {}
        self._best_user_defined: dict[tuple[str, Any], Any] = {}
        if records:
            self.load(records)

    def load(self, records: Any) -> None:
        """Take more records into account; see the class for what they may be."""
        for inp, result in record_pairs(records):
            self._observe(inp, result)

    def _observe(self, inp: MeasureInput, result: MeasureResult) -> None:
        if int(result.error_no) != 0:
            return
        tables: list[tuple[dict[Any, Any], str]] = [
            (self.best_by_targetkey, str(key)) for key in inp.target.keys
        ]
        if inp.target.model != "unknown":
            tables.append((self.best_by_model, str(inp.target.model)))
        for table, name in tables:
            known = table.get((name, inp.task.workload))
            if known is None or np.mean(result.costs) < np.mean(known[1].costs):
                table[(name, inp.task.workload)] = (inp, result)

    def _query_inside(self, target: Target | None, workload: Any) -> Any:
        if target is None:
            raise RuntimeError(
                "ApplyHistoryBest: there is no current target; look up inside of `with target:`"
            )
        keys = [str(target.model), *(str(key) for key in target.keys)]
        for name in keys:
            if (name, workload) in self._best_user_defined:
                return self._best_user_defined[(name, workload)]
        best = self.best_by_model.get((keys[0], workload))
        for name in keys[1:]:
            best = best or self.best_by_targetkey.get((name, workload))
        if best is None:
            return None
        inp, result = best
        # What chooses between templates for one operator goes by how fast each was.
        inp.config.cost = float(np.mean(result.costs))
        return inp.config

    def update(self, target: Target | str, workload: Any, cfg: Any) -> None:
        target = target if isinstance(target, Target) else Target(target)
        names = [str(key) for key in target.keys]
        if target.model != "unknown":
            names.append(str(target.model))
        for name in names:
            self._best_user_defined[(name, workload)] = cfg


class ApplyGraphBest(DispatchContext):
    """The configurations that a graph tuner chose, one for each operator of its network.

    Operators of one workload take theirs in the order in which they stand in the network, as often
    as the network is compiled.

    Parameters
    ----------
    records : what `write_opt_sch2record_file` of the graph tuner wrote.

    Raises
    ------
    FileNotFoundError : there is no such file. ValueError : a record cannot be read.
    """

    def __init__(self, records: Any) -> None:
        super().__init__()
        self._chosen: dict[Any, list[Any]] = {}
        self._next: dict[Any, int] = {}
        for inp, _ in record_pairs(records):
            self._chosen.setdefault(inp.task.workload, []).append(inp.config)

    def _query_inside(self, target: Target | None, workload: Any) -> Any:
        chosen = self._chosen.get(workload)
        if chosen is None:
            return None
        place = self._next.get(workload, 0)
        self._next[workload] = place + 1
        return chosen[place % len(chosen)]


def record_pairs(records: Any) -> Iterable[tuple[MeasureInput, MeasureResult]]:
    """All pairs of inputs and results in files, pairs, and containers of these."""
    if isinstance(records, (str, bytes, os.PathLike)):
        yield from load_from_file(os.fspath(records))  # type: ignore[arg-type]
    elif hasattr(records, "readline"):
        yield from load_from_buffer(records)
    elif isinstance(records, tuple) and len(records) == 2 and isinstance(records[0], MeasureInput):
        yield records[0], MeasureResult(*records[1])
    elif isinstance(records, Iterable):
        for item in records:
            yield from record_pairs(item)
    else:
        raise TypeError(
            f"ApplyHistoryBest: expected files or pairs of inputs and results, got "
            f"{type(records).__name__}"
        )
