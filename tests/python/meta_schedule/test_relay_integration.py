"""Relay networks as tasks, searched, and compiled with what was found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import meta_schedule as ms
from tvm import relax, relay
from tvm.contrib import graph_executor
from tvm.target import Target

TARGET = Target("llvm -num-cores=2")


@pytest.fixture
def network():
    """Two layers of one shape, and what they give for an input, by NumPy."""
    x = relay.var("x", shape=(8, 32))
    w, b = relay.var("w", shape=(32, 32)), relay.var("b", shape=(32,))
    layer = x
    for _ in range(2):
        layer = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(layer, w), b))
    mod = tvm.IRModule.from_expr(relay.Function([x, w, b], layer))
    rng = np.random.default_rng(0)
    params = {
        "w": rng.standard_normal((32, 32)).astype("float32"),
        "b": tvm.nd.array(rng.standard_normal(32).astype("float32")),
    }

    def answer(data):
        for _ in range(2):
            data = np.maximum(data @ params["w"].T + params["b"].numpy(), 0)
        return data

    return mod, params, answer


def test_layers_that_are_alike_are_one_fused_task(network):
    mod, params, _ = network
    for given in (params, None):
        (task,) = ms.relay_integration.extract_tasks(mod["main"], TARGET, given)
        assert task.weight == 2 and "relu" in task.task_name


def test_what_was_found_runs_in_both_executors(network, tmp_path: Path):
    mod, params, answer = network
    database = ms.relay_integration.tune_relay(
        mod,
        params,
        TARGET,
        str(tmp_path),
        4,
        num_trials_per_iter=4,
        strategy="replay-trace",
        seed=0,
    )
    assert len(database.get_all_tuning_records()) >= 4
    library = ms.relay_integration.compile_relay(database, mod, TARGET, params)
    path = str(tmp_path / "network.so")
    library.export_library(path)
    data = np.random.default_rng(1).standard_normal((8, 32)).astype("float32")
    for loaded in (library, tvm.runtime.load_module(path)):
        module = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
        module.run(x=data)
        np.testing.assert_allclose(module.get_output(0).numpy(), answer(data), rtol=1e-4, atol=1e-4)
    machine = relax.VirtualMachine(
        ms.relay_integration.compile_relay(database, mod, TARGET, params, backend="vm"), tvm.cpu()
    )
    result = machine["main"](tvm.nd.array(data)).numpy()
    np.testing.assert_allclose(result, answer(data), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match='"graph" or "vm"'):
        ms.relay_integration.compile_relay(database, mod, TARGET, params, backend="aot")


def test_a_build_takes_schedules_of_the_database_in_scope(network):
    mod, params, answer = network
    database = ms.database.MemoryDatabase()
    (task,) = ms.relay_integration.extract_tasks(mod, TARGET, params)
    workload = database.commit_workload(task.dispatched[0])
    schedule = tvm.tir.Schedule(task.dispatched[0])
    block = schedule.get_block("root")
    schedule.annotate(block, "chosen", 1)
    database.commit_tuning_record(
        ms.database.TuningRecord(schedule.trace, workload, [1e-3], TARGET, [])
    )
    asked = []
    found = database.query_tuning_record

    def query(*args):
        asked.append(args)
        return found(*args)

    database.query_tuning_record = query
    option = {"relay.backend.use_meta_schedule": True}
    with tvm.transform.PassContext(opt_level=3, config=option):
        assert ms.relay_integration.is_meta_schedule_enabled()
        with pytest.raises(ValueError, match="build inside of `with database:`"):
            relay.build(mod, TARGET, params=params)
        with database:
            library = relay.build(mod, TARGET, params=params)
    assert asked
    data = np.random.default_rng(1).standard_normal((8, 32)).astype("float32")
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    module.run(x=data)
    np.testing.assert_allclose(module.get_output(0).numpy(), answer(data), rtol=1e-4, atol=1e-4)
    assert not ms.relay_integration.is_meta_schedule_enabled()
