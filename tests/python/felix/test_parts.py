"""The parts of the gradient search, used one by one as a researcher would."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tvm
from tvm import auto_scheduler, felix, te, topi
from tvm.felix import ffi
from tvm.felix.ansor_tune import ansor_tune
from tvm.felix.cost_model import DatasetBuilder, MLPModelPLWrapper
from tvm.felix.features import LinearExpr, RandConfigMaker, TorchExprRunner, TorchFeatures
from tvm.felix.nn.dcgan import Generator
from tvm.felix.nn.llama import Llama
from tvm.felix.nn.vit import VisionTransformer
from tvm.felix.optim import ConfigInfo, SketchPerfFunc, TaskPerfFunc


@pytest.fixture(scope="module")
def task():
    a, b = te.placeholder((48, 64), name="a"), te.placeholder((32, 64), name="b")
    return felix.make_task([a, b, topi.nn.relu(topi.nn.dense(a, b))], desc="dense relu").task


@pytest.fixture(scope="module")
def function(task):
    made = TaskPerfFunc(task.sketches, task.get_flops(), "dense relu", MLPModelPLWrapper())
    made.perf_model.expect(made.feature_kind)
    made.perf_model.ensure_built(made.n_features)
    return made


def test_a_task_function_names_its_task(task, function):
    assert function.sym_task is task and function.ansor_task is task.ansor_task
    assert function.sizes == task.sizes and function.flops == task.get_flops()
    assert set(function.sketch_funcs) | set(function.skipped) == set(range(len(task.sketches)))


def test_features_and_constraints_have_finite_gradients(task):
    rng = np.random.default_rng(0)
    for sketch in task.sketches:
        features = TorchFeatures(sketch.fetch_features())
        assert isinstance(features.config_maker, RandConfigMaker)
        start = features.config_maker.make(8, rng)
        points = torch.from_numpy(start + rng.normal(0, 0.3, start.shape)).requires_grad_()
        rows, constraints = features(points)
        assert rows.shape == (len(points), features.pack.n_stores, features.pack.n_features)
        (gradient,) = torch.autograd.grad(rows.sum() + constraints.sum(), points)
        assert torch.isfinite(gradient).all() and (gradient != 0).any()
        np.testing.assert_allclose(features.rows(start), features(torch.from_numpy(start))[0])


def test_the_reference_runner_gives_the_features(task):
    features = TorchFeatures(task.sketches[0].fetch_features())
    points = torch.from_numpy(features.config_maker.make(4, np.random.default_rng(1)))
    roots = TorchExprRunner(features.pack.tape)(points)
    rows, _ = features(points)
    np.testing.assert_allclose(roots[:, : rows[0].numel()], rows.reshape(len(points), -1))


def test_the_cost_is_the_prediction_for_the_features(function):
    for each in function.sketch_funcs.values():
        assert isinstance(each, SketchPerfFunc)
        points = each.features.config_maker.make(5, np.random.default_rng(2))
        cost = each.cost_f(each.features(torch.from_numpy(points))[0])
        np.testing.assert_allclose(-cost.detach().numpy(), each.scores(points), rtol=1e-4)


def test_linear_constraints_are_their_weighted_sums(task):
    pack = task.sketches[0].fetch_features()
    values = {name: float(k + 1) for k, name in enumerate(pack.variables)}
    for linear in pack.linear_cons:
        assert isinstance(linear, LinearExpr)
        expr = tvm.get_global_func("felix.LinearExprAsPrimExpr")(linear)
        found = ffi.subst_by_name(expr, {name: int(value) for name, value in values.items()})
        assert float(found) == pytest.approx(linear.evaluate(values))


def test_configurations_are_measured_in_one_call(function):
    each = next(iter(function.sketch_funcs.values()))
    points = each.features.config_maker.make(2, np.random.default_rng(3))
    configs = [each.features.config(point) for point in points]
    inputs = each.make_measure_inputs(configs)
    assert [each.sketch.config_from_state(i.state) for i in inputs] == configs
    results = ffi.measure_performance(inputs)
    assert [int(result.error_no) for result in results] == [0] * len(configs)
    assert all(0 < result.mean_cost < 1 for result in results)
    assert (
        tvm.get_global_func("felix.MeasurePerformance")(auto_scheduler.ProgramMeasurer(), []) == []
    )


def test_native_functions_are_called_in_their_order(monkeypatch, tmp_path):
    called: list[str] = []
    names = (
        "GenerateAllSymSketches",
        "GenerateCodeForState",
        "ExtractBackbone",
        "PrintTrStep",
        "GetFeaturePack",
        "StateFromConfig",
    )
    for name in names:
        original = getattr(ffi._ffi_api, name)

        def watched(*args, name=name, original=original):
            called.append(name)
            return original(*args)

        monkeypatch.setattr(ffi._ffi_api, name, watched)
    model = torch.nn.Linear(16, 24).eval()
    tasks = felix.extract_tasks(model, (torch.randn(3, 16),))
    optimizer = felix.Optimizer(tasks, MLPModelPLWrapper(), against_library=False)
    optimizer.tune(2, n_config_seeds=4, n_grad_steps=2, measure_per_round=2, progress=False)
    assert tuple(dict.fromkeys(called)) == names
    data = optimizer.data_builder
    assert isinstance(data, DatasetBuilder)
    assert len(data.features) == len(data.labels) == len(data.conf_meta) == 2
    search = optimizer.tasks[0].search
    assert all(isinstance(info, ConfigInfo) for info in search.measured.values())


def test_networks_of_the_paper_have_modules_of_their_own():
    for network in (Generator, VisionTransformer, Llama):
        assert issubclass(network, torch.nn.Module)


def test_a_network_is_tuned_with_another_policy(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.ReLU()).eval()
    inputs = (torch.randn(4, 16),)
    result = ansor_tune(model, inputs, tmp_path, trials=4, per_round=2, policy="sketch.random")
    assert result.trials == 4 and result.estimated_seconds > 0
    assert len((tmp_path / "records.json").read_text().splitlines()) == 4
    torch.testing.assert_close(result.compiled(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="no kernel that is worth tuning"):
        ansor_tune(torch.nn.Flatten(), inputs, tmp_path / "nothing", trials=4)


def test_an_older_check_program_is_told_what_to_call():
    with pytest.raises(ModuleNotFoundError, match="extract_tasks_"):
        import tvm.felix.test_extract_task  # noqa: F401
