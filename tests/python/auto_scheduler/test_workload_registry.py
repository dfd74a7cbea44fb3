"""Workload keys and the registry behind them."""

from __future__ import annotations

import json
import os
import pickle

import pytest

from tvm import auto_scheduler, ir, te
from tvm.auto_scheduler import workload_registry


def test_key_lists_the_function_name_and_its_arguments():
    key = auto_scheduler.make_workload_key("test_matmul", (128, 64, 32))
    assert json.loads(key) == ["test_matmul", 128, 64, 32]


def test_key_leads_back_to_the_tensors():
    key = auto_scheduler.make_workload_key("test_matmul", (4, 5, 6))
    tensors = auto_scheduler.workload_key_to_tensors(key)
    assert [[int(s) for s in t.shape] for t in tensors] == [[4, 6], [6, 5], [4, 5]]


def test_tensor_arguments_travel_as_shape_and_dtype():
    args = (te.placeholder((2, 3), dtype="float32"), (1, 2), "same")
    stored = auto_scheduler.utils.serialize_args(args)
    tensor, sizes, mode = auto_scheduler.utils.deserialize_args(json.loads(json.dumps(stored)))
    assert [int(s) for s in tensor.shape] == [2, 3]
    assert (sizes, mode) == ([1, 2], "same")


def test_registering_a_name_twice_needs_override():
    def workload_twice():
        return []

    auto_scheduler.register_workload(workload_twice)
    with pytest.raises(RuntimeError, match="workload_twice.*registered already"):
        auto_scheduler.register_workload(workload_twice)
    assert auto_scheduler.register_workload(workload_twice, override=True) is workload_twice


def test_functions_of_one_name_in_two_places_are_two_workloads():
    def places(size):
        def inner():
            return [te.compute((size,), lambda i: i)]

        return inner

    def elsewhere():
        def inner():
            return [te.compute((3,), lambda i: i)]

        return inner

    first, second = map(auto_scheduler.register_workload, (places(2), elsewhere()))
    keys = [auto_scheduler.make_workload_key(f, ()) for f in (first, second)]
    shapes = [int(auto_scheduler.ComputeDAG(key).tensors[0].shape[0]) for key in keys]
    assert shapes == [2, 3]


@pytest.mark.parametrize(
    ("func", "message"), [("no_such_workload", "is not registered"), (3, "expected a function")]
)
def test_key_of_an_unknown_function_is_refused(func, message):
    with pytest.raises(ValueError, match=message):
        auto_scheduler.make_workload_key(func, ())


def test_register_workload_refuses_a_name_that_is_no_string():
    with pytest.raises(ValueError, match="name must be a string, got int"):
        auto_scheduler.register_workload(5, list)


def test_unregistered_key_is_refused():
    with pytest.raises(ValueError, match="unknown in this process"):
        auto_scheduler.workload_key_to_tensors('["no_such_workload", 1]')


def test_entry_of_tensors_survives_pickling_into_an_empty_registry():
    dag = auto_scheduler.ComputeDAG(
        auto_scheduler.workload_key_to_tensors('["test_matmul", 4, 5, 6]')
    )
    key = dag.workload_key()
    auto_scheduler.register_workload_tensors(key, dag.tensors)
    data = pickle.dumps(workload_registry.serialize_workload_registry_entry(key))
    del workload_registry.WORKLOAD_FUNC_REGISTRY[key]
    workload_registry.deserialize_workload_registry_entry(pickle.loads(data))
    assert auto_scheduler.ComputeDAG(key).workload_key() == key


class _Executes:
    def __reduce__(self):
        return os.mkdir, ("executed",)


@auto_scheduler.register_workload("test_kept_in_a_file")
def kept_in_a_file(n):
    a = te.placeholder((n,), name="A")
    return [a, te.compute((n,), lambda i: a[i] + 1, name="B")]


def test_a_registry_of_a_file_replaces_the_one_that_is_there(tmp_path, monkeypatch):
    table = {"test_kept_in_a_file": kept_in_a_file, '["key"]': kept_in_a_file(4)}
    monkeypatch.setattr(workload_registry, "WORKLOAD_FUNC_REGISTRY", table)
    file = tmp_path / "registry.pkl"
    workload_registry.save_workload_func_registry(file)
    table.clear()
    table["another"] = kept_in_a_file
    workload_registry.load_workload_func_registry(file)
    assert list(table) == ["test_kept_in_a_file", '["key"]']
    assert table["test_kept_in_a_file"] is kept_in_a_file
    assert ir.structural_equal(
        te.create_prim_func(table['["key"]']), te.create_prim_func(kept_in_a_file(4))
    )
    table["local"] = lambda n: kept_in_a_file(n)
    with pytest.raises(ValueError, match="save_workload_func_registry: Can't .*lambda"):
        workload_registry.save_workload_func_registry(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no file of save_workload_func_registry"),
        (b"garbage", "is no file of save_workload_func_registry"),
        (pickle.dumps(3), "is no file of save_workload_func_registry"),
        (pickle.dumps(_Executes()), "is no file of save_workload_func_registry"),
        (pickle.dumps([("f", os.mkdir)]), "'f' is posix.mkdir, no function that was registered"),
        (pickle.dumps([("f", 3)]), "'f' is 3, no function that was registered"),
    ],
)
def test_a_file_that_is_no_registry_is_refused(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    before = dict(workload_registry.WORKLOAD_FUNC_REGISTRY)
    file = tmp_path / "registry.pkl"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        workload_registry.load_workload_func_registry(file)
    assert before == workload_registry.WORKLOAD_FUNC_REGISTRY
    assert not (tmp_path / "executed").exists()
