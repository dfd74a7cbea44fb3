"""Programs for GPUs whose tiles divide no axis: sums over longer ones."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tvm
from testing_gpu import TARGET, inputs_of, run_emulated, run_plain
from tvm import auto_scheduler, te, tir, topi
from tvm.auto_scheduler import MeasureInput, _ffi_api, measure_jobs
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix import ffi, make_task
from tvm.felix.perf_func import SketchPerfFunc

NAMES = auto_scheduler.feature_names(TARGET, "felix")


def product(batch, n, m, k, dtype):
    lead = (batch,) if batch > 1 else ()
    a = te.placeholder((*lead, n, k), dtype, name="A")
    b = te.placeholder((*lead, k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(*i):
        term = a(*i[:-1], r).astype("float32") * b(*i[:-2], r, i[-1]).astype("float32")
        return te.sum(term, axis=r)

    return [a, b, te.compute((*lead, n, m), element, name="C")]


def dense(n, m, k, dtype):
    a, b, result = product(1, n, m, k, dtype)
    bias = te.placeholder((m,), name="bias")
    biased = te.compute((n, m), lambda i, j: result[i, j] + bias[j], name="biased")
    out = te.compute(
        (n, m), lambda i, j: tir.max(biased[i, j], tir.const(0, "float32")).astype(dtype)
    )
    return [a, b, bias, out]


def convolution(size, channels, dtype):
    data = te.placeholder((1, size, size, channels), dtype, name="data")
    weight = te.placeholder((3, 3, channels, channels), dtype, name="weight")
    out = topi.nn.conv2d_nhwc(data, weight, 1, 1, 1, out_dtype="float32")
    return [data, weight, topi.nn.relu(out)]


WORKLOADS = {
    "product": lambda: product(1, 37, 53, 23, "float32"),
    "product16": lambda: product(1, 37, 53, 45, "float16"),
    "batch16": lambda: product(2, 37, 32, 37, "float16"),
    "dense": lambda: dense(37, 48, 51, "float32"),
    "dense16": lambda: dense(37, 50, 32, "float16"),
    "convolution16": lambda: convolution(7, 32, "float16"),
    "long_sums": lambda: product(1, 19, 37, 1031, "float32"),
    "long_sums16": lambda: product(1, 13, 37, 4099, "float16"),
}


@functools.cache
def task_of(name):
    return make_task(WORKLOADS[name](), TARGET).task


def padded_sketches(task):
    return [sketch for sketch in task.sketches if "PDA" in sketch.backbone]


@functools.cache
def perf_func(name, index):
    return SketchPerfFunc(padded_sketches(task_of(name))[index], MLPModelPLWrapper())


def points_of(function, count):
    return function.features.config_maker.make(count, np.random.default_rng(0))


def test_tiles_divide_longer_axes():
    task = task_of("product16")
    assert task.failures == []
    kinds = [
        [tag for tag in ("PDA", "FXS", "FA") if tag in sketch.backbone] for sketch in task.sketches
    ]
    # Two of tensor cores, and one of threads, beside the one that divides the axes as they are.
    assert sorted(kinds) == [["FA"], ["PDA", "FA"], ["PDA", "FXS"], ["PDA", "FXS", "FA"]]
    # Fragments of 8 x 32 compute less than those of 16 x 16 would.
    [threads] = [sketch for sketch in padded_sketches(task) if "FXS" not in sketch.backbone]
    groups = threads.context.split_groups
    assert [int(group.extent_expr) for group in groups][:3] == [40, 64, 48]


@pytest.mark.parametrize(
    ("tensors", "count"),
    [
        # Axes that are cut well as they are, or so short that one tile has all.
        (lambda: product(1, 48, 64, 96, "float32"), 0),
        (lambda: product(1, 13, 49, 100, "float32"), 0),
        (lambda: product(1, 64, 64, 64, "float16"), 0),
        # One row in fragments of eight would be seven of zeros.
        (lambda: product(1, 1, 64, 64, "float16"), 0),
        (lambda: product(1, 37, 64, 64, "float32"), 1),
        (lambda: product(1, 64, 64, 61, "float32"), 1),
    ],
)
def test_axes_are_padded_where_no_good_tile_divides_them(tensors, count):
    assert len(padded_sketches(make_task(tensors(), TARGET).task)) == count


def test_rows_at_places_from_a_tensor_stay_as_they_are():
    # Where they are is not known, so no copy is long enough for more of them.
    table, weight = te.placeholder((100, 48), name="table"), te.placeholder((48, 64), name="weight")
    places = te.placeholder((37,), "int32", name="places")
    k = te.reduce_axis((0, 48), name="k")
    out = te.compute(
        (37, 64), lambda i, j: te.sum(table[places[i], k] * weight[k, j], axis=k), name="out"
    )
    task = make_task([table, weight, places, out], TARGET).task
    assert task.sketches and task.failures == [] and padded_sketches(task) == []


@pytest.mark.parametrize("name", WORKLOADS)
def test_programs_compute_the_same_without_races(name):
    task = task_of(name).ansor_task
    inputs = inputs_of(task)
    expected = run_plain(task, inputs).astype("float64")
    tolerance = 4e-3 if name.endswith("16") else 1e-4
    assert padded_sketches(task_of(name))
    for index in range(len(padded_sketches(task_of(name)))):
        function = perf_func(name, index)
        for point in points_of(function, 2):
            state = function.sketch.state_from_config(function.features.config(point))
            result = run_emulated(task, state, inputs).astype("float64")
            np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["product", "product16", "dense16", "long_sums"])
def test_features_equal_those_of_the_concrete_program(name):
    task = task_of(name)
    for index in range(len(padded_sketches(task))):
        function = perf_func(name, index)
        pack = function.features.pack
        for point in points_of(function, 2):
            config = function.features.config(point)
            state = function.sketch.state_from_config(config)
            assert function.sketch.config_from_state(state) == config
            func, _ = ffi.generate_code_for_state(task.ansor_task, state, False)
            found = _ffi_api.LoopFeatures(task.ansor_task, func, pack.buffer_order, "felix").numpy()
            actual = pack.tape.forward(point[None])[0][: found.size].reshape(found.shape)
            wrong = np.argwhere(~np.isclose(actual, found, rtol=1e-5, atol=1e-5))
            assert len(wrong) == 0, [
                (str(pack.store_names[int(r)]), NAMES[c], actual[r, c], found[r, c], config)
                for r, c in wrong[:5]
            ]


def test_records_hold_how_axes_were_padded():
    task = task_of("product16").ansor_task
    function = perf_func("product16", 1)
    [point] = points_of(function, 1)
    state = function.sketch.state_from_config(function.features.config(point))
    result = auto_scheduler.MeasureResult([1e-3], 0, "", 0.1, 0.0)
    line = auto_scheduler.measure_record.dump_record_to_string(MeasureInput(task, state), result)
    for part in ('"PDR"', '"PDA"', '"PDL"'):
        assert part in line
    loaded, _ = auto_scheduler.measure_record.load_record_from_string(line)
    programs = [
        tvm.lower(*task.compute_dag.apply_steps_from_state(of), simple_mode=True)
        for of in (state, loaded.state)
    ]
    tvm.ir.assert_structural_equal(*programs)
    assert "pad_axes" in task.compute_dag.print_python_code_from_state(state)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_model_of_a_device_prefers_padded_axes(dtype):
    task = make_task(product(12, 197, 197, 64, dtype), TARGET).task

    def best(sketch):
        features = SketchPerfFunc(sketch, MLPModelPLWrapper()).features
        points = features.config_maker.make(16, np.random.default_rng(0))
        states = [sketch.state_from_config(features.config(point)) for point in points]
        return min(
            auto_scheduler.modeled_seconds(
                *task.ansor_task.compute_dag.apply_steps_from_state(state), task.ansor_task.target
            )
            for state in states
        )

    whole = [sketch for sketch in task.sketches if "PDA" not in sketch.backbone]
    assert min(map(best, padded_sketches(task))) < 0.6 * min(map(best, whole))


@pytest.mark.parametrize("name", ["product", "product16"])
def test_evolution_knows_the_limits_of_padded_programs(name):
    task = task_of(name).ansor_task
    policy = auto_scheduler.SketchPolicy(
        task, auto_scheduler.RandomModel(), params={"search_space": "felix"}, seed=0, verbose=0
    )
    states = policy.sample_initial_population()
    padded = [
        state
        for state in states
        if any(step[0] == "PDA" for step in auto_scheduler.measure_record.steps_to_json(state))
    ]
    assert padded
    inputs = inputs_of(task)
    np.testing.assert_allclose(
        run_emulated(task, padded[0], inputs), run_plain(task, inputs), rtol=4e-3, atol=4e-3
    )


def test_machine_code_keeps_to_the_limits():
    pytest.importorskip("cuda.bindings.nvrtc")
    task = make_task(product(1, 197, 768, 197, "float16"), TARGET).task
    for sketch in padded_sketches(task):
        features = SketchPerfFunc(sketch, MLPModelPLWrapper()).features
        [point] = features.config_maker.make(1, np.random.default_rng(0))
        state = sketch.state_from_config(features.config(point))
        request = MeasureInput(task.ansor_task, state).request()
        result, _ = measure_jobs.build(
            {"program": request.function, "arguments": request.arguments}, b""
        )
        assert result["error_no"] == 0, result["error_msg"]
