"""Distances of workloads, and tools that query, distil, convert and measure records again."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm import auto_scheduler, te
from tvm.auto_scheduler import MeasureInput, MeasureResult
from tvm.auto_scheduler.feature import get_per_store_features_from_file
from tvm.auto_scheduler.record_tools import patch_records, query_records, remeasure_records
from tvm.auto_scheduler.utils import calc_workload_dis_factor, decode_workload_key


def task_of(n, key=None):
    a = te.placeholder((n, n), name="A")
    b = te.compute((n, n), lambda i, j: a[i, j] * 2.0, name="B")
    return auto_scheduler.SearchTask(compute_dag=[a, b], workload_key=key, target="llvm")


def candidates(task, tiles):
    found = []
    for tile in tiles:
        s = task.compute_dag.get_init_state()
        s.split(1, s[1].iters[0], [tile])
        found.append(MeasureInput(task, s))
    return found


def save(path, task, costs):
    inputs = candidates(task, [2**i for i in range(len(costs))])
    results = [
        MeasureResult([1e10], 4, "crash", 1, 1)
        if cost is None
        else MeasureResult([cost], 0, None, 1, 1)
        for cost in costs
    ]
    auto_scheduler.save_records(path, inputs, results)


@pytest.mark.parametrize(
    ("wanted", "found", "factor"),
    [
        (["f", [8, 3], [0, 0], "float32"], ["f", [8, 3], [0, 0], "float32"], 1),
        (["f", [8, 3], [0, 0], "float32"], ["f", [1, 3], [0, 0], "float32"], 8),
        (["f", [8, 3], [0, 0], "float32"], ["f", [8, 3], [1, 1], "float32"], math.inf),
        (["f", [8, 3], [1, 1], "float32"], ["f", [8, 3], [0, 0], "float32"], math.inf),
        (["f", [8, 3], [0, 0], "float32"], ["f", [8, 3], [0, 0], "int8"], math.inf),
        (["f", [8, 3]], ["g", [8, 3]], math.inf),
        (["f", [8, 3]], ["f", [5, 3]], math.inf),
    ],
)
def test_how_far_workloads_are_apart(wanted, found, factor):
    pair = [decode_workload_key(json.dumps(key)) for key in (wanted, found)]
    assert calc_workload_dis_factor(*pair) == factor


@given(st.text())
def test_any_text_is_a_workload_key(text):
    name, arguments = decode_workload_key(text)
    assert isinstance(name, str)
    assert isinstance(arguments, list)


def test_the_fastest_records_come_first(tmp_path):
    log = tmp_path / "records.json"
    save(log, task_of(16), [3e-3, 1e-3, None])
    found = query_records([log], only_valid=True)
    assert [(number, record["r"][0]) for _, number, record in found] == [(2, [1e-3]), (1, [3e-3])]
    assert len(query_records([log])) == 3
    assert query_records([log], workload="no such") == []
    log.write_text('{"i": 3}\n')
    with pytest.raises(ValueError, match=r"records.json:1: .*expected an object"):
        query_records([log])


def test_distilling_keeps_the_best_of_each_workload(tmp_path):
    log = tmp_path / "records.json"
    save(log, task_of(16), [3e-3, 1e-3, None])
    save(log, task_of(32), [5e-3])
    command = [sys.executable, "-m", "tvm.auto_scheduler.measure_record", "--mode", "distill"]
    done = subprocess.run([*command, "-i", str(log)], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    best = list(auto_scheduler.load_records(tmp_path / "records.best.json"))
    assert sorted(result.mean_cost for _, result in best) == [1e-3, 5e-3]
    done = subprocess.run([*command, "-i", str(tmp_path / "none")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "error" in done.stderr


def test_a_model_needs_programs_of_one_task_to_be_tested_with(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "scripts"))
    monkeypatch.chdir(tmp_path)  # data sets are kept in the current folder
    train = importlib.import_module("train_cost_model").main
    log, model = tmp_path / "records.json", tmp_path / "model.xgb"
    for n in (16, 32):
        save(log, task_of(n), [3e-3, 1e-3, 2e-3, 5e-3])
    command = ["train_ansor", "-l", str(log), "-o", str(model), "--min-programs", "2"]
    assert train([*command, "--split", "within_task", "--train-ratio", "0.75"]) == 1
    assert "into 6 to train and 2 to test" in capsys.readouterr().err
    assert not model.exists()
    assert train([*command, "--split", "within_task", "--train-ratio", "0.5"]) == 0
    printed = capsys.readouterr().out
    assert "4 programs to train, 4 to test" in printed
    assert "nan" not in printed
    auto_scheduler.XGBModel(model_file=str(model))


@pytest.mark.parametrize("in_a_row", [list, lambda shapes: [e for shape in shapes for e in shape]])
def test_foreign_records_are_taken_by_shapes_and_steps(tmp_path, in_a_row):
    """Keys have a list for each shape, or as in TenSet all extents in a row."""
    task = task_of(16)
    log, out = tmp_path / "foreign.json", tmp_path / "ours.json"
    save(log, task, [3e-3, 1e-3])
    _, shapes = decode_workload_key(str(task.workload_key))
    foreign = json.dumps(["0123456789abcdef", *in_a_row(shapes)])
    text = log.read_text().replace(json.dumps(str(task.workload_key)), json.dumps(foreign))
    strange = json.loads(text.splitlines()[0])
    strange["i"][1][1] = [["SP", 7, 0, 16, [2], 1]]
    elsewhere = text.splitlines()[1].replace("16", "9")
    log.write_text(f"{text}{json.dumps(strange)}\n{elsewhere}\n")
    counts = patch_records(log, out, [task_of(32), task])
    assert counts == {"kept": 2, "other structure": 1, "unknown workload": 1}
    records = list(auto_scheduler.load_records(out))
    assert [result.mean_cost for _, result in records] == [3e-3, 1e-3]
    again = tmp_path / "again.json"
    auto_scheduler.save_records(again, *map(list, zip(*records)))
    assert again.read_text() == out.read_text()
    before = out.read_text()
    assert patch_records(out, out, [task]) == {"kept": 2}
    assert out.read_text() == before
    assert patch_records([log, out], out, [task]) == {
        "kept": 4,
        "other structure": 1,
        "unknown workload": 1,
    }
    before = out.read_text()
    log.write_text("[1, 2]\n")
    with pytest.raises(ValueError, match="foreign.json:1: .*expected an object"):
        patch_records(log, out, [task])
    assert out.read_text() == before


def test_programs_are_measured_again_once(tmp_path):
    task = task_of(16)
    log, out = tmp_path / "records.json", tmp_path / "again.json"
    save(log, task, [3.0, 4.0])
    measurer = auto_scheduler.ProgramMeasurer(
        auto_scheduler.LocalBuilder(n_parallel=1), auto_scheduler.LocalRunner(min_repeat_ms=1)
    )
    assert remeasure_records(log, out, "llvm", measurer, limit=1) == 1
    assert remeasure_records(log, out, "llvm", measurer) == 1
    assert remeasure_records(log, out, "llvm", measurer) == 0
    with pytest.raises(ValueError, match="limit must be >= 1, got -1"):
        remeasure_records(log, out, "llvm", measurer, limit=-1)
    measurer.close()
    results = [result for _, result in auto_scheduler.load_records(out)]
    assert [int(result.error_no) for result in results] == [0, 0]
    assert all(result.mean_cost < 1.0 for result in results)


def test_some_programs_of_some_tasks_are_drawn(tmp_path):
    tasks = [task_of(16), task_of(32)]
    logs = [tmp_path / "a.json", tmp_path / "b.json"]
    for log, task in zip(logs, tasks):
        save(log, task, [3.0, 4.0, 5.0])
    measurer = auto_scheduler.ProgramMeasurer(
        auto_scheduler.LocalBuilder(n_parallel=1), auto_scheduler.LocalRunner(min_repeat_ms=1)
    )

    def drawn(seed):
        out = tmp_path / f"{seed}.json"
        count = remeasure_records(logs, out, "llvm", measurer, per_task=2, seed=seed)
        again = remeasure_records(logs, out, "llvm", measurer, per_task=2, seed=seed)
        assert (count, again) == (4, 0)
        records = list(auto_scheduler.load_records(out))
        keys = [str(i.task.workload_key) for i, _ in records]
        assert [keys.count(str(task.workload_key)) for task in tasks] == [2, 2]
        return [str(i.state) for i, _ in records]

    first = drawn(0)
    (tmp_path / "0.json").unlink()
    assert drawn(0) == first
    out = tmp_path / "one.json"
    key = str(tasks[1].workload_key)
    assert remeasure_records(logs, out, "llvm", measurer, workloads={key}) == 3
    with pytest.raises(ValueError, match=r"no record in .*a.json, .*b.json is of the 1 workloads"):
        remeasure_records(logs, out, "llvm", measurer, workloads={"another"})
    with pytest.raises(ValueError, match="per_task must be >= 1, got 0"):
        remeasure_records(logs, out, "llvm", measurer, per_task=0)
    measurer.close()


def test_a_program_is_recorded_as_soon_as_it_is_measured(tmp_path):
    task = task_of(16)
    log, out = tmp_path / "records.json", tmp_path / "again.json"
    save(log, task, [3.0, 4.0])

    def interrupted(policy, inputs, results):
        raise KeyboardInterrupt

    measurer = auto_scheduler.ProgramMeasurer(
        auto_scheduler.LocalBuilder(n_parallel=1),
        auto_scheduler.LocalRunner(min_repeat_ms=1),
        [interrupted],
    )
    with pytest.raises(KeyboardInterrupt):
        remeasure_records(log, out, "llvm", measurer)
    assert len(list(auto_scheduler.load_records(out))) == 2
    measurer.close()


def test_programs_that_are_only_there_to_be_measured_are_never_the_best(tmp_path):
    task = task_of(16)
    log, out, again = (tmp_path / f"{name}.json" for name in ("to_measure", "out", "again"))
    save(log, task, [0.0, 0.0])
    records = list(auto_scheduler.load_records(log))
    assert [list(map(float, result.costs)) for _, result in records] == [[0.0], [0.0]]
    assert all(result.mean_cost == 1e10 for _, result in records)
    auto_scheduler.save_records(again, *map(list, zip(*records)))
    assert again.read_text() == log.read_text()
    assert auto_scheduler.load_best_record(str(log), task.workload_key) == (None, None)
    with auto_scheduler.ApplyHistoryBest(log) as context:
        assert context.query(task.target, str(task.workload_key)) is None
    _, throughputs, _ = get_per_store_features_from_file(str(log), 2)
    assert list(throughputs) == [0.0, 0.0]
    measurer = auto_scheduler.ProgramMeasurer(
        auto_scheduler.LocalBuilder(n_parallel=1), auto_scheduler.LocalRunner(min_repeat_ms=1)
    )
    assert remeasure_records(log, out, "llvm", measurer) == 2
    measurer.close()
    assert auto_scheduler.load_best_record(str(out), task.workload_key)[1].mean_cost < 1.0


def test_tuning_a_task_prints_its_best_record(tmp_path):
    task = task_of(16)
    log = tmp_path / "records.json"
    save(log, task, [3e-3, 1e-3])
    assert "s[B].split(B_i, factor=2)" in task.print_best(str(log))
    with pytest.raises(ValueError, match="known are schedule, cuda"):
        task.print_best(str(log), print_mode="opencl")
    with pytest.raises(RuntimeError, match="no valid record"):
        task_of(64).print_best(str(log))


def test_a_recovered_input_is_the_same_program():
    task = task_of(16)
    [candidate] = candidates(task, [4])
    again = auto_scheduler.measure.recover_measure_input(candidate, rebuild_state=True)
    assert str(again.state) == str(task.compute_dag.infer_bound_from_state(candidate.state))
    assert str(again.task.compute_dag) == str(task.compute_dag)
