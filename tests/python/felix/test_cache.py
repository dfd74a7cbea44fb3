"""What this machine remembers: where, whose, and how much of it."""

from __future__ import annotations

import logging
import os
import platform

import pytest

import tvm
from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import RecordStore
from tvm.auto_scheduler.measure_record import careful_file
from tvm.felix import cache as cache_module
from tvm.felix.cache import KernelCache, NetworkCache, cache_folder, read_kernel_records

TARGET = tvm.target.Target("llvm")
OTHER_PROCESSOR = "nehalem" if platform.machine() == "x86_64" else "cortex-a53"


@pytest.fixture(autouse=True)
def warn_again():
    cache_module._warn_once.cache_clear()


@pytest.fixture
def task():
    a, b = te.placeholder((8, 16), name="a"), te.placeholder((4, 16), name="b")
    return auto_scheduler.SearchTask(compute_dag=[a, b, topi.nn.dense(a, b)], target=TARGET)


def record(path, task, *seconds, error_no=0):
    state = task.compute_dag.get_init_state()
    inputs = [auto_scheduler.MeasureInput(task, state) for _ in seconds]
    results = [auto_scheduler.MeasureResult([s], error_no, "", 1.0, 0.0) for s in seconds]
    auto_scheduler.save_records(str(path), inputs, results)
    return path


def test_the_folder_is_the_environments_or_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("TVM_FELIX_CACHE", str(tmp_path / "named"))
    assert cache_folder() == tmp_path / "named"
    for off in ("off", "", "0", "OFF"):
        monkeypatch.setenv("TVM_FELIX_CACHE", off)
        assert cache_folder() is None
        assert KernelCache.of_machine() is None
    monkeypatch.delenv("TVM_FELIX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "tvm" / "felix"
    assert cache_folder().stat().st_mode & 0o077 == 0


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, monkeypatch, caplog):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("TVM_FELIX_CACHE", str(tmp_path))
    logging.getLogger("tvm").propagate = True
    assert cache_folder() is None
    assert "other users may write to" in caplog.text


def test_the_best_record_of_a_kernel_is_kept_with_the_number_of_programs(tmp_path, task):
    cache = KernelCache(RecordStore(tmp_path / "records.db"))
    key = str(task.workload_key)
    assert cache.best(key, TARGET) is None
    assert cache.is_empty()
    assert cache.add(record(tmp_path / "one.json", task, 3.0, 2.0, 5.0)) == 3
    known = cache.best(key, TARGET)
    assert known.n_measured == 3
    assert auto_scheduler.load_record_from_string(known.line)[1].mean_cost == 2.0
    # A slower one changes nothing but the number of programs, a faster one takes its place.
    slow = record(tmp_path / "slow.json", task, 4.0, 6.0, 7.0)
    assert (cache.add(slow), cache.add(slow)) == (3, 0)
    assert cache.best(key, TARGET).n_measured == 6
    assert cache.add(record(tmp_path / "fast.json", task, 1.0)) == 1
    known = cache.best(key, TARGET)
    assert (known.n_measured, "[1.0]" in known.line) == (7, True)


def test_a_kernel_that_nothing_was_faster_for_keeps_the_librarys_schedule(tmp_path, task):
    cache = KernelCache(RecordStore(tmp_path / "records.db"))
    records = record(tmp_path / "records.json", task, 2.0, 3.0)
    candidate = auto_scheduler.LibraryCandidate(task)
    result = auto_scheduler.MeasureResult([1.5], 0, "", 1.0, 0.0)
    careful = careful_file(records)
    careful.write_text(candidate.record(result) + "\n")
    assert cache.add(records) == 3
    known = cache.best(str(task.workload_key), TARGET)
    assert (known.is_library, known.summary.seconds, known.n_measured) == (True, 1.5, 2)
    assert cache.add(record(tmp_path / "fast.json", task, 1.0)) == 1
    assert not cache.best(str(task.workload_key), TARGET).is_library


def test_failed_programs_are_no_answer(tmp_path, task):
    cache = KernelCache(RecordStore(tmp_path / "records.db"))
    assert cache.is_empty()
    assert cache.add(record(tmp_path / "failed.json", task, 1.0, error_no=2)) == 1
    assert cache.best(str(task.workload_key), TARGET) is None


def test_records_of_other_machines_do_not_serve(tmp_path, task):
    cache = KernelCache(RecordStore(tmp_path / "records.db"))
    file = record(tmp_path / "here.json", task, 1.0)
    here = TARGET.with_machine().mcpu
    file.write_text(file.read_text().replace(f"-mcpu={here}", f"-mcpu={OTHER_PROCESSOR}"))
    cache.add(file)
    assert cache.best(str(task.workload_key), TARGET) is None


def test_a_damaged_store_is_reported_once_and_passed_over(tmp_path, task, caplog):
    logging.getLogger("tvm").propagate = True
    (tmp_path / "records.db").write_bytes(b"no store" * 999)
    cache = KernelCache(RecordStore(tmp_path / "records.db"))
    assert cache.best(str(task.workload_key), TARGET) is None
    assert cache.best(str(task.workload_key), TARGET) is None
    assert caplog.text.count("cannot be used") == 1
    assert cache.add(record(tmp_path / "here.json", task, 1.0)) == 0
    assert "not remembered" in caplog.text


def test_a_plain_record_file_counts_one_program_each(tmp_path, task):
    found = read_kernel_records(record(tmp_path / "plain.json", task, 1.0, 2.0))
    assert [r.n_measured for r in found] == [1, 1]


def test_networks_that_were_used_longest_ago_make_room(tmp_path):
    cache = NetworkCache(tmp_path / "networks", max_bytes=250)

    def write(folder):
        (folder / "data").write_bytes(bytes(100))

    for number, key in enumerate(("a", "b")):
        cache.store(key, write)
        os.utime(tmp_path / "networks" / key, (number, number))
    assert cache.find("a") is not None  # used just now
    cache.store("c", write)
    assert cache.find("b") is None
    assert cache.find("a") is not None and cache.find("c") is not None
    assert sorted(p.name for p in (tmp_path / "networks").iterdir()) == ["a", "c"]


def test_a_network_that_cannot_be_written_is_reported(tmp_path, caplog):
    logging.getLogger("tvm").propagate = True
    (tmp_path / "networks").write_text("a file")
    NetworkCache(tmp_path / "networks").store("key", lambda folder: None)
    assert "compiled networks are not kept" in caplog.text
