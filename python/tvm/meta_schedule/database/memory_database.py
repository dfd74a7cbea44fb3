"""Records in memory."""

from __future__ import annotations

from tvm.ir import IRModule

from ..module_equality import equality_of
from .database import Database, TuningRecord, Workload, register_database

__all__ = ["MemoryDatabase"]


@register_database("memory")
class MemoryDatabase(Database):
    """Keeps workloads and records as long as it lives.

    Parameters
    ----------
    module_equality : which modules are one workload: "structural", "ignore-ndarray" or
        "anchor-block", see :func:`tvm.meta_schedule.module_equality.equality_of`.

    Raises
    ------
    ValueError : another equality.
    """

    def __init__(self, module_equality: str = "structural") -> None:
        self.module_equality = equality_of(module_equality).name
        self._workloads: dict[int, list[Workload]] = {}
        self._records: list[TuningRecord] = []

    def _find(self, workload: Workload) -> Workload | None:
        return next((w for w in self._workloads.get(workload.shash, ()) if w == workload), None)

    def has_workload(self, mod: IRModule) -> bool:
        return self._find(Workload(mod, self.module_equality)) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        workload = Workload(mod, self.module_equality)
        found = self._find(workload)
        if found is None:
            self._workloads.setdefault(workload.shash, []).append(workload)
            self._workload_added(workload)
        return found or workload

    def commit_tuning_record(self, record: TuningRecord) -> None:
        if record.workload.equality.name != self.module_equality:
            # Of a database that tells modules apart otherwise, or made by hand.
            record = record.of_workload(self.commit_workload(record.workload.mod))
        self._records.append(record)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return list(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def _workload_added(self, workload: Workload) -> None:
        """For databases that keep more than memory."""
