"""Sketches on tensor cores: structure, results, features, limits and machine code."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
import pytest

import tvm
from testing_gpu import TARGET, run_emulated, run_plain
from tvm import auto_scheduler, te, tir, topi
from tvm.auto_scheduler import MeasureInput, _ffi_api, measure_jobs
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix import ffi
from tvm.felix import make_task as make_sym_task
from tvm.felix.perf_func import SketchPerfFunc

NAMES = auto_scheduler.feature_names(TARGET, "felix")


def _sum_of_products(a, b, k, sum_type):
    return te.sum(a.astype(sum_type) * b.astype(sum_type), axis=k)


def _with_bias(result, sum_type, out_type):
    """The result with a bias, rectified and cast."""
    bias = te.placeholder((result.shape[-1],), sum_type, name="bias")
    out = te.compute(
        result.shape,
        lambda *i: tir.max(result(*i) + bias[i[-1]], tir.const(0, sum_type)).astype(out_type),
        name="rectified",
    )
    return [bias, out]


def product(n, m, k, dtype, sum_type="float32", out_type=None):
    a, b = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    result = te.compute(
        (n, m), lambda i, j: _sum_of_products(a[i, r], b[r, j], r, sum_type), name="C"
    )
    return [a, b, *([result] if out_type is None else _with_bias(result, sum_type, out_type))]


def batch_product(batch, n, m, k):
    a = te.placeholder((batch, n, k), "float16", name="A")
    b = te.placeholder((batch, m, k), "float16", name="B")
    r = te.reduce_axis((0, k), name="k")
    result = te.compute(
        (batch, n, m),
        lambda p, i, j: _sum_of_products(a[p, i, r], b[p, j, r], r, "float32"),
        name="C",
    )
    return [a, b, result]


def convolution(batch, size, channels_in, channels_out, window, stride, dtype="float16"):
    data = te.placeholder((batch, size, size, channels_in), dtype, name="data")
    weight = te.placeholder((window, window, channels_in, channels_out), dtype, name="weight")
    pad = window // 2
    padded = topi.nn.pad(data, [0, pad, pad, 0], [0, pad, pad, 0], name="padded")
    ry, rx = (te.reduce_axis((0, window), name=name) for name in ("ry", "rx"))
    rc = te.reduce_axis((0, channels_in), name="rc")
    out = (size + 2 * pad - window) // stride + 1
    result = te.compute(
        (batch, out, out, channels_out),
        lambda n, y, x, c: _sum_of_products(
            padded[n, y * stride + ry, x * stride + rx, rc],
            weight[ry, rx, rc, c],
            [ry, rx, rc],
            "float32",
        ),
        name="convolution",
    )
    return [data, weight, *_with_bias(result, "float32", dtype)]


WORKLOADS = {
    "float16": lambda: product(64, 64, 64, "float16"),
    "float16_sums": lambda: product(32, 64, 32, "float16", "float16"),
    "float16_with_bias": lambda: product(64, 96, 64, "float16", out_type="float16"),
    "bfloat16": lambda: product(32, 32, 64, "bfloat16", out_type="bfloat16"),
    "int8": lambda: product(32, 48, 64, "int8", "int32", out_type="int32"),
    "narrow": lambda: product(32, 24, 32, "float16", out_type="float16"),
    "batch": lambda: batch_product(3, 32, 48, 64),
    "convolution_of_wide_rows": lambda: convolution(1, 16, 16, 32, 3, 1),
    "convolution_of_batch": lambda: convolution(16, 6, 16, 16, 3, 2),
    "tf32": lambda: product(32, 48, 40, "float32"),
    "parts_with_bias": lambda: product(16, 32, 1024, "float16", out_type="float16"),
    "parts_int8": lambda: product(16, 16, 1024, "int8", "int32"),
    "tf32_convolution": lambda: convolution(1, 16, 8, 16, 3, 1, "float32"),
}
# As above, but their features take seconds.
SLOW = {"parts_of_convolution": lambda: convolution(1, 16, 128, 16, 3, 1)}
TF32_TARGET = f"{TARGET} -allow_tf32=1"


@functools.cache
def task_of(name):
    target = TF32_TARGET if name.startswith("tf32") else TARGET
    return make_sym_task((WORKLOADS | SLOW)[name](), target).task


def tensor_core_sketches(task):
    return [sketch for sketch in task.sketches if "FXS" in sketch.backbone]


@functools.cache
def perf_func(name, index):
    return SketchPerfFunc(tensor_core_sketches(task_of(name))[index], MLPModelPLWrapper())


def inputs_of(task):
    generator = np.random.default_rng(0)
    inputs = []
    for tensor in list(task.compute_dag.tensors)[:-1]:
        shape, dtype = [int(extent) for extent in tensor.shape], str(tensor.dtype)
        if dtype.startswith("int"):
            inputs.append(generator.integers(-8, 9, shape).astype(dtype))
        else:
            dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
            inputs.append(generator.uniform(-1, 1, shape).astype(dtype))
    return inputs


def rounded_to_tf32(array):
    """Float32 with 10 bits of mantissa, halves away from zero."""
    bits = array.view("uint32") + np.uint32(1 << 12)
    return (bits & ~np.uint32((1 << 13) - 1)).view("float32")


def points_of(name, index, count):
    maker = perf_func(name, index).features.config_maker
    return maker.make(count, np.random.default_rng(0))


def state_at(name, index, point):
    function = perf_func(name, index)
    return function.sketch.state_from_config(function.features.config(point))


def test_a_product_has_two_structures_on_tensor_cores():
    # Tiles fetched ahead of their use, and tiles that are waited for, beside the plain structure.
    task = task_of("float16_with_bias")
    assert task.failures == []
    ahead, plain = tensor_core_sketches(task)
    assert len(task.sketches) == 3
    assert "FA" in ahead.backbone and "FA" not in plain.backbone
    # Warps and fragments of rows and columns, steps in shared memory, lanes of both copies, and
    # how many trips ahead these are.
    lengths = [64 // 16, 64 // 16, 96 // 16, 8, 8]
    for sketch, expected in ((plain, lengths), (ahead, [*lengths, 4])):
        groups = [int(group.extent_expr) for group in sketch.context.split_groups]
        assert groups == expected


def test_parts_of_long_sums_are_shared_by_blocks():
    task = task_of("parts_with_bias")
    *_, parts = tensor_core_sketches(task)
    assert "RF" in parts.backbone
    # Parts and steps of 16, then rows and columns of fragments.
    groups = [int(group.extent_expr) for group in parts.context.split_groups]
    assert groups[:3] == [1024 // 16, 16 // 16, 32 // 16]
    # Short sums, results enough for all multiprocessors, and steps that cannot be cut, have none.
    for shape in ((64, 64, 512), (512, 512, 1024), (64, 64, 1040)):
        sketches = make_sym_task(product(*shape, "float16"), TARGET).task.sketches
        assert len([s for s in sketches if {"FXS", "RF"} <= set(s.backbone)]) == 0


def test_the_model_of_a_device_prefers_parts_of_few_long_sums():
    task = make_sym_task(product(64, 64, 4096, "float16"), TARGET).task
    *whole, parts = tensor_core_sketches(task)

    def best(sketch):
        maker = SketchPerfFunc(sketch, MLPModelPLWrapper()).features
        points = maker.config_maker.make(8, np.random.default_rng(0))
        cycles = np.expm1(maker.rows(points)[..., NAMES.index("kernel_cycles")])
        share = np.expm1(maker.rows(points)[..., NAMES.index("kernel_share")])
        return (cycles * share).sum(1).min()

    assert best(parts) < 0.5 * min(map(best, whole))


@pytest.mark.parametrize(
    ("tensors", "target"),
    [
        # Padded to fragments, more than half of it would be zeros.
        (lambda: product(3, 64, 64, "float16"), TARGET),
        (lambda: product(64, 64, 7, "float16"), TARGET),
        (lambda: product(64, 64, 64, "float32"), TARGET),
        (lambda: product(64, 64, 64, "float32"), "cuda -arch=sm_75 -allow_tf32=1"),
        (lambda: product(64, 7, 64, "float32"), TF32_TARGET),
        (lambda: product(64, 64, 64, "bfloat16"), "cuda -arch=sm_75"),
        (lambda: product(64, 64, 64, "int8", "int32"), "cuda -arch=sm_70"),
    ],
)
def test_what_does_not_suit_tensor_cores_has_plain_sketches_only(tensors, target):
    task = make_sym_task(tensors(), target).task
    assert task.sketches and tensor_core_sketches(task) == []


@pytest.mark.parametrize(
    "name", [*WORKLOADS, *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)]
)
def test_programs_compute_the_same_without_races(name):
    task = task_of(name).ansor_task
    inputs = inputs_of(task)
    operands = 2
    used = [*map(rounded_to_tf32, inputs[:operands]), *inputs[operands:]]
    is_tf32 = name.startswith("tf32")
    expected = run_plain(task, used if is_tf32 else inputs).astype("float64")
    # Of operands that are rounded already, products are exact.
    tolerance = {"float16_sums": 3e-2, "bfloat16": 6e-2}.get(name, 1e-5 if is_tf32 else 4e-3)
    for index in range(len(tensor_core_sketches(task_of(name)))):
        for point in points_of(name, index, 2):
            state = state_at(name, index, point)
            result = run_emulated(task, state, inputs).astype("float64")
            np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "name", ["float16", "float16_with_bias", "convolution_of_batch", "tf32", "parts_int8"]
)
def test_features_equal_those_of_the_concrete_program(name):
    task = task_of(name)
    for index in range(len(tensor_core_sketches(task))):
        function = perf_func(name, index)
        pack = function.features.pack
        for point in points_of(name, index, 3):
            config = function.features.config(point)
            state = function.sketch.state_from_config(config)
            assert function.sketch.config_from_state(state) == config
            func, _ = ffi.generate_code_for_state(task.ansor_task, state, False)
            expected = _ffi_api.LoopFeatures(
                task.ansor_task, func, pack.buffer_order, "felix"
            ).numpy()
            actual = pack.tape.forward(point[None])[0][: expected.size].reshape(expected.shape)
            wrong = np.argwhere(~np.isclose(actual, expected, rtol=1e-5, atol=1e-5))
            assert len(wrong) == 0, [
                (str(pack.store_names[int(r)]), NAMES[c], actual[r, c], expected[r, c], config)
                for r, c in wrong[:5]
            ]
            share = np.expm1(expected[:, NAMES.index("tensor_cores")])
            assert share.max() <= 1 + 1e-6


def test_records_hold_what_fragments_need():
    task = task_of("float16").ansor_task
    state = state_at("float16", 0, points_of("float16", 0, 1)[0])
    result = auto_scheduler.MeasureResult([1e-3], 0, "", 0.1, 0.0)
    line = auto_scheduler.measure_record.dump_record_to_string(MeasureInput(task, state), result)
    for part in ('"FXS"', '"tensor_core"', '"FA"', '"SA"'):
        assert part in line
    loaded, _ = auto_scheduler.measure_record.load_record_from_string(line)
    again = task.compute_dag.infer_bound_from_state(loaded.state)
    assert str(again) == str(task.compute_dag.infer_bound_from_state(state))
    # Records from before tiles in flight were counted have a pragma on each copy: one trip ahead.
    steps = auto_scheduler.measure_record.steps_to_json(state)
    [(_, _, copies, _)] = [step for step in steps if step[0] == "FA"]
    replayed = [
        task.compute_dag.replay_steps(auto_scheduler.measure_record.steps_from_json(kept))
        for kept in (
            [step if step[0] != "FA" else [*step[:3], [1]] for step in steps],
            [step for step in steps if step[0] != "FA"]
            + [["PR", copy, 0, "async_copy"] for copy in copies],
        )
    ]
    programs = [
        tvm.lower(*task.compute_dag.apply_steps_from_state(state), simple_mode=True)
        for state in replayed
    ]
    tvm.ir.assert_structural_equal(*programs)


@pytest.mark.parametrize(("arch", "is_async"), [("sm_75", False), ("sm_80", True)])
def test_the_next_tile_is_fetched_as_the_architecture_can(arch, is_async):
    task = make_sym_task(WORKLOADS["float16"](), f"cuda -arch={arch}").task
    ahead = tensor_core_sketches(task)[0]
    function = SketchPerfFunc(ahead, MLPModelPLWrapper())
    knobs = {str(knob): 1 for knob in function.features.pack.var_factors}
    # Both copies move 8 halves at a time; of three trips with tiles in flight, the first has come.
    flight = {"sp_5_0": 2} if is_async else {}
    state = ahead.state_from_config(knobs | {"sp_3_0": 8, "sp_4_0": 8} | flight)
    schedule, args = task.ansor_task.compute_dag.apply_steps_from_state(state)
    source = tvm.build(schedule, args, target=f"cuda -arch={arch}").imported_modules[0].get_source()
    assert ("cp.async.cg" in source) == is_async
    assert ('"cp.async.wait_group %0;" :: "n"(2)' in source) == is_async
    assert "mma_sync" in source


@pytest.mark.parametrize("name", ["float16_with_bias", "tf32"])
def test_machine_code_keeps_to_the_limits(name):
    pytest.importorskip("cuda.bindings.nvrtc")
    task = task_of(name).ansor_task
    for index in range(2):
        function = perf_func(name, index)
        # Of the first sketch one that asks for more shared memory than every device grants.
        points = points_of(name, index, 1 if index or name == "tf32" else 200)
        bytes_of = np.expm1(function.features.rows(points)[..., NAMES.index("shared_bytes")]).max(1)
        assert len(points) == 1 or bytes_of.max() > 48 << 10
        point = points[np.argmax(bytes_of)]
        config = function.features.config(point)
        state = function.sketch.state_from_config(config)
        request = MeasureInput(task, state).request()
        built, _ = measure_jobs.build(
            {"program": request.function, "arguments": request.arguments}, b""
        )
        assert built["error_no"] == 0, built
        [used] = built["kernels"].values()
        # What features say of shared memory is what the kernel takes.
        func, _ = ffi.generate_code_for_state(task, state, False)
        features = _ffi_api.LoopFeatures(
            task, func, function.features.pack.buffer_order, "felix"
        ).numpy()
        shared = np.expm1(features[:, NAMES.index("shared_bytes")]).max()
        assert used["spill_bytes"] == 0
        assert shared == pytest.approx(used["shared_bytes"], abs=1)
