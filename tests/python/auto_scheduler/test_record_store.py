"""A store of records: what it keeps, whoever writes to it and however often."""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3

import pytest

from tvm import auto_scheduler
from tvm.auto_scheduler import LibraryCandidate, MeasureInput, MeasureResult, RecordStore
from tvm.auto_scheduler.measure_record import careful_file
from tvm.target import Target

HERE = Target("llvm -mcpu=znver3 -num-cores=4")
ELSEWHERE = Target("llvm -mcpu=haswell -num-cores=4")


@pytest.fixture
def task():
    return auto_scheduler.SearchTask(func="test_matmul", args=(8, 8, 8), target=HERE)


def line(task, tile, seconds, error_no=0):
    state = task.compute_dag.get_init_state()
    stage = len(state.stages) - 1
    state.split(stage, state[stage].iters[0], [tile])
    return MeasureInput(task, state).record(MeasureResult([seconds], error_no, "", 1, 1))


def library(task, seconds):
    return LibraryCandidate(task).record(MeasureResult([seconds], 0, None, 1, 1))


def on(target, text):
    """The same record of another machine."""
    record = json.loads(text)
    record["i"][0][1] = str(target.with_machine())
    return json.dumps(record)


def test_each_record_is_there_once_and_the_fastest_is_the_answer(tmp_path, task):
    store = RecordStore(tmp_path / "records.db")
    key = str(task.workload_key)
    assert store.best(key, HERE) is None and store.kernels() == [] and not store.exists()
    lines = [line(task, 2, 3.0), line(task, 4, 1.0), line(task, 8, 0.1, error_no=4)]
    assert store.add(lines) == 3
    assert store.add(lines) == 0
    best = store.best(key, HERE)
    assert (best.line, best.seconds, best.n_measured) == (lines[1], 1.0, 3)
    [kernel] = store.kernels()
    assert (kernel.processor, kernel.n_measured, kernel.n_failed) == ("znver3", 3, 1)
    assert store.best("[]", HERE) is None


def test_records_belong_to_machines(tmp_path, task):
    store = RecordStore(tmp_path / "records.db")
    store.add([line(task, 2, 3.0), on(ELSEWHERE, line(task, 4, 1.0))])
    assert store.best(str(task.workload_key), HERE).seconds == 3.0
    assert store.best(str(task.workload_key), ELSEWHERE).seconds == 1.0
    assert [k.processor for k in store.kernels()] == ["znver3", "haswell"]
    assert [k.processor for k in store.kernels(processor="hasw")] == ["haswell"]
    assert store.kernels(workload="no such") == []


def test_careful_measurements_count_in_place_of_the_first(tmp_path, task):
    store = RecordStore(tmp_path / "records.db")
    store.add([line(task, 2, 2.0), line(task, 4, 1.0)])
    store.add([line(task, 4, 2.5), library(task, 2.2)], careful=True)
    best = store.best(str(task.workload_key), HERE)
    assert (best.seconds, best.n_measured) == (2.0, 2)
    store.add([line(task, 2, 2.4)], careful=True)
    assert json.loads(store.best(str(task.workload_key), HERE).line)["origin"] == "library"


def test_files_come_in_and_go_out(tmp_path, task, caplog):
    source = tmp_path / "records.json"
    lines = [line(task, 2, 2.0), line(task, 4, 1.0)]
    damaged = ["[]", '{"i": 3}', "not whole", line(task, 8, 1.0).replace("[1.0]", "[-1.0]")]
    source.write_text("\n".join([*lines, *damaged]) + "\n")
    careful_file(source).write_text(library(task, 1.5) + "\n")
    store = RecordStore(tmp_path / "records.db")
    assert store.import_file(source) == (3, 3)
    for number in (3, 4, 5, 6):
        assert f"{source}:{number}" in caplog.text
    assert store.import_file(source) == (0, 3)
    again = tmp_path / "again.json"
    assert store.export_file(again) == 3
    assert again.read_text().splitlines() == lines
    assert careful_file(again).read_text() == careful_file(source).read_text()
    assert store.export_file(again, processor="haswell") == 0
    other = RecordStore(tmp_path / "other.db")
    assert other.import_file(again) == (1, 0)  # the careful file of before is still beside it
    assert other.merge([store]) == 2
    assert other.n_records() == 3
    with pytest.raises(FileNotFoundError, match="no such record store"):
        other.merge([RecordStore(tmp_path / "none.db")])


def test_what_was_pruned_is_known_to_have_been_measured(tmp_path, task):
    store = RecordStore(tmp_path / "records.db")
    lines = [line(task, tile, seconds) for tile, seconds in ((1, 3.0), (2, 1.0), (4, 2.0))]
    store.add([*lines, line(task, 8, 1.0, error_no=2)])
    store.add([library(task, 9.0)], careful=True)
    assert store.prune(1) == 3
    assert store.best(str(task.workload_key), HERE).line == lines[1]
    assert store.best(str(task.workload_key), HERE).n_measured == 4
    assert store.add(lines) == 0
    assert store.export_file(tmp_path / "out.json") == 2
    with pytest.raises(ValueError, match="keep must be >= 1, got 0"):
        store.prune(0)


def _add_many(path, lines, start):
    store = RecordStore(path)
    start.wait(60)
    for text in lines:
        store.add([text])
    store.close()
    os._exit(0)  # nothing of the test's process is torn down


def test_processes_that_write_at_once_lose_and_double_nothing(tmp_path, task):
    # Forked while the store is open; half of what each process adds the others add too.
    path = tmp_path / "records.db"
    store = RecordStore(path)
    store.add([line(task, 8, 99.0)])
    shared = [line(task, 2, 1.0 + i) for i in range(20)]
    own = [[line(task, 4, 100.0 * p + i) for i in range(1, 21)] for p in range(4)]
    context = multiprocessing.get_context("fork")
    start = context.Event()
    processes = [
        context.Process(target=_add_many, args=(path, [*shared, *mine], start)) for mine in own
    ]
    for process in processes:
        process.start()
    start.set()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert store.n_records() == 1 + 20 + 4 * 20
    assert store.export_file(tmp_path / "out.json") == 101
    assert len(set((tmp_path / "out.json").read_text().splitlines())) == 101


def test_a_callback_adds_results_as_they_come(tmp_path, task):
    class Runner(auto_scheduler.ProgramRunner):
        def run(self, candidates, programs, best_seconds, references, on_result):
            results = [MeasureResult([1.0 + i], 0, "", 1, 1) for i in range(len(candidates))]
            for i, result in enumerate(results):
                on_result(i, result)
            return results

    class Builder(auto_scheduler.ProgramBuilder):
        def build(self, candidates, unscheduled=False):
            return [auto_scheduler.BuildResult(None, [], 0, None, 0.0, b"") for _ in candidates]

    path = tmp_path / "records.db"
    callback = auto_scheduler.RecordToStore(path)
    measurer = auto_scheduler.ProgramMeasurer(Builder(), Runner(), [callback])
    state = task.compute_dag.get_init_state()
    measurer.measure([MeasureInput(task, state), MeasureInput(task, state)])
    assert RecordStore(path).n_records() == 2


def test_files_that_are_no_store_are_named(tmp_path, task):
    path = tmp_path / "records.db"
    path.write_bytes(b"something else entirely" * 100)
    with pytest.raises(ValueError, match=r"records\.db: no record store"):
        RecordStore(path).add([line(task, 2, 1.0)])
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ValueError, match="version 99; this one knows 1"):
        RecordStore(path).kernels()
    with pytest.raises(OSError, match=r"none/records\.db"):
        RecordStore(tmp_path / "none" / "records.db").add([line(task, 2, 1.0)])
    store = RecordStore(tmp_path / "new.db")
    for damaged in ("[]", '{"i": 1}', line(task, 2, -1.0)):
        with pytest.raises((ValueError, TypeError, KeyError)):
            store.add([line(task, 2, 1.0), damaged])
    assert store.n_records() == 0
