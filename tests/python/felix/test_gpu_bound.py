"""What bounds programs for GPUs: the device model, as a function of features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from testing_gpu import TARGET, perf_func, sym_task
from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.felix import make_task
from tvm.felix.gpu_bound import GpuBound, gpu_peak_flops
from tvm.felix.perf_func import TaskPerfFunc
from tvm.felix.task_model import Observation
from tvm.target import Target

BOUND = GpuBound(auto_scheduler.feature_names(TARGET, "felix"), Target(TARGET))


def product(n, m, k, dtype="float32"):
    a, b = te.placeholder((n, k), dtype, name="A"), te.placeholder((m, k), dtype, name="B")
    return [a, b, topi.nn.dense(a, b, out_dtype="float32")]


def searched(tensors, target=TARGET):
    """The task's sketches under a model that nothing was measured for."""
    task = make_task(tensors, target).task
    flop = float(task.ansor_task.compute_dag.flop_ct)
    return TaskPerfFunc(task.sketches, flop, "product", LatencyModel())


# One kernel with shared memory, one whose threads share a sum, two kernels.
@pytest.mark.parametrize("name", ["matmul", "softmax", "two_matmuls"])
def test_the_bound_of_features_is_the_device_model_of_the_program(name):
    task = sym_task(name)
    tried = 0
    for sketch in task.sketches:
        function = perf_func(name, sketch.index)
        points = function.features.config_maker.make(2, np.random.default_rng(3))
        if not len(points):
            continue
        log_cycles, coordinates = BOUND.describe(torch.from_numpy(function.features.rows(points)))
        assert coordinates.isfinite().all()
        for point, found in zip(points, log_cycles.exp().tolist()):
            state = sketch.state_from_config(function.features.config(point))
            schedule, args = task.ansor_task.compute_dag.apply_steps_from_state(state)
            expected = auto_scheduler.modeled_seconds(schedule, args, Target(TARGET))
            assert BOUND.seconds(found) == pytest.approx(expected, rel=1e-3)
            tried += 1
    assert tried >= 2


def test_descent_follows_the_bound():
    function = perf_func("matmul", 0)
    points = function.features.config_maker.make(8, np.random.default_rng(0))
    x = torch.from_numpy(points).requires_grad_()
    log_cycles, _ = BOUND.describe(function.features(x)[0])
    (gradient,) = torch.autograd.grad(log_cycles.sum(), x)
    assert gradient.isfinite().all() and (gradient.abs().amax(1) > 0).all()
    moved = torch.from_numpy(points) - 1e-4 * gradient
    lower, _ = BOUND.describe(function.features(moved)[0])
    assert (lower < log_cycles).float().mean() > 0.7


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_nothing_is_predicted_to_be_faster_than_the_data_sheet_says(dtype):
    functions = searched(product(512, 512, 512, dtype))
    assert len(functions.sketch_funcs) == (1 if dtype == "float32" else 3)
    peak = gpu_peak_flops(Target(TARGET), None if dtype == "float32" else 2)
    # An A100 does 19.5 TFLOP/s in float32, and 312 on its tensor cores.
    assert peak == pytest.approx(19.5e12 if dtype == "float32" else 312e12, rel=0.01)
    for function in functions.sketch_funcs.values():
        points = function.features.config_maker.make(16, np.random.default_rng(0))
        rows = function.features.rows(points)
        # Whatever was measured before, and however far from it.
        functions.model.fit([Observation(function.sketch.index, rows[0], np.log(peak / 1e9) + 2)])
        means, deviations = function.beliefs(points)
        assert (means <= np.log(peak / 1e9)).all()
        assert deviations[0] < deviations.max()


def test_a_gpu_without_a_data_sheet_may_be_faster_than_any_known():
    functions = searched(product(64, 64, 64), "opencl")
    [function] = functions.sketch_funcs.values()
    points = function.features.config_maker.make(8, np.random.default_rng(0))
    measured = np.log(gpu_peak_flops(Target(TARGET), None) / 1e9) + 1
    row = function.features.rows(points[:1])[0]
    functions.model.fit([Observation(function.sketch.index, row, measured)])
    assert function.scores(points[:1])[0] == pytest.approx(measured, abs=0.1)


def test_the_first_programs_are_good_before_anything_was_learned():
    functions = searched(product(512, 512, 512))
    [function] = functions.sketch_funcs.values()
    rng = np.random.default_rng(0)
    points = function.features.config_maker.make(64, rng)
    log_cycles, _ = BOUND.describe(torch.from_numpy(function.features.rows(points)))
    order = np.argsort(-function.scores(points), kind="stable")
    np.testing.assert_array_equal(order, np.argsort(log_cycles.numpy(), kind="stable"))
