"""What is believed of programs before and after measuring, and the points that come first."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tvm import te, topi
from tvm.auto_scheduler.cost_model.dataset import ConfigMeta
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix.canonical import KnobRole, canonical_configs, knob_roles
from tvm.felix.peak import peak_flops
from tvm.felix.perf_func import TaskPerfFunc
from tvm.felix.sym_task import make_task
from tvm.felix.task_model import Observation, network_share
from tvm.target import Target

TARGET = "llvm -mcpu=skylake-avx512 -mtriple=x86_64-unknown-linux-gnu -num-cores=2"
LANES, REGISTERS = 16, 32


def convolution() -> list[te.Tensor]:
    data = te.placeholder((1, 14, 14, 64), name="data")
    weight = te.placeholder((3, 3, 64, 64), name="weight")
    return [data, weight, topi.nn.relu(topi.nn.conv2d_nhwc(data, weight, 1, 1, 1))]


def depthwise() -> list[te.Tensor]:
    data = te.placeholder((1, 14, 14, 64), name="data")
    weight = te.placeholder((3, 3, 64, 1), name="weight")
    return [data, weight, topi.nn.depthwise_conv2d_nhwc(data, weight, 1, 1, 1)]


def task_function(tensors) -> TaskPerfFunc:
    group = make_task(tensors, target=TARGET)
    return TaskPerfFunc(group.task.sketches, group.instances[0].flop, "t", MLPModelPLWrapper())


@pytest.fixture(scope="module")
def dense_conv():
    return task_function(convolution())


def test_knobs_are_told_apart_by_their_loops(dense_conv):
    sketch = dense_conv.sketch_funcs[0].sketch
    roles = knob_roles(sketch)
    assert [roles[f"sp_{axis}_2"] for axis in (1, 2, 3)] == [
        KnobRole.ROWS,
        KnobRole.ROWS,
        KnobRole.LANES,
    ]
    assert {roles[f"sp_{axis}_0"] for axis in (4, 5, 6)} == {KnobRole.REDUCTION}
    assert {roles[f"sp_{axis}_{level}"] for axis in (1, 2, 3) for level in (0, 1)} == {
        KnobRole.OUTER
    }


def test_canonical_tiles_fill_the_registers_and_fit(dense_conv):
    for function in dense_conv.sketch_funcs.values():
        held = []
        for config in canonical_configs(function.sketch, LANES, REGISTERS):
            vectors = math.ceil(config["sp_3_2"] / LANES)
            accumulators = config["sp_1_2"] * config["sp_2_2"] * vectors
            assert accumulators + vectors + 1 <= REGISTERS
            held.append(accumulators)
        assert max(held) >= REGISTERS - 4
        assert len(function.canonical) > 100


def test_windows_of_depthwise_convolutions_are_written_out():
    function = task_function(depthwise())
    for sketch in function.sketch_funcs.values():
        roles = knob_roles(sketch.sketch)
        windows = [name for name, role in roles.items() if role is KnobRole.WINDOW]
        assert len(windows) == 2
        configs = [sketch.features.config(point) for point in sketch.canonical]
        assert configs
        assert all(config[name] == 3 for config in configs for name in windows)


def test_a_tile_that_does_not_fit_the_registers_is_no_point_of_the_space(dense_conv):
    function = dense_conv.sketch_funcs[0]
    config = dict.fromkeys(function.features.pack.var_factors, 1) | {"sp_3_2": 32, "sp_2_2": 14}
    # 14 rows of 2 vectors, a row of the weights, and a broadcast value: 31 registers.
    assert function.features.config_maker.valid(function.features.point(config)[None]).all()
    config |= {"sp_2_2": 7, "sp_1_2": 7}
    assert not function.features.config_maker.valid(function.features.point(config)[None]).any()


def test_the_bound_prefers_tiles_that_keep_the_multipliers_busy(dense_conv):
    function = dense_conv.sketch_funcs[0]
    base = dict.fromkeys(function.features.pack.var_factors, 1) | {"sp_6_0": 64, "sp_7_0": 16}
    points = np.array(
        [
            function.features.point(base | {"sp_3_2": 32, "sp_2_2": 14}),
            function.features.point(base | {"sp_3_2": 16, "sp_2_2": 2}),
            function.features.point(base | {"sp_3_2": 1}),
        ]
    )
    bound = dense_conv.model.bound
    slots = bound.slots(torch.from_numpy(function.features.rows(points))).numpy()
    assert slots[0] < slots[1] < slots[2]
    # A slot is one multiply-add of a vector on each core.
    assert slots[0] > dense_conv.flops / (2 * LANES * 2)


def test_gradients_of_beliefs_are_finite(dense_conv):
    function = dense_conv.sketch_funcs[0]
    points = torch.from_numpy(
        function.features.config_maker.make(16, np.random.default_rng(0)) + 0.3
    )
    points.requires_grad_()
    features, _ = function.features(points)
    dense_conv.model.believe(0, features).mean.sum().backward()
    assert torch.isfinite(points.grad).all()
    assert points.grad.abs().sum() > 0


def test_measurements_move_beliefs_near_them_and_make_them_sure():
    function = task_function(convolution())
    sketch = function.sketch_funcs[0]
    points = sketch.canonical[:: len(sketch.canonical) // 12][:12]
    features = sketch.features.rows(points)
    _, unsure = sketch.beliefs(points)
    scores = np.linspace(2.0, 4.0, len(points))
    function.model.fit([Observation(0, f, s) for f, s in zip(features, scores)])
    means, sure = sketch.beliefs(points)
    assert (sure < 0.5 * unsure).all()
    assert np.corrcoef(means, scores)[0, 1] > 0.9
    # A failure teaches too.
    failed = Observation(0, features[-1], None)
    function.model.fit([*(Observation(0, f, s) for f, s in zip(features[:-1], scores)), failed])
    assert sketch.beliefs(points[-1:])[0][0] < means[-1] - 0.5


def test_a_round_of_failures_alone_teaches_where_not_to_look():
    function = task_function(convolution())
    sketch = function.sketch_funcs[0]
    points = sketch.canonical[:: len(sketch.canonical) // 8][:8]
    before, unsure = sketch.beliefs(points)
    function.model.fit([Observation(0, sketch.features.rows(points[:1])[0], None)])
    after, sure = sketch.beliefs(points)
    # Of what failed least is expected, of what is far from it no less than before.
    assert after[0] < before[0] - 0.5 and sure[0] < 0.5 * unsure[0]
    assert np.argmin(after - before) == 0
    assert np.max(after - before) > -0.5


def test_a_batch_is_not_full_of_twins():
    function = task_function(convolution())
    sketch = function.sketch_funcs[0]
    twin, other = sketch.canonical[0], sketch.canonical[-1]
    points = np.array([twin, twin, twin, other])
    features = list(sketch.features.rows(points))
    means, deviations = sketch.beliefs(points)
    beliefs = type(function.model.believe(0, torch.from_numpy(sketch.features.rows(points))))(
        torch.from_numpy(means), torch.from_numpy(deviations)
    )
    chosen = function.model.choose(np.zeros(4, dtype=int), features, beliefs, 2)
    assert len({tuple(points[i]) for i in chosen}) == 2


def test_no_prediction_is_above_the_machines_peak():
    target = Target("llvm")
    group = make_task(convolution(), target=target)
    function = TaskPerfFunc(group.task.sketches, group.instances[0].flop, "t", MLPModelPLWrapper())
    peak = peak_flops(target)
    assert peak == peak_flops(target) > 1e9
    sketch = function.sketch_funcs[0]
    points = sketch.canonical[:50]
    # Even if a measurement claims more than the machine can do.
    features = sketch.features.rows(points)
    claims = [Observation(0, f, math.log(peak / 1e9) + 1.0) for f in features[:5]]
    function.model.fit(claims)
    means, _ = sketch.beliefs(points)
    assert (means <= math.log(peak / 1e9)).all()


def test_the_peak_of_another_machine_is_not_known():
    other = "skylake" if "znver" in str(Target("llvm").with_machine()) else "znver4"
    assert peak_flops(Target(f"llvm -mcpu={other} -mtriple=x86_64-unknown-linux-gnu")) == math.inf


def test_canonical_rows_have_vectors_of_one_width_in_all_stages():
    x = te.placeholder((64, 1024), name="x")
    task = make_task([x, topi.nn.softmax(x)], "llvm -mcpu=znver4").task
    [sketch] = task.sketches
    assert set(knob_roles(sketch).values()) == {KnobRole.LANES}
    configs = canonical_configs(sketch, 16, 32)
    assert [set(config.values()) for config in configs] == [{16}, {32}, {64}]


def test_a_network_is_believed_more_on_registers_that_it_was_trained_for():
    def trained_on(*machines):
        network = MLPModelPLWrapper()
        for machine in machines:
            network.replay.add(
                np.zeros((1, 3)), 1e9, ConfigMeta("t", 0, {}, 1e-3, f"llvm -mcpu={machine}")
            )
        return network

    wide, narrow = Target(TARGET), Target("llvm -mcpu=znver3")
    assert network_share(trained_on("znver5"), wide) > network_share(trained_on("znver5"), narrow)
    both = trained_on("znver5", "haswell")
    assert network_share(both, wide) == network_share(both, narrow)
    assert network_share(trained_on(), wide) == network_share(trained_on("znver5"), narrow)
