"""The scripts that bring records of TenSet here and measure their programs again."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from tvm import auto_scheduler, felix, te, topi
from tvm.auto_scheduler import MeasureInput, MeasureResult
from tvm.auto_scheduler.utils import decode_workload_key
from tvm.felix.features import TorchFeatures
from tvm.felix.sym_task import choose_tasks


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "scripts"))
    return lambda name: importlib.import_module(name).main


def dense(n, m, k):
    a, b = te.placeholder((n, k), name="a"), te.placeholder((m, k), name="b")
    return [a, b, topi.nn.dense(a, b)]


def softmax(n):
    a = te.placeholder((n, n), name="a")
    return [a, topi.nn.softmax(a)]


@pytest.fixture(scope="module")
def tasks():
    built = [dense(8, 16, 32), dense(16, 8, 8), softmax(8)]
    return [felix.make_task(tensors, idx=idx) for idx, tensors in enumerate(built)]


def write_programs(folder, task, count):
    """Programs in the form of TenSet: extents of all shapes in a row, no time, another version."""
    sketch = task.task.sketches[0]
    features = TorchFeatures(sketch.fetch_features())
    points = features.config_maker.make(count, np.random.default_rng(0))
    ansor_task = task.task.ansor_task
    path = folder / "programs.json"
    states = [sketch.state_from_config(features.config(point)) for point in points]
    auto_scheduler.save_records(
        path,
        [MeasureInput(ansor_task, state) for state in states],
        [MeasureResult([1.0], 0, None, 0.0, 1.0) for _ in states],
    )
    _, shapes = decode_workload_key(str(ansor_task.workload_key))
    key = json.dumps(["0123456789abcdef", *(e for shape in shapes for e in shape)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for record in lines:
        record["i"][0][:2] = key, "llvm -keys=cpu -link-params=0 -mcpu=skylake-avx512 -model=e5"
        record["r"][0], record["v"] = [0], "v0.5"
    path.write_text("".join(json.dumps(record) + "\n" for record in lines))
    return len(lines)


def test_programs_of_tenset_are_brought_here_and_measured(tmp_path, tasks, script, capsys):
    foreign, mine = tmp_path / "to_measure_programs", tmp_path / "mine.json"
    foreign.mkdir()
    count = write_programs(foreign, tasks[0], 4)
    known = tmp_path / "tasks.json"
    felix.save_tasks(tasks, known)
    measure, patch = script("tenset_measure_programs"), script("patch_tenset_dataset")
    out = tmp_path / "measured.json"
    some = ["--tasks", str(known), "--operators", "Dense", "--n-tasks", "2", "--per-task", "2"]
    some += ["--min-repeat-ms", "1", "--repeat", "2", "-o", str(out)]
    # Keys of another version are those of no task.
    assert measure([str(foreign), *some]) == 1
    assert "until patch_records has brought them here" in capsys.readouterr().err
    assert patch([str(foreign), "--tasks", str(known), "-o", str(mine)]) == 0
    assert f"kept: {count}" in capsys.readouterr().out
    for expected in (2, 0):
        assert measure([str(mine), *some]) == 0
        assert f"Measured {expected} programs of 2 tasks" in capsys.readouterr().out
    results = [result for _, result in auto_scheduler.load_records(out)]
    assert len(results) == 2
    assert all(len(result.costs) == 2 and 0 < result.mean_cost < 1 for result in results)
    # A network's softmax is none of these records.
    assert (
        measure([str(mine), "--tasks", str(known), "--operators", "Softmax", "-o", str(out)]) == 1
    )
    assert measure([str(tmp_path / "no"), *some]) == 1
    assert "there is no record file" in capsys.readouterr().err


def test_tasks_are_chosen_by_their_operators(tasks):
    assert [i.idx for i in choose_tasks(tasks)] == [0, 1, 2]
    assert [i.idx for i in choose_tasks(tasks, ["Dense"])] == [0, 1]
    assert [i.idx for i in choose_tasks(tasks, ["Dense", "Softmax"], 1)][-1] == 2
    drawn = {tuple(i.idx for i in choose_tasks(tasks, ["Dense"], 1, seed)) for seed in range(8)}
    assert drawn == {(0,), (1,)}
    with pytest.raises(ValueError, match="no operator 'dense'; known are Conv"):
        choose_tasks(tasks, ["dense"])
    with pytest.raises(ValueError, match="per_operator must be >= 1, got 0"):
        choose_tasks(tasks, per_operator=0)
    assert repr(tasks[0].task) == "SymTask(Dense(n=8, m=16, k=32))"
