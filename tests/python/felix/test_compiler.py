"""Compiled networks: results, structure, refusals, and the use of measured schedules."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import tvm
from tvm import auto_scheduler, felix, relax
from tvm.auto_scheduler.relax_integration import group_task
from tvm.felix import network as network_module
from tvm.felix.network import GraphOptions, Network

torch.manual_seed(0)
TARGET = tvm.target.Target("llvm")


@pytest.fixture(scope="module")
def mlp():
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8)).eval()


@pytest.fixture(scope="module")
def compiled(mlp):
    return felix.compile(mlp, (torch.randn(4, 12),))


def test_compiled_network_equals_torch(mlp, compiled):
    for x in (torch.randn(4, 12), torch.randn(12, 4).t(), torch.randn(4, 12, requires_grad=True)):
        torch.testing.assert_close(compiled(x), mlp(x).detach(), rtol=1e-4, atol=1e-5)


def test_results_have_the_structure_that_the_module_returns():
    class Pair(nn.Module):
        def forward(self, x, scale, *, bias):
            return {"sum": x + bias, "parts": [x * scale, x]}

    x, bias = torch.randn(3, 4), torch.randn(4)
    network = felix.compile(Pair(), (x, 2.0), example_kwargs={"bias": bias})
    result = network(x, 2.0, bias=bias)
    torch.testing.assert_close(result["sum"], x + bias)
    torch.testing.assert_close(result["parts"], [2 * x, x])
    with pytest.raises(ValueError, match="2.0 is part of the program, got 3.0"):
        network(x, 3.0, bias=bias)
    with pytest.raises(TypeError, match="takes 2 inputs and bias like the example, got 2 inputs"):
        network(x, 2.0)


def test_a_mapping_of_example_inputs_gives_them_by_name():
    class Named(nn.Module):
        def forward(self, x, *, scale):
            return x * scale

    inputs = {"x": torch.randn(3, 4), "scale": torch.tensor(2.0)}
    network = felix.compile(Named(), inputs)
    torch.testing.assert_close(network(**inputs), inputs["x"] * 2)
    with pytest.raises(TypeError, match="by name are given twice"):
        felix.compile(Named(), inputs, example_kwargs=inputs)


def test_copies_are_the_network_and_pickles_run_elsewhere(mlp, compiled, tmp_path):
    assert copy.copy(compiled) is copy.deepcopy(compiled) is compiled
    x = torch.randn(4, 12)
    (tmp_path / "network").write_bytes(pickle.dumps(compiled))
    code = (
        "import pathlib, pickle, sys, torch\n"
        "network = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "torch.save([network(torch.load(sys.argv[2])), repr(network)], sys.argv[3])\n"
    )
    torch.save(x, tmp_path / "x")
    paths = [str(tmp_path / name) for name in ("network", "x", "result")]
    subprocess.run([sys.executable, "-c", code, *paths], check=True)
    result, text = torch.load(tmp_path / "result")
    torch.testing.assert_close(result, mlp(x).detach(), rtol=1e-4, atol=1e-5)
    assert text == repr(compiled)


def test_weights_without_values_are_named(mlp):
    with torch.device("meta"):
        empty = nn.Linear(12, 4)
    with pytest.raises(ValueError, match="'weight' has no values, since it is on the meta device"):
        felix.compile(empty, torch.randn(1, 12))


def test_wrong_shape_and_type_are_refused_with_both(compiled):
    with pytest.raises(
        ValueError, match=r"float32 of shape \(4, 12\), got float32 of shape \(4, 11"
    ):
        compiled(torch.randn(4, 11))
    with pytest.raises(ValueError, match="must be float32 .* got float64"):
        compiled(torch.randn(4, 12, dtype=torch.float64))
    with pytest.raises(TypeError, match="expected a tensor, got int"):
        compiled(3)


def test_missing_record_file_is_refused(mlp, tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.json does not exist"):
        felix.compile(mlp, (torch.randn(4, 12),), records=tmp_path / "absent.json")


def test_task_seconds_names_every_task(mlp, compiled):
    mod = Network(mlp, (torch.randn(4, 12),)).mod
    keys = {str(group_task(g, TARGET).workload_key) for g in relax.extract_tasks(mod)}
    seconds = compiled.task_seconds(repeats=2)
    assert set(seconds) == keys
    assert min(seconds.values()) > 0


def tiled_state(task):
    """The matrix product in tiles, so that its weight is read in another order than it has."""
    state = task.compute_dag.get_init_state()
    (product,) = (op for op in state.stage_ops if op.name == "T_matmul_NT")
    i, j, k = state[product].iters
    i_outer, i_inner = state.split(product, i, [2])
    j_outer, j_inner = state.split(product, j, [4])
    k_outer, k_inner = state.split(product, k, [4])
    state.reorder(product, [i_outer, j_outer, k_outer, k_inner, i_inner, j_inner])
    return state


def test_winograd_networks_agree_with_torch_and_search_the_products_only():
    layers = [nn.Conv2d(64, 80, 3, padding=1), nn.ReLU(), nn.Conv2d(80, 64, 3), nn.BatchNorm2d(64)]
    model = nn.Sequential(*layers).eval()
    x = torch.randn(2, 64, 28, 25)
    tasks = felix.extract_tasks(model, (x,), winograd=True)
    descriptions = [str(i.ansor_task.desc) for task in tasks for i in task.instances]
    assert sorted(descriptions) == ["nn.winograd_product", "nn.winograd_product"]
    network = felix.compile(model, (x,), winograd=True)
    torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-3, atol=1e-4)


def test_compile_sees_from_the_records_whether_convolutions_were_taken_apart(tmp_path):
    model = nn.Conv2d(64, 64, 3, padding=1).eval()
    x = torch.randn(1, 64, 24, 24)
    records = tmp_path / "records.json"
    for winograd in (False, True):
        (task,) = felix.extract_tasks(model, (x,), winograd=winograd)
        (instance,) = task.instances
        program = auto_scheduler.MeasureInput(
            instance.ansor_task, instance.ansor_task.compute_dag.get_init_state()
        )
        result = auto_scheduler.MeasureResult([1.0], 0, "", 1.0, 0.0)
        records.unlink(missing_ok=True)
        auto_scheduler.save_records(str(records), [program], [result])
        network = felix.compile(model, (x,), records=records)
        names = [
            str(call["Name"]) for call in network.machine.profile("main", tvm.nd.array(x)).calls
        ]
        assert ("winograd_product" in names) == winograd
        torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-3, atol=1e-4)


def test_folder_of_a_run_knows_the_options_of_the_graph(tmp_path, monkeypatch):
    model = nn.Conv2d(64, 64, 3, padding=1).eval()
    x = torch.randn(1, 64, 24, 24)
    exports = []
    export = network_module.export_for_inference
    monkeypatch.setattr(
        network_module, "export_for_inference", lambda *a: exports.append(a) or export(*a)
    )
    for winograd in (True, False):
        felix.extract_tasks(model, (x,), save_to=tmp_path / "tasks.json", winograd=winograd)
        # No record says anything yet, so that only the tasks can.
        (tmp_path / "records.json").write_text("")
        exports.clear()
        network = felix.compile(model, (x,), records=tmp_path)
        assert len(exports) == 1
        names = [
            str(call["Name"]) for call in network.machine.profile("main", tvm.nd.array(x)).calls
        ]
        assert ("winograd_product" in names) == winograd
    # What is asked for explicitly goes before what was tuned.
    network = felix.compile(model, (x,), records=tmp_path, winograd=True)
    names = [str(c["Name"]) for c in network.machine.profile("main", tvm.nd.array(x)).calls]
    assert "winograd_product" in names


def test_network_is_imported_once_whatever_its_options(mlp):
    network = Network(mlp, (torch.randn(4, 12),))
    other = network.with_options(GraphOptions(winograd=True))
    assert other.program is network.program
    assert other.options.winograd and not network.options.winograd
    assert network.with_options(GraphOptions()) is network
    assert str(network.mod) == str(other.mod)  # it has no convolution


def test_other_products_than_the_networks_can_be_refused():
    def forms(winograd):
        target = tvm.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4")
        options = GraphOptions.for_target(target, winograd)
        return options.winograd, options.strassen

    assert forms(True) == (True, True)
    assert forms(None) == (True, True)
    assert forms(False) == (False, False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"format": 1,\n "tasks": [}', r"tasks\.json:2: column"),
        (
            '{"format": 1, "tasks": [], "graph": {"wino": true}}',
            r"tasks\.json: graph .*wino",
        ),
    ],
)
def test_damaged_tasks_beside_the_records_are_named(mlp, tmp_path, text, reason):
    (tmp_path / "records.json").write_text("")
    (tmp_path / "tasks.json").write_text(text)
    with pytest.raises(ValueError, match=reason):
        felix.compile(mlp, (torch.randn(4, 12),), records=tmp_path)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_recorded_schedules_give_the_same_results(tmp_path, batch_norm):
    layers = [nn.Linear(12, 32), *([nn.BatchNorm1d(32)] if batch_norm else []), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(32, 8)).eval()
    x = torch.randn(4, 12)
    mod = Network(model, (x,)).mod
    tasks = [group_task(group, TARGET) for group in relax.extract_tasks(mod)]
    records = tmp_path / "records.json"
    slow = auto_scheduler.MeasureResult([2.0], 0, "", 1.0, 0.0)
    fast = auto_scheduler.MeasureResult([1.0], 0, "", 1.0, 0.0)
    for task in tasks:
        plain = auto_scheduler.MeasureInput(task, task.compute_dag.get_init_state())
        tiled = auto_scheduler.MeasureInput(task, tiled_state(task))
        auto_scheduler.save_records(str(records), [plain, tiled], [slow, fast])
    network = felix.compile(model, (x,), records=records)
    torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_weights_that_are_inputs_keep_their_layout():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 16)))
    w = relax.Var("w", relax.TensorStructInfo((8, 16)))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.nn.dense(x, w))
        builder.emit_func_output(out)
    (group,) = relax.extract_tasks(builder.get())
    task = group_task(group, TARGET)
    assert task.layout_rewrite_option == auto_scheduler.LayoutRewriteOption.NO_REWRITE


def test_exported_network_runs_without_torch_modules(compiled, mlp, tmp_path):
    path = tmp_path / "mlp.so"
    compiled.executable.export_library(path)
    machine = relax.VirtualMachine(relax.load_executable(path))
    x = torch.randn(4, 12)
    result = machine["main"](tvm.nd.array(x.numpy()))
    np.testing.assert_allclose(result.numpy(), mlp(x).detach().numpy(), rtol=1e-4, atol=1e-5)
