"""Databases made of others, and of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tir
from tvm.ir import IRModule
from tvm.target import Target

from ..utils import normalize_mod
from .database import Database, TuningRecord, Workload, register_database

__all__ = ["OrderedUnionDatabase", "ScheduleFnDatabase", "UnionDatabase"]


class _ReadOnly(Database):
    def has_workload(self, mod: IRModule) -> bool:
        raise self._refuse("has_workload")

    def commit_workload(self, mod: IRModule) -> Workload:
        raise self._refuse("commit_workload")

    def commit_tuning_record(self, record: TuningRecord) -> None:
        raise self._refuse("commit_tuning_record")

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        raise self._refuse("get_top_k")

    def get_all_tuning_records(self) -> list[TuningRecord]:
        raise self._refuse("get_all_tuning_records")

    def __len__(self) -> int:
        raise self._refuse("len")

    def _refuse(self, what: str) -> TypeError:
        return TypeError(
            f"{type(self).__name__} only answers queries; ask its databases for {what}"
        )


@register_database("union")
class UnionDatabase(_ReadOnly):
    """The fastest record of any of several databases."""

    def __init__(self, *databases: Database) -> None:
        self.databases = list(databases)

    def query_tuning_record(
        self, mod: IRModule, target: Target, workload_name: str = "main"
    ) -> TuningRecord | None:
        found = [db.query_tuning_record(mod, target, workload_name) for db in self.databases]
        known = [record for record in found if record is not None]
        return min(known, key=TuningRecord.mean_seconds) if known else None


@register_database("ordered_union")
class OrderedUnionDatabase(_ReadOnly):
    """The record of the first of several databases that has one."""

    def __init__(self, *databases: Database) -> None:
        self.databases = list(databases)

    def query_tuning_record(
        self, mod: IRModule, target: Target, workload_name: str = "main"
    ) -> TuningRecord | None:
        for db in self.databases:
            record = db.query_tuning_record(mod, target, workload_name)
            if record is not None:
                return record
        return None


@register_database("schedule")
class ScheduleFnDatabase(_ReadOnly):
    """Answers with what a function does to the schedule of a module.

    Parameters
    ----------
    schedule_fn : takes a schedule and returns whether it scheduled it. The schedule's module has
        the name that is asked for as attribute "task_name".
    """

    def __init__(self, schedule_fn: Callable[[tir.Schedule], Any]) -> None:
        self.schedule_fn = schedule_fn

    def query_tuning_record(
        self, mod: IRModule, target: Target, workload_name: str = "main"
    ) -> TuningRecord | None:
        sch = tir.Schedule(normalize_mod(mod).with_attr("task_name", workload_name))
        if not self.schedule_fn(sch):
            return None
        return TuningRecord(sch.trace, Workload(mod), None, target, None)
