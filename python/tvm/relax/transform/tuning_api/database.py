"""Where tuning passes keep what they measured: modules, traces, and seconds."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tvm
from tvm import error
from tvm.ir import IRModule
from tvm.runtime.files import append_lines
from tvm.target import Target

from .primitives import Trace

__all__ = ["Database", "JSONDatabase", "TuningRecord", "Workload"]


@dataclass(frozen=True)
class Workload:
    """A module in a database, told apart by its structure.

    Attributes
    ----------
    index : its number in the database.
    """

    mod: IRModule = field(compare=False)
    index: int


class TuningRecord:
    """A trace, and the seconds that runs of what came out took; None if it was not run."""

    def __init__(self, trace: Trace, run_secs: Sequence[float] | None = None) -> None:
        self.trace = trace
        self.run_secs = None if run_secs is None else [float(value) for value in run_secs]

    def as_json(self, include_irmod: bool = True) -> list[Any]:
        """What :meth:`from_json` takes; `include_irmod` as of ``Trace.as_json``."""
        return [self.trace.as_json(include_irmod), self.run_secs]

    @staticmethod
    def from_json(json_obj: Sequence[Any]) -> TuningRecord:
        """The record that was saved."""
        trace, run_secs = json_obj
        return TuningRecord(Trace.from_json(trace), run_secs)


class Database(ABC):
    """What tuning passes ask of a database."""

    @abstractmethod
    def has_workload(self, mod: IRModule) -> bool:
        """Whether there is a module of the same structure."""

    @abstractmethod
    def commit_workload(self, mod: IRModule) -> Workload:
        """The entry of a module, which is added if need be."""

    @abstractmethod
    def commit_measurement_record(
        self, workload: Workload, target: Target, run_secs: Sequence[float]
    ) -> None:
        """Keep the seconds that runs of a module took."""

    @abstractmethod
    def commit_tuning_record(
        self, workload: Workload, target: Target, record: TuningRecord
    ) -> None:
        """Keep a trace from a module on, with what was measured."""

    @abstractmethod
    def get_measurement_record(self, workload: Workload, target: Target) -> list[float]:
        """The seconds of the last measurement; empty if there is none."""

    @abstractmethod
    def get_top_k(self, workload: Workload, target: Target, top_k: int) -> list[TuningRecord]:
        """The fastest traces of a module, the fastest first."""

    def has_measurement_record(self, workload: Workload, target: Target) -> bool:
        """Whether the module was measured."""
        return bool(self.get_measurement_record(workload, target))

    def has_tuning_record(self, workload: Workload, target: Target) -> bool:
        """Whether there is a trace from the module on."""
        return bool(self.get_top_k(workload, target, 1))


class JSONDatabase(Database):
    """A database in three files of lines, which are read when it is made and appended to.

    Raises
    ------
    ValueError : a line is damaged; the message has its place.
    """

    def __init__(
        self, path_workload: str, path_tuning_record: str, path_measurement_record: str
    ) -> None:
        self._paths = [
            Path(p) for p in (path_workload, path_tuning_record, path_measurement_record)
        ]
        self._workloads: list[Workload] = []
        self._by_hash: dict[int, list[Workload]] = {}
        self._measured: dict[tuple[int, str], list[float]] = {}
        self._tuned: dict[tuple[int, str], list[TuningRecord]] = {}
        workloads, tuned, measured = self._paths
        for value in _lines(workloads, lambda text: tvm.ir.load_json(text["mod"])):
            self._add_workload(value)
        for key, record in _lines(tuned, lambda line: (line[:2], TuningRecord.from_json(line[2]))):
            self._tuned.setdefault(self._key_of(tuned, *key), []).append(record)
        for index, target, run_secs in _lines(measured, lambda line: line):
            self._measured[self._key_of(measured, index, target)] = run_secs

    def _key_of(self, path: Path, index: int, target: str) -> tuple[int, str]:
        if not 0 <= index < len(self._workloads):
            raise error.ValueError(f"{path}: a record is of module {index}, which is not there")
        return index, target

    def _find(self, mod: IRModule) -> Workload | None:
        for workload in self._by_hash.get(tvm.ir.structural_hash(mod), ()):
            if tvm.ir.structural_equal(workload.mod, mod):
                return workload
        return None

    def _add_workload(self, mod: IRModule) -> Workload:
        workload = Workload(mod, len(self._workloads))
        self._workloads.append(workload)
        self._by_hash.setdefault(tvm.ir.structural_hash(mod), []).append(workload)
        return workload

    def has_workload(self, mod: IRModule) -> bool:
        return self._find(mod) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        found = self._find(mod)
        if found is None:
            append_lines(self._paths[0], [json.dumps({"mod": tvm.ir.save_json(mod)})])
            found = self._add_workload(mod)
        return found

    def commit_measurement_record(
        self, workload: Workload, target: Target, run_secs: Sequence[float]
    ) -> None:
        seconds = [float(value) for value in run_secs]
        append_lines(self._paths[2], [json.dumps([workload.index, str(target), seconds])])
        self._measured[workload.index, str(target)] = seconds

    def commit_tuning_record(
        self, workload: Workload, target: Target, record: TuningRecord
    ) -> None:
        line = [workload.index, str(target), record.as_json()]
        append_lines(self._paths[1], [json.dumps(line)])
        self._tuned.setdefault((workload.index, str(target)), []).append(record)

    def get_measurement_record(self, workload: Workload, target: Target) -> list[float]:
        return list(self._measured.get((workload.index, str(target)), ()))

    def get_top_k(self, workload: Workload, target: Target, top_k: int) -> list[TuningRecord]:
        records = [r for r in self._tuned.get((workload.index, str(target)), ()) if r.run_secs]
        records.sort(key=lambda record: _mean(record.run_secs))
        return records[: max(top_k, 0)]


def _mean(values: Any) -> float:
    return sum(values) / len(values)


def _lines(path: str | os.PathLike[str], read: Any) -> list[Any]:
    path = Path(path)
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            found.append(read(json.loads(line)))
        except (ValueError, KeyError, TypeError, IndexError) as problem:
            raise error.ValueError(f"{path}:{number}: the line is damaged: {problem}") from problem
    return found
