"""Arrays that tasks are measured with, and tasks as text."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, te
from tvm.auto_scheduler import MeasureInput, MeasureResult, _ffi_api, search_task
from tvm.auto_scheduler.measure_record import dump_record_to_string, load_record_from_string


@auto_scheduler.register_workload("task_input_gather")
def gather(n):
    x = te.placeholder((n,), dtype="int32", name="X")
    index = te.placeholder((1,), dtype="int32", name="Index")
    return [x, index, te.compute((1,), lambda i: x[index[i]], name="Y")]


@pytest.fixture(autouse=True)
def _empty_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    search_task.TASK_INPUT_BUFFER_TABLE.clear()


def make_task(**inputs):
    return auto_scheduler.SearchTask(
        func="task_input_gather", args=(10,), target="llvm", task_inputs=inputs
    )


def test_names_of_inputs_travel_with_tasks_and_records():
    index = tvm.nd.array(np.array([5], "int32"))
    task = make_task(Index=index)
    assert [str(name) for name in task.task_input_names] == ["Index"]
    again = _ffi_api.DeserializeSearchTask(_ffi_api.SerializeSearchTask(task))
    assert again.workload_key == task.workload_key
    assert str(again.target) == str(task.target)
    assert [str(name) for name in again.task_input_names] == ["Index"]
    line = dump_record_to_string(
        MeasureInput(task, task.compute_dag.init_state), MeasureResult([0.1], 0, "", 0.2, 1)
    )
    recorded, _ = load_record_from_string(line)
    assert [str(name) for name in recorded.task.task_input_names] == ["Index"]
    # Records of version 0.5 end behind the layout option.
    old = json.loads(line)
    old["i"][0] = old["i"][0][:5]
    assert len(load_record_from_string(json.dumps(old))[0].task.task_input_names) == 0


def test_a_registered_array_stays_unless_it_is_to_be_replaced():
    first, second = np.array([1], "int32"), np.array([2], "int32")
    register = auto_scheduler.register_task_input_buffer
    register("key", "Index", first)
    assert register("key", "Index", second).numpy().tolist() == [1]
    assert register("key", "Index", second, overwrite=True).numpy().tolist() == [2]
    assert auto_scheduler.get_task_input_buffer("key", "Index").numpy().tolist() == [2]


def test_a_saved_array_is_found_by_a_later_run(tmp_path):
    data = np.arange(6, dtype="float32").reshape(2, 3)
    auto_scheduler.register_task_input_buffer("key", "weight", data, save_to_file=True)
    assert [path.name for path in tmp_path.iterdir()] == ["weight.2_3_float32.npy"]
    search_task.TASK_INPUT_BUFFER_TABLE.clear()
    found = auto_scheduler.get_task_input_buffer("key", "weight")
    np.testing.assert_array_equal(found.numpy(), data)


def test_a_missing_or_damaged_array_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"'weight' of key is not registered.*weight.<shape>"):
        auto_scheduler.get_task_input_buffer("key", "weight")
    (tmp_path / "weight.2_3_float32.npy").write_bytes(b"\x80\x04cos\nsystem\n.")
    with pytest.raises(ValueError, match="weight.2_3_float32.npy holds no array"):
        auto_scheduler.get_task_input_buffer("key", "weight")
    np.save(tmp_path / "weight.2_3_float32.npy", np.zeros((3, 2), "float32"))
    with pytest.raises(ValueError, match=r"shape \(3, 2\), its name says"):
        auto_scheduler.get_task_input_buffer("key", "weight")


def test_a_program_is_measured_with_the_array_of_its_task():
    # Any other index than this one reads outside of X, which random numbers would find.
    task = make_task(Index=tvm.nd.array(np.array([9], "int32")))
    candidate = MeasureInput(task, task.compute_dag.init_state)
    assert list(candidate.special_inputs()) == ["1"]
    builder, runner = auto_scheduler.LocalBuilder(n_parallel=1), auto_scheduler.LocalRunner()
    [program] = builder.build([candidate])
    [result] = runner.run([candidate], [program])
    assert int(result.error_no) == 0
    wrong = make_task(Nothing=tvm.nd.array(np.array([9], "int32")))
    [result] = runner.run([MeasureInput(wrong, wrong.compute_dag.init_state)], [program])
    assert int(result.error_no) == auto_scheduler.MeasureErrorNo.RUNTIME_DEVICE
    assert "'Nothing' is no input" in str(result.error_msg)
    builder.pool.close()
    runner.pool.close()


def test_a_key_means_the_tensors_that_were_registered_last():
    tasks = []
    for extent in (8, 16):
        a = te.placeholder((extent,), name="A")
        b = te.compute((extent,), lambda i, a=a: a[i] + 1.0, name="B")
        dag = auto_scheduler.ComputeDAG([a, b])
        tasks.append(
            auto_scheduler.SearchTask(compute_dag=dag, workload_key="same key", target="llvm")
        )
        candidate = MeasureInput(tasks[-1], dag.init_state)
        text = dump_record_to_string(candidate, MeasureResult([1.0], 0, None, 1, 1))
        read = load_record_from_string(text)[0].task.compute_dag
        assert [int(t.shape[0]) for t in read.tensors] == [extent, extent]


@pytest.mark.parametrize("text", ["", "[]", "{}", '["unknown"]', '["task_input_gather", 7]', "[["])
def test_text_that_is_no_task_is_refused(text):
    with pytest.raises(ValueError, match="search task"):
        _ffi_api.DeserializeSearchTask(text)
