"""Records in memory."""

from __future__ import annotations

from tvm.ir import IRModule

from ..utils import normalize_mod
from .database import Database, TuningRecord, Workload, register_database

__all__ = ["MemoryDatabase"]


@register_database("memory")
class MemoryDatabase(Database):
    """Keeps workloads and records as long as it lives.

    Parameters
    ----------
    module_equality : only "structural": equal up to the names of variables.

    Raises
    ------
    ValueError : another equality.
    """

    def __init__(self, module_equality: str = "structural") -> None:
        if module_equality != "structural":
            raise ValueError(f"database: module_equality is 'structural', got {module_equality!r}")
        self._workloads: dict[int, list[Workload]] = {}
        self._records: list[TuningRecord] = []

    def _find(self, workload: Workload) -> Workload | None:
        return next((w for w in self._workloads.get(workload.shash, ()) if w == workload), None)

    def has_workload(self, mod: IRModule) -> bool:
        return self._find(Workload(normalize_mod(mod))) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        workload = Workload(mod)
        found = self._find(workload)
        if found is None:
            self._workloads.setdefault(workload.shash, []).append(workload)
            self._workload_added(workload)
        return found or workload

    def commit_tuning_record(self, record: TuningRecord) -> None:
        self._records.append(record)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return list(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def _workload_added(self, workload: Workload) -> None:
        """For databases that keep more than memory."""
