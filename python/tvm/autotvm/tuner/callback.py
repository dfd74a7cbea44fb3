"""Callbacks of tuners: writing records, showing progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from tqdm import tqdm

from tvm.runtime.files import append_lines

from ..env import GLOBAL_SCOPE
from ..measure import MeasureInput, MeasureResult
from ..task.records import encode
from ..utils import format_si_prefix, throughput

__all__ = ["Monitor", "log_to_database", "log_to_file", "progress_bar"]

Callback = Callable[[Any, Sequence[MeasureInput], Sequence[MeasureResult]], None]


def log_to_file(file_out: str | os.PathLike[str] | TextIO, protocol: str = "json") -> Callback:
    """Append each measurement to a file as it is known.

    Parameters
    ----------
    file_out : path, or an open text file.
    protocol : see `record.encode`.
    """

    def callback(_: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        lines = [encode(inp, result, protocol) for inp, result in zip(inputs, results)]
        if isinstance(file_out, (str, os.PathLike)):
            append_lines(file_out, lines)
        else:
            file_out.writelines(line + "\n" for line in lines)
            file_out.flush()

    return callback


def log_to_database(db: Any) -> Callback:
    """Keep each measurement in a `database.Database`."""

    def callback(_: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results):
            db.save(inp, result, extend=True)

    return callback


class Monitor:
    """Keeps the course of a run: `scores`, operations a second, and `timestamps`, in seconds."""

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def __call__(
        self, tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]
    ) -> None:
        for inp, result in zip(inputs, results):
            self.scores.append(throughput(float(inp.task.flop or 0), result))
            self.timestamps.append(float(result.timestamp))

    def reset(self) -> None:
        """Forget everything."""
        self.scores.clear()
        self.timestamps.clear()

    def trial_scores(self) -> list[float]:
        """Operations a second of each measurement, 0 of failed ones."""
        return self.scores

    def trial_timestamps(self) -> list[float]:
        """When each was measured."""
        return self.timestamps


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """A line that shows the last and the best throughput, and how much of the run is done.

    Parameters
    ----------
    total : measurements of the run.
    prefix : text before.
    si_prefix : unit of the throughput.
    """
    format_si_prefix(0, si_prefix)
    bar = tqdm(total=total, desc=prefix, disable=True if GLOBAL_SCOPE.silent else None)
    best = 0.0

    def callback(
        tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]
    ) -> None:
        nonlocal best
        last = 0.0
        for inp, result in zip(inputs, results):
            last = throughput(float(inp.task.flop or 0), result)
            best = max(best, last)
        bar.set_postfix_str(
            f"{format_si_prefix(last, si_prefix):.2f}/{format_si_prefix(best, si_prefix):.2f} "
            f"{si_prefix}FLOPS"
        )
        bar.update(len(results))
        if bar.n >= total or tuner is not None and tuner.ttl <= 0:
            bar.close()

    return callback
