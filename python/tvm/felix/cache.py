"""What this machine remembers between runs: the best schedule of each kernel, compiled networks."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import tvm
from tvm._ffi.libinfo import find_lib_path
from tvm.auto_scheduler import RecordStore
from tvm.auto_scheduler.measure_record import RecordSummary, record_summary
from tvm.runtime.files import write_atomically
from tvm.target import Target
from tvm.target.machine import host_cpu

__all__ = [
    "CACHE_VARIABLE",
    "STORE_NAME",
    "KernelCache",
    "KernelRecord",
    "NetworkCache",
    "cache_folder",
    "compiler_version",
    "machine_name",
    "read_kernel_records",
    "write_kernel_records",
]

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "TVM_FELIX_CACHE"
# The store of records in that folder.
STORE_NAME = "records.db"
_OFF = ("", "0", "off", "none")
# Compiled networks hold their weights, so a few hundred of them would fill a disk.
_MAX_NETWORK_BYTES = 8 << 30


def cache_folder() -> Path | None:
    """Folder of what is kept between runs, for this user alone; None where nothing is kept.

    The environment variable ``TVM_FELIX_CACHE`` names it, or says "off"; without it, it is
    ``tvm/felix`` in the user's cache folder (``XDG_CACHE_HOME``, else ``~/.cache``).

    A folder that other users may write to is not used, since code is loaded from it.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named is not None and named.strip().lower() in _OFF:
        return None
    if named is not None:
        folder = Path(named).expanduser()
    else:
        base = os.environ.get("XDG_CACHE_HOME")
        folder = (Path(base) if base else Path("~/.cache").expanduser()) / "tvm" / "felix"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
    except (OSError, RuntimeError) as error:
        _warn_once(f"nothing is kept between runs: {error}; set {CACHE_VARIABLE} to a folder")
        return None
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        _warn_once(
            f"nothing is kept between runs: other users may write to {folder}; "
            f"chmod 700 it, or set {CACHE_VARIABLE} to a folder of your own"
        )
        return None
    return folder


@functools.cache
def _warn_once(text: str) -> None:
    logger.warning("%s", text)


@functools.cache
def compiler_version() -> str:
    """Differs between two states of this compiler, released or not."""
    digest = hashlib.sha256(tvm.__version__.encode())
    package = Path(tvm.__file__).parent
    for path in sorted([*package.rglob("*.py"), *map(Path, find_lib_path())]):
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def machine_name(target: Target) -> str:
    """The machine that code for a target is made for, its vector units included."""
    return f"{target.with_machine()} {host_cpu()}"


@dataclass(frozen=True)
class KernelRecord:
    """The best schedule that is known of a kernel.

    Attributes
    ----------
    line : the record, as in a record file.
    n_measured : programs that were measured to find it; none where only the library's schedule was.
    """

    line: str
    n_measured: int

    @property
    def is_library(self) -> bool:
        """Whether nothing was faster than the schedule of the operator library."""
        return "origin" in json.loads(self.line)

    @property
    def summary(self) -> RecordSummary:
        """What the record is of, and its time.

        Raises
        ------
        ValueError : the line is no record.
        """
        return record_summary(self.line)


def write_kernel_records(path: Path, records: Sequence[KernelRecord]) -> None:
    """Write a record file that says of each record how many programs were measured for it."""
    texts = [f"# {r.n_measured} programs measured\n{r.line}\n" for r in records]
    write_atomically(path, "".join(texts))


def read_kernel_records(path: Path) -> list[KernelRecord]:
    """The records of a file that `write_kernel_records` wrote; of other files each counts as one.

    Raises
    ------
    OSError : the file cannot be read.
    """
    records: list[KernelRecord] = []
    count = 1
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        counted = re.fullmatch(r"# (\d{1,12}) programs measured", text)
        if counted:
            count = int(counted[1])
        elif text and not text.startswith("#"):
            records.append(KernelRecord(text, count))
            count = 1
    return records


class KernelCache:
    """The best schedule of each workload on each machine, whatever network it was tuned for.

    Parameters
    ----------
    store : has the records.
    """

    def __init__(self, store: RecordStore) -> None:
        self.store = store

    @classmethod
    def of_machine(cls) -> KernelCache | None:
        """The cache in the user's cache folder; None where nothing is kept."""
        folder = cache_folder()
        return None if folder is None else cls(RecordStore(folder / STORE_NAME))

    def best(self, workload_key: str, target: Target) -> KernelRecord | None:
        """The best record of a workload on the target's machine; None where it was never tuned."""
        try:
            found = self.store.best(workload_key, target)
        except (ValueError, OSError) as error:
            _warn_once(f"what this machine remembers cannot be used: {error}")
            return None
        if found is None:
            return None
        known = KernelRecord(found.line, found.n_measured)
        # A program that was only ever measured with care counts as one.
        return known if known.is_library else replace(known, n_measured=max(found.n_measured, 1))

    def add(self, records: Path) -> int:
        """Take up a record file; returns how many records were not there yet.

        What cannot be written is reported, not raised: the records themselves are safe.
        """
        try:
            return self.store.import_file(records)[0]
        except (ValueError, OSError) as error:
            _warn_once(f"{error}; kernels are not remembered for other networks")
            return 0

    def is_empty(self) -> bool:
        """Whether nothing was ever stored."""
        return not self.store.exists()

    def state(self) -> str:
        """Differs after a record was added."""
        with suppress(OSError, ValueError):
            return str(self.store.n_records())
        return ""


class NetworkCache:
    """Compiled networks on disk, each in a folder of its own.

    Parameters
    ----------
    folder : holds the folders.
    max_bytes : of all of them; the ones that were used longest ago go first.
    """

    def __init__(self, folder: Path, max_bytes: int = _MAX_NETWORK_BYTES) -> None:
        self.folder = folder
        self._max_bytes = max_bytes

    @classmethod
    def of_machine(cls) -> NetworkCache | None:
        """The cache in the user's cache folder; None where nothing is kept."""
        folder = cache_folder()
        return None if folder is None else cls(folder / "networks")

    def find(self, key: str) -> Path | None:
        """Folder of a network; None where it was never stored."""
        folder = self.folder / key
        if not folder.is_dir():
            return None
        with suppress(OSError):
            os.utime(folder)
        return folder

    def remove(self, key: str) -> None:
        """Forget a network, for instance one whose files are damaged."""
        shutil.rmtree(self.folder / key, ignore_errors=True)

    def store(self, key: str, write: Callable[[Path], None]) -> None:
        """Keep a network; `write` puts its files into the folder that it is given.

        What cannot be written is reported, not raised: the network works without.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._new_folder() as made:
                write(made)
                if not (self.folder / key).exists():
                    made.rename(self.folder / key)
            self._make_room(key)
        except (OSError, RuntimeError) as error:
            _warn_once(f"{self.folder}: {error}; compiled networks are not kept")

    @contextmanager
    def _new_folder(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))
        try:
            yield folder
        finally:
            if folder.exists():
                shutil.rmtree(folder, ignore_errors=True)

    def _make_room(self, newest: str) -> None:
        sizes = {}
        for folder in self.folder.iterdir():
            with suppress(OSError):
                total = sum(file.stat().st_size for file in folder.iterdir())
                sizes[folder] = (folder.stat().st_mtime_ns, total)
        used = sum(total for _, total in sizes.values())
        for folder, (_, total) in sorted(sizes.items(), key=lambda item: item[1]):
            if used <= self._max_bytes:
                break
            if folder.name != newest:
                shutil.rmtree(folder, ignore_errors=True)
                used -= total
