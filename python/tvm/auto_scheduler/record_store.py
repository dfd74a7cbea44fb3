"""A store of records that many processes write to at once: SQLite beside the JSON lines of a run.

Records are kept by workload, target and processor, each exactly once: what is imported twice, or
added by two processes, is one record. Pruning forgets how slow programs were made, but not that
they were measured.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm.runtime.files import write_atomically
from tvm.target import Target

from .measure_callback import PythonBasedMeasureCallback
from .measure_node import Candidate, MeasureResult
from .measure_record import any_record_lines, careful_file, record_summary

__all__ = ["KernelSummary", "RecordStore", "RecordToStore", "StoredRecord"]

logger = logging.getLogger("auto_scheduler")

_VERSION = 1
# A writer waits so long for others; each holds the store for milliseconds.
_BUSY_SECONDS = 120.0
_TABLES = """
CREATE TABLE kernels (
  id INTEGER PRIMARY KEY,
  workload TEXT NOT NULL,
  target TEXT NOT NULL,
  processor TEXT NOT NULL,
  UNIQUE (workload, target)
);
CREATE TABLE records (
  digest BLOB PRIMARY KEY,            -- of the line: a record is there once
  kernel INTEGER NOT NULL REFERENCES kernels,
  program BLOB NOT NULL,              -- digest of how the program is made
  origin TEXT NOT NULL,               -- '' for a loop state, else who scheduled it
  careful INTEGER NOT NULL,           -- measured again, which counts in place of the others
  seconds REAL,                       -- mean cost, NULL where the program failed
  line TEXT                           -- NULL once pruned
);
CREATE INDEX records_of_kernel ON records (kernel, seconds);
"""
# Origin of what the operator library's schedule takes.
_LIBRARY = '"library"'
# Programs of a kernel with the seconds that count, the fastest first.
_RANKED = """
SELECT program, COALESCE(MIN(CASE WHEN careful THEN seconds END), MIN(seconds)) AS best
FROM records WHERE kernel = ? AND seconds IS NOT NULL
GROUP BY program ORDER BY best, MIN(rowid)
"""


@dataclass(frozen=True)
class StoredRecord:
    """The best record of a workload on a machine.

    Attributes
    ----------
    line : as in a record file.
    seconds : mean cost.
    n_measured : programs of the workload that were measured on that machine.
    """

    line: str
    seconds: float
    n_measured: int


@dataclass(frozen=True)
class KernelSummary:
    """What a store knows of a workload on a machine.

    Attributes
    ----------
    n_measured, n_failed : programs, and those of them that gave no time.
    best : None where nothing ran.
    """

    workload: str
    target: str
    processor: str
    n_measured: int
    n_failed: int
    best: StoredRecord | None


@dataclass(frozen=True)
class _Row:
    """What is kept of a line."""

    workload: str
    target: str
    processor: str
    digest: bytes
    program: bytes
    origin: str
    careful: bool
    seconds: float | None
    line: str


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


@functools.lru_cache(maxsize=256)
def _processor(target: str) -> str:
    """The processor that a recorded target names; "" where it names none, as in old records."""
    parsed = Target(target)
    return str(parsed.attrs.get("mcpu", "") or parsed.attrs.get("arch", ""))


def _row(line: str, careful: bool) -> _Row:
    """Raises a ValueError of a text that is no record."""
    workload, target, seconds, program, is_state = record_summary(line)
    return _Row(
        workload,
        target,
        _processor(target),
        _digest(line),
        _digest(program),
        "" if is_state else program,
        careful,
        seconds if seconds < math.inf else None,
        line,
    )


class RecordStore:
    """Records of any number of runs and machines in one file.

    Any number of processes may add to it and read it at the same time, on a file system of this
    machine. It may be used after a fork.

    Parameters
    ----------
    path : the store; made when something is added.

    Raises
    ------
    ValueError : when it is used, if the file is no store, or of a newer version.
    OSError : when it is used, if it cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._owner = 0

    def add(self, lines: Iterable[str], careful: bool = False) -> int:
        """Add records; returns how many were not there yet. They are on disk when it returns.

        Parameters
        ----------
        lines : as in a record file.
        careful : whether they were measured more carefully, as those of `records.careful.json`.

        Raises
        ------
        ValueError : a line is no record; then nothing is added.
        """
        return self._insert([_row(line, careful) for line in lines])

    def import_file(self, records: str | Path) -> tuple[int, int]:
        """Add the records of a file, and of the careful one beside it.

        Lines that are no records are reported by file and line, and left out.

        Returns
        -------
        How many were not there yet, and how many lines are no records.

        Raises
        ------
        FileNotFoundError : there is no such file.
        """
        rows, refused = [], 0
        again = careful_file(records)
        files = [(Path(records), False), *([(again, True)] if again.exists() else [])]
        for path, careful in files:
            for number, line in any_record_lines(path):
                try:
                    rows.append(_row(line, careful))
                except ValueError as error:
                    logger.warning("%s:%d is left out: %s", path, number, error)
                    refused += 1
        return self._insert(rows), refused

    def export_file(
        self,
        records: str | Path,
        workload: str = "",
        target: str = "",
        processor: str = "",
    ) -> int:
        """Write records as JSON lines, those that were measured carefully beside them.

        Parameters
        ----------
        workload, target, processor : only records whose keys contain these texts.

        Returns
        -------
        How many records were written; those that were pruned are not.
        """
        texts: dict[bool, list[str]] = {False: [], True: []}
        if self.exists():
            with self._reading() as connection:
                rows = connection.execute(
                    "SELECT careful, line FROM records JOIN kernels ON kernel = id "
                    "WHERE line IS NOT NULL AND instr(workload, ?) AND instr(target, ?) "
                    "AND instr(processor, ?) ORDER BY records.rowid",
                    (workload, target, processor),
                )
                for careful, line in rows:
                    texts[bool(careful)].append(f"{line}\n")
        write_atomically(records, "".join(texts[False]))
        if texts[True]:
            write_atomically(careful_file(records), "".join(texts[True]))
        return len(texts[False]) + len(texts[True])

    def best(self, workload: str, target: Target) -> StoredRecord | None:
        """The fastest record of a workload on the target's machine; None where nothing ran."""
        if not self.exists():
            return None
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT id, target FROM kernels WHERE workload = ?", (workload,)
            ).fetchall()
            known = [
                self._best_of(connection, kernel)
                for kernel, recorded in rows
                if target.is_same_machine(_target(recorded))
            ]
        return min(filter(None, known), key=lambda record: record.seconds, default=None)

    def kernels(
        self, workload: str = "", target: str = "", processor: str = ""
    ) -> list[KernelSummary]:
        """What is known of each workload on each machine; see `export_file` for the texts."""
        if not self.exists():
            return []
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT id, workload, target, processor FROM kernels "
                "WHERE instr(workload, ?) AND instr(target, ?) AND instr(processor, ?) ORDER BY id",
                (workload, target, processor),
            ).fetchall()
            return [
                KernelSummary(
                    *(name, machine, cpu),
                    *_counts(connection, kernel),
                    self._best_of(connection, kernel),
                )
                for kernel, name, machine, cpu in rows
            ]

    def prune(self, keep: int, workload: str = "", target: str = "", processor: str = "") -> int:
        """Forget all but the fastest programs of each kernel; returns how many records that were.

        That they were measured stays known, so that adding them again adds nothing.

        Parameters
        ----------
        keep : programs of each workload and target to keep, failed ones not counted.

        Raises
        ------
        ValueError : `keep` is less than 1.
        """
        if keep < 1:
            raise ValueError(f"RecordStore.prune: keep must be >= 1, got {keep}")
        if not self.exists():
            return 0
        removed = 0
        with self._writing() as connection:
            rows = connection.execute(
                "SELECT id FROM kernels WHERE instr(workload, ?) AND instr(target, ?) "
                "AND instr(processor, ?)",
                (workload, target, processor),
            ).fetchall()
            for (kernel,) in rows:
                ranked = connection.execute(_RANKED, (kernel,)).fetchall()
                kept = [program for program, _ in ranked[:keep]]
                marks = ", ".join("?" * len(kept))
                # What the library's schedule takes is what others have to beat.
                done = connection.execute(
                    "UPDATE records SET line = NULL WHERE kernel = ? AND line IS NOT NULL "
                    f"AND origin <> ? AND program NOT IN ({marks})",
                    (kernel, _LIBRARY, *kept),
                )
                removed += done.rowcount
        # Shrinks the file; others that are using it come first.
        with suppress(sqlite3.OperationalError):
            self._open().execute("VACUUM")
        return removed

    def merge(self, others: Iterable[RecordStore]) -> int:
        """Add the records of other stores; returns how many were not there yet."""
        added = 0
        for other in others:
            if not other.exists():
                raise FileNotFoundError(2, "there is no such record store", str(other.path))
            with other._reading() as connection:
                rows = connection.execute(
                    "SELECT workload, target, processor, digest, program, origin, careful, "
                    "seconds, line FROM records JOIN kernels ON kernel = id ORDER BY records.rowid"
                ).fetchall()
            added += self._insert([_Row(*row) for row in rows])
        return added

    def exists(self) -> bool:
        """Whether anything was ever added."""
        return self.path.exists()

    def n_records(self) -> int:
        """Records that were ever added, pruned ones included."""
        if not self.exists():
            return 0
        with self._reading() as connection:
            return int(connection.execute("SELECT COUNT(*) FROM records").fetchone()[0])

    def close(self) -> None:
        """Let go of the file; it is opened again when needed."""
        if self._connection is None:
            return
        if self._owner == os.getpid():
            self._connection.close()
        else:
            _of_parents.append(self._connection)
        self._connection = None

    def __enter__(self) -> RecordStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_owner"):
            self.close()

    def _insert(self, rows: Sequence[_Row]) -> int:
        if not rows:
            return 0
        added = 0
        with self._writing() as connection:
            ids: dict[tuple[str, str], int] = {}
            for row in rows:
                key = (row.workload, row.target)
                if key not in ids:
                    connection.execute(
                        "INSERT OR IGNORE INTO kernels (workload, target, processor) "
                        "VALUES (?, ?, ?)",
                        (*key, row.processor),
                    )
                    ids[key] = connection.execute(
                        "SELECT id FROM kernels WHERE workload = ? AND target = ?", key
                    ).fetchone()[0]
                done = connection.execute(
                    "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        row.digest,
                        ids[key],
                        row.program,
                        row.origin,
                        row.careful,
                        row.seconds,
                        row.line,
                    ),
                )
                added += done.rowcount
        return added

    def _best_of(self, connection: sqlite3.Connection, kernel: int) -> StoredRecord | None:
        found = connection.execute(f"{_RANKED} LIMIT 1", (kernel,)).fetchone()
        if found is None:
            return None
        program, seconds = found
        line = connection.execute(
            "SELECT line FROM records WHERE kernel = ? AND program = ? AND line IS NOT NULL "
            "AND seconds IS NOT NULL ORDER BY careful DESC, seconds LIMIT 1",
            (kernel, program),
        ).fetchone()
        return (
            None if line is None else StoredRecord(line[0], seconds, _counts(connection, kernel)[0])
        )

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._open()
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path}: no record store, or damaged: {error}") from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction; all of it happens, or nothing."""
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A full disk ends the transaction by itself.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._owner == os.getpid():
            return self._connection
        self.close()
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._owner = connection, os.getpid()
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise ValueError(
                f"{self.path} is a record store of version {version}; this one knows {_VERSION}"
            )
        if version == _VERSION:
            return
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made the tables meanwhile.
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")


_target = functools.lru_cache(maxsize=256)(Target)

# A connection must not be used, nor closed, by a process that was forked.
_of_parents: list[sqlite3.Connection] = []


def _counts(connection: sqlite3.Connection, kernel: int) -> tuple[int, int]:
    """Programs of a kernel that were measured, and those of them that failed."""
    measured, failed = connection.execute(
        "SELECT COUNT(*), COUNT(*) - COUNT(seconds) FROM records "
        "WHERE kernel = ? AND NOT careful AND origin <> ?",
        (kernel, _LIBRARY),
    ).fetchone()
    return int(measured), int(failed)


class RecordToStore(PythonBasedMeasureCallback):
    """Measure callback that adds each result to a store as soon as it is known.

    Parameters
    ----------
    path : the store.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._store = RecordStore(path)
        super().__init__()

    def on_result(self, policy: Any, candidate: Candidate, result: MeasureResult) -> None:
        """Add a result."""
        self._store.add([candidate.record(result)])
