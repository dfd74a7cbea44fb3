"""What a tuning run measures and keeps, whoever proposes it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tvm.runtime.files import append_lines
from tvm.target import Target

from . import _ffi_api
from .measure import LocalBuilder, LocalRunner, ProgramBuilder, ProgramMeasurer, ProgramRunner
from .measure_callback import weakly
from .measure_node import (
    BuildResult,
    Candidate,
    LibraryCandidate,
    MeasureErrorNo,
    MeasureResult,
)
from .measure_record import careful_file, library_records, load_records
from .search_policy import SearchPolicy
from .search_task import SearchTask

__all__ = ["MeasureSession", "confirm_records", "observe_records"]

logger = logging.getLogger("auto_scheduler")

# How many programs of a task are measured again at the end, and within what factor of the library's
# one is near it.
MAX_CONFIRMED = 4
_CLOSE = 1.25
# Programs that brief measurements cannot tell apart: how far behind the best, and how many at most.
_TIE = 1.03
_MAX_TIED = 3
# How often each program has its turn in a careful measurement.
_TURNS = 5


class Observer(Protocol):
    """Who is told of measurements: a search policy, or what makes one for them."""

    @property
    def search_task(self) -> SearchTask:
        """The task that the measurements are of."""

    def observe(self, candidates: Sequence[Candidate], results: Sequence[MeasureResult]) -> None:
        """Learn of measurements."""


def confirm_records(
    records: str | Path,
    tasks: Sequence[SearchTask],
    builder: ProgramBuilder | None = None,
    runner: ProgramRunner | None = None,
) -> None:
    """Measure the library's schedules and the best recorded programs of tasks again, with care.

    `ApplyHistoryBest` and `relax.build` then take a record only where it is faster than the
    library's schedule; see `MeasureSession.confirm`. What was measured so before counts.

    Parameters
    ----------
    records : file that a search of these tasks left; the results go to the careful one beside it.
    builder, runner : as of MeasureSession.

    Raises
    ------
    ValueError : a record cannot be read; the message names file and line.
    OSError : a result cannot be recorded.
    """
    found: dict[str, list[tuple[Candidate, float]]] = {}
    ours = {str(task.workload_key): task for task in tasks}
    for candidate, result in load_records(records):
        key = candidate.workload_key
        if (
            key in ours
            and _is_valid(result)
            and ours[key].target.is_same_machine(candidate.build_target)
        ):
            found.setdefault(key, []).append((candidate, result.mean_cost))
    with MeasureSession(builder, runner, records) as session:
        for (key, machine), result in library_records(records).items():
            if key in ours and ours[key].target.is_same_machine(Target(machine)):
                session._keep_library(key, result)
        session.measure_library(tasks)
        for key, task in ours.items():
            session.confirm(task, found.get(key, []))


def observe_records(records: str | Path, policies: Mapping[str, Observer]) -> None:
    """Let policies observe what was recorded; see `MeasureSession.restore`."""
    for key, inputs, results in _records_of(records, policies):
        policies[key].observe(inputs, results)


def _records_of(
    records: str | Path, policies: Mapping[str, Observer]
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
    builder, runner : by default LocalBuilder(), and a LocalRunner of a few short repeats. The
        careful measurements of the latter are several such, of one of yours a single one.
    records : file to which each result is appended as soon as it is known; None keeps none.

    Attributes
    ----------
    measurer : what builds and times; its `best_seconds` and `best` are those of the run.
    n_measure : measurements so far, restored ones included.
    library_seconds : workload key to latency of the library's schedule, where that was measured.
    on_result : functions of (candidate, result), called after the result was recorded.
    on_careful_result : the same for what is measured with care.
    """

    def __init__(
        self,
        builder: ProgramBuilder | None = None,
        runner: ProgramRunner | None = None,
        records: str | Path | None = None,
    ) -> None:
        listener = _ffi_api.PythonBasedMeasureCallback(weakly(self._take), None)
        builder = LocalBuilder() if builder is None else builder
        # Whether a program is worth more is seen in little time; who wins is decided carefully.
        self._turns = _TURNS if runner is None else 1
        if runner is None:
            runner = LocalRunner(number=1, repeat=8, min_repeat_ms=2)
        self.measurer = ProgramMeasurer(builder, runner, [listener])
        self.library_seconds: dict[str, float] = {}
        self.records = None if records is None else Path(records)
        self.n_measure = 0
        self.on_result: list[Callable[[Candidate, MeasureResult], None]] = []
        self.on_careful_result: list[Callable[[Candidate, MeasureResult], None]] = []
        self._unwritten: list[str] = []
        self._restored: set[str] = set()

    def start_workers(self) -> None:
        """Let processes of this machine, if it builds or runs, start while others things are done.

        Else the first candidates wait for them, seconds each.
        """
        for part in (self.measurer.builder, self.measurer.runner):
            if isinstance(part, (LocalBuilder, LocalRunner)):
                part.pool.start()

    def round(self, policy: SearchPolicy, n: int) -> int:
        """Measure up to `n` proposals of a policy, which observes them; returns how many.

        Raises
        ------
        OSError : a result cannot be recorded; `flush` tries again.
        RuntimeError : a worker does not start.
        """
        return len(policy.continue_search_one_round(n, self.measurer)[0])

    def measure_library(self, tasks: Sequence[SearchTask]) -> None:
        """Measure the library's schedules of the tasks that have no such measurement yet."""
        candidates = [LibraryCandidate(task) for task in self.without_library(tasks)]
        for candidate, program in zip(candidates, self.measurer.builder.build(candidates)):
            self._measure_in_turns([candidate], [program])

    def without_library(self, tasks: Sequence[SearchTask]) -> list[SearchTask]:
        """The tasks of which the library's schedule was not measured yet."""
        return [task for task in tasks if str(task.workload_key) not in self.library_seconds]

    def measure_again(self, candidates: Sequence[Candidate]) -> list[float]:
        """Measure a few good programs carefully, in turns.

        What slows the machine for some seconds so slows all of them. Results go to the careful
        records beside the others, and count as no measurements.

        Returns
        -------
        Least seconds of each, infinite where it failed.
        """
        candidates = list(candidates)
        return self._measure_in_turns(candidates, self.measurer.builder.build(candidates))

    def confirm(
        self, task: SearchTask, found: Sequence[tuple[Candidate, float]]
    ) -> dict[int, float]:
        """Measure the best programs of a task again, and the next ones if they were only lucky.

        The least of many noisy figures is too small, and all the more of figures that are close, so
        the library's schedule, which has one, is measured along with them once if it is near.

        Parameters
        ----------
        found : programs of the task with their seconds.

        Returns
        -------
        Position in `found` to seconds of the programs that were measured again, infinite where that
        failed.
        """
        key = str(task.workload_key)
        seconds = [taken for _, taken in found]
        confirmed: dict[int, float] = {}
        while found and len(confirmed) < MAX_CONFIRMED:
            order = sorted(range(len(found)), key=seconds.__getitem__)
            best = seconds[order[0]]
            library = self.library_seconds.get(key, math.inf)
            if order[0] in confirmed or not best <= _CLOSE * library:
                break
            tied = [i for i in order if i not in confirmed and seconds[i] <= _TIE * best]
            tied = tied[: min(_MAX_TIED, MAX_CONFIRMED - len(confirmed))]
            again = [found[i][0] for i in tied]
            if not confirmed and library < _CLOSE * best:
                again.append(LibraryCandidate(task))
            for i, taken in zip(tied, self.measure_again(again)):
                confirmed[i] = seconds[i] = taken
        return confirmed

    def restore(self, records: str | Path, policies: Mapping[str, Observer]) -> int:
        """Let policies and the measurer observe what an earlier run recorded.

        Each record counts as a measurement, so that a run that goes on measures what is left.

        Parameters
        ----------
        policies : by workload key, or what makes them when there is something to observe; records
            of other workloads or machines are passed over.

        Returns
        -------
        How many records were taken up.

        Raises
        ------
        ValueError : a record cannot be read; the message names file and line.
        """
        restored = 0
        careful = careful_file(records)
        # A run that ended before its search has measured the library's schedules alone.
        is_begun = careful.exists() and not Path(records).exists()
        for key, inputs, results in () if is_begun else _records_of(records, policies):
            for measure_input, result in zip(inputs, results):
                self.measurer.observe(measure_input, result)
                record = measure_input.record(result)
                restored += record not in self._restored
                self._restored.add(record)
            policies[key].observe(inputs, results)
        self.n_measure += restored
        if careful.exists():
            observe_records(careful, policies)
        for (key, machine), result in library_records(records).items():
            task = policies[key].search_task if key in policies else None
            if task is not None and task.target.is_same_machine(Target(machine)):
                self._keep_library(key, result)
        return restored

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

    def _measure_in_turns(
        self, candidates: Sequence[Candidate], programs: Sequence[BuildResult]
    ) -> list[float]:
        """Least seconds of programs that were built; each result is recorded."""
        runner = self.measurer.runner
        results: list[list[MeasureResult]] = [[] for _ in candidates]
        left = list(range(len(candidates)))
        for _ in range(self._turns if candidates else 0):
            turn = [candidates[i] for i in left], [programs[i] for i in left]
            for i, result in zip(left, runner.run(*turn, on_result=lambda *_: None)):
                results[i].append(result)
            left = [i for i in left if _is_valid(results[i][-1])]
            if not left:
                break
        least = [
            _least_result(result, float(program.time_cost))
            for result, program in zip(results, programs)
        ]
        for candidate, result in zip(candidates, least):
            if isinstance(candidate, LibraryCandidate):
                self._keep_library(candidate.workload_key, result)
            if self.records is not None:
                append_lines(careful_file(self.records), [candidate.record(result)])
            for function in self.on_careful_result:
                function(candidate, result)
        return [result.mean_cost if _is_valid(result) else math.inf for result in least]

    def _keep_library(self, key: str, result: MeasureResult) -> None:
        self.library_seconds[key] = result.mean_cost if _is_valid(result) else math.inf


def _is_valid(result: MeasureResult) -> bool:
    return int(result.error_no) == MeasureErrorNo.NO_ERROR


def _least_result(results: Sequence[MeasureResult], build_seconds: float) -> MeasureResult:
    """The fastest repeat of several measurements of a program; the failure, if one failed.

    Whatever disturbs a measurement makes it longer.
    """
    if not _is_valid(results[-1]):
        return results[-1]
    least = min(float(cost) for result in results for cost in result.costs)
    seconds = sum(float(result.all_cost) - build_seconds for result in results)
    return MeasureResult([least], 0, None, build_seconds + seconds, results[-1].timestamp)
