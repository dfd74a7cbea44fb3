"""Records of what was measured, and the best of them for a module."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

import tvm
from tvm import tir
from tvm.ir import IRModule
from tvm.target import Target

from ..arg_info import ArgInfo
from ..candidate import MeasureCandidate
from ..module_equality import equality_of
from ..trace_apply import schedule_using_anchor_trace
from ..utils import Named, normalize_mod

__all__ = ["Database", "PyDatabase", "TuningRecord", "Workload"]


class Workload:
    """A module to tune.

    Parameters
    ----------
    module_equality : which other modules are the same workload, see
        :func:`tvm.meta_schedule.module_equality.equality_of`.

    Attributes
    ----------
    mod : the module.
    equality : the way in which modules are told apart.
    shash : hash of what counts of the module.
    """

    def __init__(self, mod: IRModule, module_equality: str = "structural") -> None:
        self.mod = normalize_mod(mod)
        self.equality = equality_of(module_equality)
        self.shash = self.equality.hash(self.mod)

    def as_json(self) -> list[Any]:
        """Hash of the structure, and the module as JSON in base64."""
        text = tvm.ir.save_json(self.mod)
        shash = equality_of("structural").hash(self.mod)
        return [str(shash), base64.b64encode(text.encode()).decode()]

    @staticmethod
    def from_json(json_obj: Any, module_equality: str = "structural") -> Workload:
        """Inverse of `as_json`.

        Raises
        ------
        ValueError : the value is none, or the module has another hash.
        """
        try:
            shash, text = json_obj
            mod = tvm.ir.load_json(base64.b64decode(text, validate=True).decode())
        except Exception as error:
            raise ValueError(f"workload: {error}") from error
        if not isinstance(mod, IRModule):
            raise ValueError(f"workload: expected a module, got {type(mod).__name__}")
        if str(equality_of("structural").hash(normalize_mod(mod))) != str(shash):
            raise ValueError("workload: the module is not the one that its hash was made of")
        return Workload(mod, module_equality)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Workload)
            and self.shash == other.shash
            and self.equality == other.equality
            and self.equality.equal(self.mod, other.mod)
        )

    def __hash__(self) -> int:
        return hash(self.shash)


class TuningRecord:
    """A trace for a workload, and how long its program took.

    Attributes
    ----------
    trace, workload, target, args_info : what was measured, for what.
    run_secs : seconds of each repeat, None if it failed.
    at_least : seconds that a call took before it was stopped, None if it was not.
    """

    def __init__(
        self,
        trace: tir.schedule.Trace,
        workload: Workload,
        run_secs: Sequence[float] | None = None,
        target: Target | None = None,
        args_info: Sequence[ArgInfo] | None = None,
        at_least: float | None = None,
    ) -> None:
        self.trace = trace
        self.workload = workload
        self.run_secs = (
            None if run_secs is None else [float(getattr(s, "value", s)) for s in run_secs]
        )
        self.target = target
        self.args_info = None if args_info is None else list(args_info)
        self.at_least = None if at_least is None else float(at_least)

    def mean_seconds(self) -> float:
        """Mean of the repeats, infinite for failures."""
        if not self.run_secs or not self.is_valid():
            return math.inf
        return float(np.mean(self.run_secs))

    def is_valid(self) -> bool:
        """Whether it was timed at all."""
        return bool(self.run_secs) and all(0 <= s < 1e9 for s in self.run_secs or ())

    def of_workload(self, workload: Workload) -> TuningRecord:
        """The same record under another workload, of the same module."""
        return TuningRecord(
            self.trace, workload, self.run_secs, self.target, self.args_info, self.at_least
        )

    def as_measure_candidate(self) -> MeasureCandidate:
        """The schedule, made again from the trace."""
        sch = tir.Schedule(self.workload.mod)
        self.trace.apply_to_schedule(sch, remove_postproc=False)
        return MeasureCandidate(sch, self.args_info)

    def as_json(self) -> Any:
        """Trace, seconds, target as text, arguments; the workload is kept apart.

        Of what was stopped there is a fifth value, `at_least`.
        """
        return [
            self.trace.as_json(),
            self.run_secs,
            None if self.target is None else str(self.target),
            None if self.args_info is None else [info.as_json() for info in self.args_info],
            *([] if self.at_least is None else [self.at_least]),
        ]

    @staticmethod
    def from_json(json_obj: Any, workload: Workload) -> TuningRecord:
        """Inverse of `as_json`.

        Raises
        ------
        ValueError : the value is none.
        """
        try:
            trace, run_secs, target, args_info, *stopped = json_obj
            if len(stopped) > 1:
                raise ValueError(f"tuning record: {len(json_obj)} values, expected 4 or 5")
            return TuningRecord(
                tir.schedule.Trace.from_json(trace),
                workload,
                run_secs,
                None if target is None else Target(target),
                None if args_info is None else [ArgInfo.from_json(info) for info in args_info],
                *stopped,
            )
        except (TypeError, KeyError) as error:
            raise ValueError(f"tuning record: {error} in {json.dumps(json_obj)[:80]}") from error


class Database(Named):
    """Base of databases, which define `has_workload`, `commit_workload`, `commit_tuning_record`,
    `get_all_tuning_records`, and `__len__`.

    Entered with ``with``, it is the current one.
    """

    _active: ClassVar[list[Database]] = []

    def has_workload(self, mod: IRModule) -> bool:
        """Whether a module is known."""
        raise TypeError(f"{type(self).__name__} does not define has_workload")

    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of a module; enters it if it is new."""
        raise TypeError(f"{type(self).__name__} does not define commit_workload")

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Keep a record."""
        raise TypeError(f"{type(self).__name__} does not define commit_tuning_record")

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records, in the order in which they came."""
        raise TypeError(f"{type(self).__name__} does not define get_all_tuning_records")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} does not define __len__")

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest records of a workload, the fastest first; failures take no part.

        Raises
        ------
        ValueError : `top_k` is negative.
        """
        if top_k < 0:
            raise ValueError(f"get_top_k: top_k is not negative, got {top_k}")
        records = [
            r for r in self.get_all_tuning_records() if r.is_valid() and r.workload == workload
        ]
        return sorted(records, key=TuningRecord.mean_seconds)[:top_k]

    def query_tuning_record(
        self, mod: IRModule, target: Target, workload_name: str = "main"
    ) -> TuningRecord | None:
        """The fastest record of a module, None if there is none.

        Parameters
        ----------
        target : records of another kind of target take no part.
        workload_name : taken from programs written for TVM; modules are known by their structure.
        """
        mod = normalize_mod(mod)
        if not self.has_workload(mod):
            return None
        for record in self.get_top_k(self.commit_workload(mod), len(self)):
            if record.target is None or str(record.target.kind.name) == str(target.kind.name):
                return record
        return None

    def query_schedule(
        self, mod: IRModule, target: Target, workload_name: str = "main"
    ) -> tir.Schedule | None:
        """The module scheduled by the fastest record, None if there is none.

        A record may be of another module, where modules are told apart by their anchor blocks; then
        its trace is fitted to this one, see `tvm.meta_schedule.trace_apply`.
        """
        record = self.query_tuning_record(mod, target, workload_name)
        if record is None:
            return None
        mod = normalize_mod(mod)
        if equality_of("structural").equal(mod, record.workload.mod):
            return record.as_measure_candidate().sch
        sch = tir.Schedule(mod)
        schedule_using_anchor_trace(sch, record.trace, target)
        return sch

    def query_ir_module(
        self, mod: IRModule, target: Target, workload_name: str = "main"
    ) -> IRModule | None:
        """The scheduled module of the fastest record, None if there is none."""
        sch = self.query_schedule(mod, target, workload_name)
        return None if sch is None else sch.mod

    def query(
        self, mod: IRModule, target: Target, *, workload_name: str = "main", kind: str = "schedule"
    ) -> Any:
        """`query_schedule`, `query_tuning_record` or `query_ir_module`.

        Parameters
        ----------
        kind : "schedule", "record" or "ir_module".

        Raises
        ------
        ValueError : another kind.
        """
        queries: dict[str, Callable[..., Any]] = {
            "schedule": self.query_schedule,
            "record": self.query_tuning_record,
            "ir_module": self.query_ir_module,
        }
        if kind not in queries:
            raise ValueError(f"database: unknown kind {kind!r}; there are {sorted(queries)}")
        return queries[kind](mod, target, workload_name)

    def dump_pruned(self, destination: Database) -> None:
        """Put the fastest record of each workload into another database."""
        best: dict[Workload, TuningRecord] = {}
        for record in self.get_all_tuning_records():
            known = best.get(record.workload)
            if record.is_valid() and (
                known is None or record.mean_seconds() < known.mean_seconds()
            ):
                best[record.workload] = record
        for record in best.values():
            workload = destination.commit_workload(record.workload.mod)
            destination.commit_tuning_record(record.of_workload(workload))

    @staticmethod
    def current() -> Database | None:
        """The database that was entered last."""
        return Database._active[-1] if Database._active else None

    @staticmethod
    def create(kind: Any = "json", *args: Any, **kwargs: Any) -> Database:
        """A database by name: "json", "memory", "union", "ordered_union", or a schedule function.

        Raises
        ------
        ValueError : another name.
        """
        if callable(kind):
            kind, args = "schedule", (kind, *args)
        if kind not in _KINDS:
            raise ValueError(f"Database.create: unknown kind {kind!r}; there are {sorted(_KINDS)}")
        return _KINDS[kind](*args, **kwargs)

    def __enter__(self) -> Any:
        Database._active.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        Database._active.remove(self)


# Filled in by the modules that define them.
_KINDS: dict[str, Callable[..., Database]] = {}


def register_database(kind: str) -> Callable[[type[Database]], type[Database]]:
    """Class decorator that enters a kind for `Database.create`."""

    def enter(cls: type[Database]) -> type[Database]:
        _KINDS[kind] = cls
        return cls

    return enter


class PyDatabase(Database):
    """Base of databases that users define."""
