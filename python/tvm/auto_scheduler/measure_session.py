"""What a tuning run measures and keeps, whoever proposes it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tvm.runtime.files import append_lines

from . import _ffi_api
from .measure import ProgramBuilder, ProgramMeasurer, ProgramRunner
from .measure_callback import weakly
from .measure_node import Candidate, MeasureResult
from .measure_record import load_records
from .search_policy import SearchPolicy

__all__ = ["MeasureSession", "observe_records"]

logger = logging.getLogger("auto_scheduler")


def observe_records(records: str | Path, policies: Mapping[str, SearchPolicy]) -> None:
    """Let policies observe what was recorded; see `MeasureSession.restore`."""
    for key, inputs, results in _records_of(records, policies):
        policies[key].observe(inputs, results)


def _records_of(
    records: str | Path, policies: Mapping[str, SearchPolicy]
) -> Iterator[tuple[str, list[Candidate], list[MeasureResult]]]:
    """Workload key, candidates and results of each policy that the file has records of."""
    found: dict[str, tuple[list[Candidate], list[MeasureResult]]] = {}
    other_machines: set[str] = set()
    for measure_input, result in load_records(records):
        key, target = measure_input.workload_key, measure_input.build_target
        if key not in policies:
            continue
        if not policies[key].search_task.target.is_same_machine(target):
            other_machines.add(str(target))
            continue
        inputs, results = found.setdefault(key, ([], []))
        inputs.append(measure_input)
        results.append(result)
    if other_machines:
        logger.warning(
            "%s: records of other machines are not taken up: %s",
            records,
            "; ".join(sorted(other_machines)),
        )
    for key, (inputs, results) in found.items():
        yield key, inputs, results


class MeasureSession:
    """Measures for any number of policies: one record file, one count, one best of each workload.

    Parameters
    ----------
    builder, runner : by default LocalBuilder() and LocalRunner().
    records : file to which each result is appended as soon as it is known; None keeps none.

    Attributes
    ----------
    measurer : what builds and times; its `best_seconds` and `best` are those of the run.
    n_measure : measurements so far, restored ones included.
    on_result : functions of (candidate, result), called after the result was recorded.
    """

    def __init__(
        self,
        builder: ProgramBuilder | None = None,
        runner: ProgramRunner | None = None,
        records: str | Path | None = None,
    ) -> None:
        listener = _ffi_api.PythonBasedMeasureCallback(weakly(self._take), None)
        self.measurer = ProgramMeasurer(builder, runner, [listener])
        self.records = None if records is None else Path(records)
        self.n_measure = 0
        self.on_result: list[Callable[[Candidate, MeasureResult], None]] = []
        self._unwritten: list[str] = []

    def round(self, policy: SearchPolicy, n: int) -> int:
        """Measure up to `n` proposals of a policy, which observes them; returns how many.

        Raises
        ------
        OSError : a result cannot be recorded; `flush` tries again.
        RuntimeError : a worker does not start.
        """
        return len(policy.continue_search_one_round(n, self.measurer)[0])

    def restore(self, records: str | Path, policies: Mapping[str, SearchPolicy]) -> None:
        """Let policies and the measurer observe what an earlier run recorded.

        Parameters
        ----------
        policies : by workload key; records of other workloads or machines are passed over.

        Raises
        ------
        ValueError : a record cannot be read; the message names file and line.
        """
        for key, inputs, results in _records_of(records, policies):
            for measure_input, result in zip(inputs, results):
                self.measurer.observe(measure_input, result)
            policies[key].observe(inputs, results)

    def flush(self) -> None:
        """Write what could not be written before; what still cannot goes to the log."""
        if self._unwritten and self.records is not None:
            try:
                append_lines(self.records, self._unwritten)
            except OSError as error:
                text = "\n".join(self._unwritten)
                logger.error("%s; these records are in no file:\n%s", error, text)
            self._unwritten.clear()

    def close(self) -> None:
        """Flush, and end the worker processes; they start again when needed."""
        self.flush()
        self.measurer.close()

    def __enter__(self) -> MeasureSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, policy: Any, candidate: Candidate, result: MeasureResult) -> None:
        self.n_measure += 1
        if self.records is not None:
            self._unwritten.append(candidate.record(result))
            append_lines(self.records, self._unwritten)
            self._unwritten.clear()
        for function in self.on_result:
            function(candidate, result)
