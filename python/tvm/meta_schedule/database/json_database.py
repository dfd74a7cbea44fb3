"""Records in two files of JSON lines."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from tvm.runtime.files import append_lines

from .database import TuningRecord, Workload, register_database
from .memory_database import MemoryDatabase

__all__ = ["JSONDatabase"]

logger = logging.getLogger("tvm.meta_schedule")


@register_database("json")
class JSONDatabase(MemoryDatabase):
    """Keeps workloads and records in files, each line appended as it comes.

    Parameters
    ----------
    path_workload, path_tuning_record : the files; a record names its workload by line number.
    work_dir : folder of "database_workload.json" and "database_tuning_record.json", instead.
    allow_missing : begin with empty files where there are none.
    module_equality : as for `MemoryDatabase`; files are the same for all.

    Raises
    ------
    FileNotFoundError : there is no such file. ValueError : a line is none, which the message names;
    a torn last line is left out with a warning.
    """

    def __init__(
        self,
        path_workload: str | os.PathLike[str] | None = None,
        path_tuning_record: str | os.PathLike[str] | None = None,
        *,
        work_dir: str | os.PathLike[str] | None = None,
        allow_missing: bool = True,
        module_equality: str = "structural",
    ) -> None:
        super().__init__(module_equality)
        folder = Path(work_dir) if work_dir is not None else None
        if folder is not None:
            path_workload = path_workload or folder / "database_workload.json"
            path_tuning_record = path_tuning_record or folder / "database_tuning_record.json"
        if path_workload is None or path_tuning_record is None:
            raise ValueError("JSONDatabase: give work_dir, or the paths of both files")
        self.path_workload = Path(path_workload)
        self.path_tuning_record = Path(path_tuning_record)
        self._index: dict[Workload, int] = {}
        self._order: list[Workload] = []
        for path in (self.path_workload, self.path_tuning_record):
            if not path.exists():
                if not allow_missing:
                    raise FileNotFoundError(f"JSONDatabase: there is no file {path}")
                path.touch()

        def workload(value: Any) -> Workload:
            return Workload.from_json(value, self.module_equality)

        for line in self._lines(self.path_workload, workload):
            self._order.append(line)
            self._index.setdefault(line, len(self._order) - 1)
            self._workloads.setdefault(line.shash, []).append(line)
        self._records.extend(self._lines(self.path_tuning_record, self._record))

    def _record(self, value: Any) -> TuningRecord:
        number, record = value
        if type(number) is not int or not 0 <= number < len(self._order):
            raise ValueError(f"there is no workload {number!r}")
        return TuningRecord.from_json(record, self._order[number])

    @staticmethod
    def _lines(path: Path, read: Any) -> list[Any]:
        lines = path.read_text(encoding="utf-8").splitlines()
        found = []
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                found.append(read(json.loads(line)))
            except (ValueError, TypeError) as error:
                if number == len(lines) and isinstance(error, json.JSONDecodeError):
                    logger.warning("%s:%d: the line was cut; it is left out", path, number)
                    break
                raise ValueError(f"{path}:{number}: {error}") from error
        return found

    def _workload_added(self, workload: Workload) -> None:
        self._order.append(workload)
        self._index[workload] = len(self._order) - 1
        append_lines(self.path_workload, [json.dumps(workload.as_json())])

    def commit_tuning_record(self, record: TuningRecord) -> None:
        workload = self.commit_workload(record.workload.mod)
        append_lines(
            self.path_tuning_record, [json.dumps([self._index[workload], record.as_json()])]
        )
        super().commit_tuning_record(record)
