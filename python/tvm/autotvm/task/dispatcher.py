"""Configurations from records."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from tvm.target import Target

from ..measure_node import MeasureInput, MeasureResult
from .context import ApplyConfig, ApplyFixedConfig, DispatchContext, FallbackContext, get_config
from .records import load_from_buffer, load_from_file

__all__ = [
    "ApplyConfig",
    "ApplyFixedConfig",
    "ApplyHistoryBest",
    "DispatchContext",
    "FallbackContext",
    "get_config",
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
        for inp, result in _pairs(records):
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
        return None if best is None else best[0].config

    def update(self, target: Target | str, workload: Any, cfg: Any) -> None:
        target = target if isinstance(target, Target) else Target(target)
        names = [str(key) for key in target.keys]
        if target.model != "unknown":
            names.append(str(target.model))
        for name in names:
            self._best_user_defined[(name, workload)] = cfg


def _pairs(records: Any) -> Iterable[tuple[MeasureInput, MeasureResult]]:
    """All pairs of inputs and results in files, pairs, and containers of these."""
    if isinstance(records, (str, bytes, os.PathLike)):
        yield from load_from_file(os.fspath(records))  # type: ignore[arg-type]
    elif hasattr(records, "readline"):
        yield from load_from_buffer(records)
    elif isinstance(records, tuple) and len(records) == 2 and isinstance(records[0], MeasureInput):
        yield records[0], MeasureResult(*records[1])
    elif isinstance(records, Iterable):
        for item in records:
            yield from _pairs(item)
    else:
        raise TypeError(
            f"ApplyHistoryBest: expected files or pairs of inputs and results, got "
            f"{type(records).__name__}"
        )
