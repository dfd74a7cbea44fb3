"""The command ``felix records``: what record files, runs and stores hold."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tvm.auto_scheduler.measure_record import any_record_lines, recorded_seconds
from tvm.auto_scheduler.record_store import RecordStore
from tvm.auto_scheduler.record_tools import query_records

from .cache import CACHE_VARIABLE, STORE_NAME, cache_folder
from .schedules import REMEMBERED

__all__ = ["run"]

# How every SQLite file begins.
_STORE_MAGIC = b"SQLite format 3\0"


def run(options: argparse.Namespace) -> None:
    """Do what the subcommand `options.action` says."""
    _ACTIONS[options.action](options)


def _list(options: argparse.Namespace) -> None:
    files = [path for given in options.sources for path in _record_files(given)]
    found = query_records(files, options.workload, options.target, only_valid=options.valid)
    for file, number, record in found[: options.count]:
        if options.json:
            print(json.dumps(record))
            continue
        (key, target, *_), _ = record["i"]
        seconds = recorded_seconds(*record["r"][:2])
        shown = _milliseconds(seconds if seconds < math.inf else None)
        print(f"{shown}  {file}:{number}  {target}  {key}")


def _best(options: argparse.Namespace) -> None:
    with _store_of(options.sources) as store:
        found = [
            (kernel, kernel.best)
            for kernel in store.kernels(options.workload, options.target, options.processor)
            if kernel.best is not None
        ]
    for kernel, best in found[: options.count]:
        if options.json:
            print(best.line)
        else:
            print(f"{_milliseconds(best.seconds)}  {kernel.target}  {kernel.workload}")


def _count(options: argparse.Namespace) -> None:
    with _store_of(options.sources) as store:
        kernels = store.kernels(options.workload, options.target, options.processor)
    for kernel in kernels:
        print(
            f"{kernel.n_measured:8d} measured {kernel.n_failed:6d} failed  "
            f"{kernel.processor or 'any processor'}  {kernel.workload}"
        )
    measured, failed = sum(k.n_measured for k in kernels), sum(k.n_failed for k in kernels)
    print(f"{measured:8d} measured {failed:6d} failed  of {len(kernels)} kernels")


def _prune(options: argparse.Namespace) -> None:
    store = RecordStore(options.store or _machine_store())
    _require_store(store.path)
    before = store.path.stat().st_size
    removed = store.prune(options.keep, options.workload, options.target, options.processor)
    store.close()
    print(
        f"{removed} records are left out of {store.path}, which has {store.path.stat().st_size} "
        f"bytes instead of {before}; that they were measured is still known"
    )


def _merge(options: argparse.Namespace) -> None:
    output: Path = options.output or _machine_store()
    if not options.sources and options.output is None:
        raise ValueError("name what to merge, or with -o where to")
    if output.is_dir() or not output.parent.is_dir():
        raise ValueError(f"{output}: name a file in a folder that exists")
    if output.suffix == ".json":
        with _store_of(options.sources) as store:
            keys = (options.workload, options.target, options.processor)
            print(f"{store.export_file(output, *keys)} records are in {output}")
        return
    if options.workload or options.target or options.processor:
        raise ValueError("--workload, --target and --processor choose what goes into a .json file")
    if output.exists():
        _require_store(output)
    with RecordStore(output) as store:
        added = _add(store, options.sources or [_machine_store()])
        print(f"{added} records are new in {output}")


_ACTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "list": _list,
    "best": _best,
    "count": _count,
    "prune": _prune,
    "merge": _merge,
}


def _milliseconds(seconds: float | None) -> str:
    return "      failed" if seconds is None else f"{seconds * 1e3:12.4f} ms"


def _machine_store() -> Path:
    folder = cache_folder()
    if folder is None:
        raise ValueError(f"nothing is remembered here: {CACHE_VARIABLE} says so; name a store")
    return folder / STORE_NAME


def _is_store(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_STORE_MAGIC)) == _STORE_MAGIC


def _require_store(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(2, "there is no such record store", str(path))
    if not _is_store(path):
        raise ValueError(f"{path} is no record store; `felix records merge` makes one of files")


@contextmanager
def _store_of(sources: Sequence[Path]) -> Iterator[RecordStore]:
    """What the sources hold, together; by default what this machine remembers."""
    with ExitStack() as stack:
        if not sources:
            path = _machine_store()
            print(f"what this machine remembers, in {path}:", file=sys.stderr)
            yield stack.enter_context(RecordStore(path))
        elif len(sources) == 1 and _is_store(sources[0]):
            yield stack.enter_context(RecordStore(sources[0]))
        else:
            folder = stack.enter_context(TemporaryDirectory(prefix="felix-records-"))
            store = stack.enter_context(RecordStore(Path(folder) / STORE_NAME))
            _add(store, sources)
            yield store


def _add(store: RecordStore, sources: Sequence[Path]) -> int:
    added = 0
    for source in sources:
        if _is_store(source):
            with RecordStore(source) as other:
                added += store.merge([other])
        else:
            for file in _record_files(source):
                new, refused = store.import_file(file)
                # What is left out of a good file is a warning; a file of which nothing is left is
                # another one than was meant.
                if refused and refused == sum(1 for _ in any_record_lines(file)):
                    raise ValueError(f"{file} holds no records")
                added += new
    return added


def _record_files(path: Path) -> list[Path]:
    """The record files that a path names; ValueError for one with lines, none of them whole."""
    found = [path]
    if path.is_dir():
        found = [path / name for name in ("records.json", REMEMBERED) if (path / name).exists()]
        if not found:
            raise FileNotFoundError(2, "holds no records", str(path))
    for file in found:
        if next(any_record_lines(file), None) is None and file.stat().st_size > 0:
            raise ValueError(f"{file} holds no whole record")
    return found
