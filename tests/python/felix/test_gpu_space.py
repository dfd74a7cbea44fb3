"""Symbolic sketches for GPUs: their extents, constraints and features, and what they compute."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tvm
from testing_gpu import (
    TARGET,
    inputs_of,
    perf_func,
    random_states,
    run_emulated,
    run_plain,
    sym_task,
)
from testing_sketches import CASES, depthwise, softmax
from tvm import auto_scheduler, te, tir, topi
from tvm.arith import _ffi_api as _arith_api
from tvm.auto_scheduler import MeasureInput, _ffi_api, measure_jobs
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix import ffi
from tvm.felix import make_task as make_sym_task
from tvm.felix.perf_func import SketchPerfFunc
from tvm.felix.policy import FelixPolicy

NAMES = auto_scheduler.feature_names(TARGET, "felix")
# Extraction takes seconds where many axes are tiled.
SLOW = {"conv3x3", "conv1x1", "stem", "depthwise", "depthwise_stride2", "two_matmuls"}
WORKLOADS = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CASES]


def loop_extents(func):
    """Expressions of the extents of all loops, by name, in order."""
    found = {}

    def visit(node):
        if isinstance(node, tir.For):
            found.setdefault(str(node.loop_var.name), []).append(node.extent)

    tir.stmt_functor.post_order_visit(func.body, visit)
    return found


def thread_extents(func):
    """Expressions of the extents of all thread axes, by tag, in order."""
    found = {}

    def visit(node):
        if isinstance(node, tir.AttrStmt) and str(node.attr_key) in (
            "thread_extent",
            "virtual_thread",
        ):
            tag = "vthread" if str(node.attr_key) == "virtual_thread" else str(node.node.thread_tag)
            found.setdefault(tag, []).append(node.value)

    tir.stmt_functor.post_order_visit(func.body, visit)
    return found


def dense_add(n, m, k):
    data, weight = te.placeholder((n, k), name="data"), te.placeholder((m, k), name="weight")
    bias = te.placeholder((m,), name="bias")
    return [data, weight, bias, topi.add(topi.nn.dense(data, weight), bias)]


def half_product(n, m, k):
    a, b = te.placeholder((n, k), "float16", name="A"), te.placeholder((k, m), "float16", name="B")
    return [a, b, topi.nn.matmul(a, b)]


class Extents:
    """The extents of a sketch's loops, for comparing them with what they should be."""

    def __init__(self, sketch):
        self.context = sketch.context
        self.threads = thread_extents(sketch.code)
        self.loops = loop_extents(sketch.code)

    def q(self, g):
        return self.context.split_groups[g].quotient

    def sp(self, g, j):
        return self.context.split_groups[g].vars[j]

    def extents(self):
        return [int(group.extent_expr) for group in self.context.split_groups]

    def simplified(self, expr):
        return _arith_api.VarContextSimplify(self.context, tir.convert(expr))

    def check(self, found, expected):
        assert tvm.arith.Analyzer().can_prove_equal(
            self.simplified(found), self.simplified(expected)
        ), f"{found} is not {expected}"


def test_a_product_has_the_extents_of_the_reference_table():
    # Felix (ASPLOS 2024): Dense+Add under multi-level tiling, with N, M, K = 64, 48, 96.
    [sketch] = make_sym_task(dense_add(64, 48, 96), TARGET).task.sketches
    e = Extents(sketch)
    assert e.extents()[:3] == [64, 48, 96]
    tiles, copies = "SP SP SP RE FSP FSP RE CA CHR CA CHR CA", "FU SP AN FFSP AN FU SP AN FFSP AN"
    assert " ".join(sketch.backbone).startswith(f"{tiles} FU AN FU AN FU AN {copies}")
    e.check(e.threads["blockIdx.x"][-1], e.q(0) * e.q(1))
    e.check(e.threads["vthread"][-1], e.sp(0, 0) * e.sp(1, 0))
    threads = e.sp(0, 1) * e.sp(1, 1)
    for extent in e.threads["threadIdx.x"]:
        e.check(extent, threads)
    e.check(e.loops["k.outer.outer"][0], e.q(2))
    # Copies of both operands: vectors of their tile, shared among the threads. That of the weight
    # has the first knob, since stages are completed from the last to the first.
    for g, lanes in ((0, 4), (1, 3)):
        tile = e.sp(2, 0) * e.sp(2, 1) * e.sp(g, 0) * e.sp(g, 1) * e.sp(g, 2) * e.sp(g, 3)
        e.check(e.loops["ax0.ax1.fused.inner"][g], tir.min(tile, e.sp(lanes, 0)))
        trips = tir.floordiv(tile - 1, threads * e.sp(lanes, 0)) + 1
        e.check(e.loops["ax0.ax1.fused.outer.outer"][g], trips)


@pytest.mark.parametrize(("arch", "is_async"), [("sm_75", False), ("sm_80", True)])
def test_tiles_are_fetched_ahead_where_copies_go_on_meanwhile(arch, is_async):
    pytest.importorskip("cuda.bindings.nvrtc")
    target = f"cuda -arch={arch}"
    task = make_sym_task(dense_add(64, 48, 96), target).task
    [sketch] = task.sketches
    assert ("FA" in sketch.backbone) == is_async
    knobs = dict.fromkeys(
        map(str, SketchPerfFunc(sketch, MLPModelPLWrapper()).features.pack.var_factors), 1
    )
    # One copy in vectors, one element by element.
    state = sketch.state_from_config(knobs | {"sp_0_1": 8, "sp_1_1": 8, "sp_2_1": 8, "sp_3_0": 4})
    schedule, args = task.ansor_task.compute_dag.apply_steps_from_state(state)
    source = tvm.build(schedule, args, target=target).imported_modules[0].get_source()
    assert source.count("shared.global") == (4 if is_async else 0)


def test_rows_that_neighbouring_threads_read_one_below_the_other_are_padded():
    # Neighbours read rows of the weight; of the data they read the same, of a matrix a row.
    task = make_sym_task(dense_add(32, 64, 64), TARGET).task
    [sketch] = task.sketches
    assert list(sketch.backbone).count("FSA") == 1
    assert all("FSA" not in other.backbone for other in sym_task("matmul").sketches)
    function = SketchPerfFunc(sketch, MLPModelPLWrapper())
    knobs = dict.fromkeys(map(str, function.features.pack.var_factors), 1)
    knobs |= {"sp_0_1": 8, "sp_1_1": 8}
    inputs = inputs_of(task.ansor_task)
    expected = run_plain(task.ansor_task, inputs)
    # By as many elements as a copy has lanes, unless a row is an odd multiple of them already.
    for steps, lanes, row in ((8, 1, 9), (8, 2, 10), (8, 4, 12), (4, 4, 4)):
        point = function.features.point(knobs | {"sp_2_1": steps, "sp_3_0": lanes})
        check_program(task.ansor_task, function, point, inputs, expected)
        values = np.expm1(function.features.pack.tape.forward(point[None])[0])
        table = values[: len(values) // len(NAMES) * len(NAMES)].reshape(-1, len(NAMES))
        # Both tiles, twice, since the next are fetched ahead.
        assert table[:, NAMES.index("shared_bytes")].max() == pytest.approx(64 * (steps + row))
        assert table[:, NAMES.index("bank_conflicts")].max() == pytest.approx(lanes)


def evolution(task, sampled, population, iterations):
    """Evolution over the symbolic sketches of a task, by a model that knows nothing."""
    params = {
        "search_space": "felix",
        "sample_init_min_population": sampled,
        "evolutionary_search_population": population,
        "evolutionary_search_num_iters": iterations,
    }
    return auto_scheduler.SketchPolicy(
        task.ansor_task, auto_scheduler.RandomModel(), params=params, seed=3, verbose=0
    )


@pytest.mark.parametrize(
    ("tensors", "target"),
    [
        (dense_add(512, 512, 512), TARGET),
        (CASES["matmul"], "cuda -arch=sm_70"),
        (softmax(16, 16384), TARGET),
        (half_product(512, 512, 512), TARGET),
    ],
    ids=["padded rows", "matmul", "threads share sums", "tensor cores"],
)
def test_evolution_meets_the_constraints_of_symbolic_sketches(tensors, target):
    task = make_sym_task(tensors, target).task
    functions = [SketchPerfFunc(sketch, MLPModelPLWrapper()) for sketch in task.sketches]
    policy = evolution(task, 16, 64, 2)
    population = policy.sample_initial_population()
    assert len(population) >= 8
    for state in [*population, *policy.evolutionary_search(population, 32)]:
        configs = [function.sketch.config_from_state(state) for function in functions]
        [(function, config)] = [pair for pair in zip(functions, configs) if pair[1] is not None]
        point = function.features.point(config)
        assert function.features.config_maker.valid(point[None])[0], config


def test_a_long_reduction_is_shared_by_threads():
    # Dense+Add under cross-thread reduction, with N, M, K = 4, 32, 960: E0 is M.
    sketches = make_sym_task(dense_add(4, 32, 960), TARGET).task.sketches
    [sketch] = [s for s in sketches if " ".join(s.backbone) == "SP AN FSP AN CA FU AN"]
    e = Extents(sketch)
    e.check(e.threads["blockIdx.x"][-1], 4 * e.q(0))
    for extent in e.threads["threadIdx.x"]:
        e.check(extent, e.sp(0, 0))
    e.check(e.loops["k.outer"][0], tir.floordiv(959, e.sp(0, 0)) + 1)


def test_few_results_get_a_block_each_whose_threads_share_a_sum():
    # One row: one thread a result would leave most of 108 multiprocessors idle.
    [sketch] = [
        s
        for s in make_sym_task(dense_add(1, 1000, 2048), TARGET).task.sketches
        if " ".join(s.backbone) == "SP SP AN FSP AN CA FU AN"
    ]
    e = Extents(sketch)
    assert e.extents()[0] == 1000
    e.check(e.threads["blockIdx.x"][-1], e.q(0))
    for extent in e.threads["threadIdx.x"]:
        e.check(extent, e.sp(1, 0))
    e.check(e.loops["k.outer"][0], tir.floordiv(2047, e.sp(1, 0)) + 1)
    # Enough results for all multiprocessors, or sums that are no work for many threads.
    for shape in ((64, 1000, 2048), (1, 1000, 96)):
        for other in make_sym_task(dense_add(*shape), TARGET).task.sketches:
            assert "SP SP AN" not in " ".join(other.backbone)


def rectified_conv(size, channels_in, channels_out):
    data = te.placeholder((1, size, size, channels_in), name="data")
    weight = te.placeholder((3, 3, channels_in, channels_out), name="weight")
    return [data, weight, topi.nn.relu(topi.nn.conv2d_nhwc(data, weight, 1, 1))]


def test_results_with_a_consumer_of_their_own_get_as_many_blocks_as_they_are():
    data = te.placeholder((16, 2000), name="data")
    sketches = make_sym_task([data, topi.argmax(data, 1)], TARGET).task.sketches
    [sketch] = [s for s in sketches if " ".join(s.backbone) == "SP SP AN FSP AN CA FU AN"]
    e = Extents(sketch)
    # Results of a block are one knob, threads that share a sum another.
    e.check(e.threads["blockIdx.x"][-1], e.q(0))
    e.check(e.threads["threadIdx.x"][0], e.sp(1, 0))
    function = SketchPerfFunc(sketch, MLPModelPLWrapper())
    point = function.features.point({"sp_0_0": 1, "sp_1_0": 256})
    row = np.expm1(function.features.rows(point[None])[0])
    # All data is read, though the new pair is made before either of it is stored.
    assert row[:, NAMES.index("memory_bytes")].max() >= 4 * 16 * 2000


def average_pool(size, channels, window):
    data = te.placeholder((1, size, size, channels), name="data")
    strides = [window, window]
    return [data, topi.nn.pool2d(data, strides, strides, [1, 1], [0] * 4, "avg", layout="NHWC")]


def column_sums(rows, columns):
    data = te.placeholder((rows, columns), name="data")
    return [data, topi.sum(data, 0)]


@pytest.mark.parametrize(
    "tensors",
    [column_sums(300, 24), column_sums(70, 13), average_pool(14, 20, 7)],
    ids=["sums", "odd", "windows"],
)
def test_neighbouring_threads_reduce_neighbouring_columns(tensors):
    task = make_sym_task(tensors, TARGET).task
    assert task.failures == []
    # Neither one thread a result nor a block for each would be another program, or a good one.
    [sketch] = task.sketches
    e = Extents(sketch)
    [columns] = {str(extent) for extent in e.threads["threadIdx.x"]}
    [shares] = {str(extent) for extent in e.threads["threadIdx.y"]}
    assert columns != shares
    inputs = inputs_of(task.ansor_task)
    expected = run_plain(task.ansor_task, inputs)
    function = SketchPerfFunc(sketch, MLPModelPLWrapper())
    for point in function.features.config_maker.make(4, np.random.default_rng(0)):
        check_program(task.ansor_task, function, point, inputs, expected)


def test_pairs_of_columns_are_reduced_by_neighbouring_threads():
    data = te.placeholder((70, 13), name="data")
    task = make_sym_task([data, topi.argmax(data, 0)], TARGET).task
    [sketch] = task.sketches
    function = SketchPerfFunc(sketch, MLPModelPLWrapper())
    inputs = inputs_of(task.ansor_task)
    expected = run_plain(task.ansor_task, inputs)
    for config in ({"sp_0_0": 8, "sp_1_0": 8}, {"sp_0_0": 16, "sp_1_0": 4}):
        point = function.features.point(config)
        check_program(task.ansor_task, function, point, inputs, expected)


def test_pairs_are_reduced_in_parts():
    rows = te.placeholder((2, 16384), name="rows")
    task = make_sym_task([rows, topi.argmax(rows, 1)], TARGET).task
    assert task.failures == []
    inputs = inputs_of(task.ansor_task)
    expected = run_plain(task.ansor_task, inputs)
    shared = split_sketches(task)
    for sketch in shared:
        features = SketchPerfFunc(sketch, MLPModelPLWrapper()).features
        for point in features.config_maker.make(3, np.random.default_rng(0)):
            state = sketch.state_from_config(features.config(point))
            found = run_emulated(task.ansor_task, state, inputs)
            np.testing.assert_array_equal(found, expected)
    # Where loops have several trips, places are counted with knobs as with numbers.
    [sketch] = [s for s in shared if " ".join(s.backbone) == "SP RF SP AN FU AN FU AN FU AN"]
    function = SketchPerfFunc(sketch, MLPModelPLWrapper())
    point = function.features.point({"sp_0_0": 512, "sp_1_0": 32})
    check_program(task.ansor_task, function, point, inputs, expected)


def test_threads_of_one_column_are_known_to_read_far_apart():
    [sketch] = make_sym_task(column_sums(4096, 1024), TARGET).task.sketches
    function = SketchPerfFunc(sketch, MLPModelPLWrapper())

    def wasted(shares, columns):
        point = function.features.point({"sp_0_0": shares, "sp_1_0": columns})
        row = np.expm1(function.features.rows(point[None])[0])
        return row[:, NAMES.index("uncoalesced")].max()

    assert wasted(8, 32) == pytest.approx(1)
    assert wasted(256, 1) == pytest.approx(8)


def test_a_group_of_channels_is_reduced_by_one_block():
    data, scale, shift = (te.placeholder(s, name="x") for s in ((2, 8, 6, 6), (8,), (8,)))
    out = topi.nn.group_norm(data, scale, shift, 4, 1, [2, 3], 1e-5)
    task = make_sym_task([data, scale, shift, out], TARGET).task
    assert task.failures == []
    [sketch] = task.sketches
    # One kernel, in which both reductions and the results of a group are the same threads'.
    e = Extents(sketch)
    assert [int(extent) for extent in e.threads["blockIdx.x"]] == [8]
    inputs = inputs_of(task.ansor_task)
    expected = run_plain(task.ansor_task, inputs)
    function = SketchPerfFunc(sketch, MLPModelPLWrapper())
    for point in function.features.config_maker.make(3, np.random.default_rng(0)):
        check_program(task.ansor_task, function, point, inputs, expected)


@pytest.mark.parametrize("shape", [(512, 512, 512), (37, 64, 48), (64, 64, 4096), (1, 512, 512)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_symbolic_sketches_are_as_many_as_the_concrete_ones_of_their_space(shape, dtype):
    n, m, k = shape
    a, b = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B")
    tensors = [a, b, topi.nn.matmul(a, b)]
    task = auto_scheduler.SearchTask(
        compute_dag=auto_scheduler.ComputeDAG(tensors), workload_key="product", target=TARGET
    )
    policy = auto_scheduler.SketchPolicy(
        task, auto_scheduler.RandomModel(), params={"search_space": "felix"}, verbose=0
    )
    symbolic, failures = ffi.generate_all_sym_sketches(policy)
    assert failures == []
    assert len(symbolic) == len(policy.generate_sketches()) >= 1


def split_sketches(task):
    return [sketch for sketch in task.sketches if "RF" in sketch.backbone]


def test_a_long_reduction_of_few_results_is_shared_by_blocks():
    [sketch] = split_sketches(make_sym_task(dense_add(8, 16, 1024), TARGET).task)
    e = Extents(sketch)
    assert e.extents()[:3] == [1024, 8, 16]
    # Partial sums, and the kernel that adds them up, where the bias is added too.
    assert len(e.threads["blockIdx.x"]) == 2
    e.check(e.threads["blockIdx.x"][1], e.q(3))
    e.check(e.loops["k.outer.outer.outer.v"][0], e.q(0))
    # Enough results for all multiprocessors, short sums, and rows, whose tiles use nothing twice.
    for shape in ((512, 512, 1024), (64, 64, 512), (1, 1000, 2048)):
        assert split_sketches(make_sym_task(dense_add(*shape), TARGET).task) == []


@pytest.mark.parametrize(
    "make",
    [lambda: dense_add(8, 16, 1024), lambda: rectified_conv(5, 128, 8)],
    ids=["dense", "conv"],
)
def test_parts_of_a_reduction_add_up_to_the_same(make):
    task = make_sym_task(make(), TARGET).task
    inputs = inputs_of(task.ansor_task)
    expected = run_plain(task.ansor_task, inputs)
    [sketch] = split_sketches(task)
    function = SketchPerfFunc(sketch, MLPModelPLWrapper())
    for point in function.features.config_maker.make(3, np.random.default_rng(0)):
        check_program(task.ansor_task, function, point, inputs, expected)


def test_the_model_of_a_device_prefers_parts_of_long_reductions():
    task = make_sym_task(_matmul(64, 64, 4096), TARGET).task
    best = {}
    for sketch in task.sketches:
        features = SketchPerfFunc(sketch, MLPModelPLWrapper()).features
        states = [
            sketch.state_from_config(features.config(point))
            for point in features.config_maker.make(8, np.random.default_rng(0))
        ]
        best["RF" in sketch.backbone] = min(
            auto_scheduler.modeled_seconds(
                *task.ansor_task.compute_dag.apply_steps_from_state(state), task.ansor_task.target
            )
            for state in states
        )
    assert best[True] < 0.5 * best[False]


def check_program(task, function, point, inputs, expected):
    """One program is right, and its features are those of the symbolic sketch."""
    sketch = function.sketch
    config = function.features.config(point)
    state = sketch.state_from_config(config)
    np.testing.assert_allclose(run_emulated(task, state, inputs), expected, rtol=1e-4, atol=1e-4)
    func, _ = ffi.generate_code_for_state(task, state, False)
    pack = function.features.pack
    found = _ffi_api.LoopFeatures(task, func, pack.buffer_order, "felix").numpy()
    actual = pack.tape.forward(point[None])[0][: found.size].reshape(found.shape)
    np.testing.assert_allclose(actual, found, rtol=1e-5, atol=1e-5)
    assert sketch.config_from_state(state) == config


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(("m", "k"), [(10, 300), (90, 300), (1100, 256)])
def test_one_row_whose_sums_are_shared_computes_the_same(has_bias, m, k):
    tensors = dense_add(1, m, k)
    if not has_bias:
        data, weight = tensors[:2]
        tensors = [data, weight, topi.nn.dense(data, weight)]
    task = make_sym_task(tensors, TARGET).task
    inputs = inputs_of(task.ansor_task)
    expected = run_plain(task.ansor_task, inputs)
    shared = [s for s in task.sketches if "CHR" not in s.backbone]
    # Results that are fewer than a warp has lanes get nothing else.
    assert len(shared) == (2 if has_bias and m > 32 and m < 1024 else 1)
    for sketch in shared:
        function = SketchPerfFunc(sketch, MLPModelPLWrapper())
        for point in function.features.config_maker.make(4, np.random.default_rng(0)):
            check_program(task.ansor_task, function, point, inputs, expected)


def test_a_convolution_has_the_extents_of_the_reference_table():
    [sketch] = sym_task("conv3x3").sketches
    e = Extents(sketch)
    # N, height, width, channels out; window; channels in.
    assert e.extents()[:7] == [1, 14, 14, 16, 3, 3, 8]
    assert " ".join(sketch.backbone[:14]) == "CI SP SP SP SP SP SP SP RE FSP FSP FSP FSP RE"
    e.check(e.threads["blockIdx.x"][-1], e.q(0) * e.q(1) * e.q(2) * e.q(3))
    e.check(e.threads["vthread"][-1], e.sp(0, 0) * e.sp(1, 0) * e.sp(2, 0) * e.sp(3, 0))
    e.check(e.threads["threadIdx.x"][-1], e.sp(0, 1) * e.sp(1, 1) * e.sp(2, 1) * e.sp(3, 1))
    # The tile of the padded input has the height of the results' tile and the window.
    [tile] = [r for r in realized(sketch.code) if str(r.buffer.name) == "PadInput.shared"]
    height = e.sp(1, 0) * e.sp(1, 1) * e.sp(1, 2) * e.sp(1, 3) - 1 + e.sp(4, 0) * e.sp(4, 1)
    e.check(tile.bounds[1].extent, height)


def test_other_operators_have_the_extents_of_the_reference_table():
    def of(tensors, backbone):
        sketches = make_sym_task(tensors, TARGET).task.sketches
        [sketch] = [s for s in sketches if " ".join(s.backbone).startswith(backbone)]
        return Extents(sketch)

    # Conv2d+Add #0: two rows of four channels, each the sum of a window over 512 channels.
    x, w = te.placeholder((1, 2, 2, 512), name="x"), te.placeholder((3, 3, 512, 8), name="w")
    bias = te.placeholder((8,), name="bias")
    conv = topi.add(topi.nn.conv2d_nhwc(x, w, 1, 1), bias)
    e = of([x, w, bias, conv], "FU SP SP AN FSP AN CA CI FU AN")
    assert e.extents()[0] == 8
    e.check(e.threads["blockIdx.x"][-1], e.q(0) * 4)
    for extent in e.threads["threadIdx.x"]:
        e.check(extent, e.sp(1, 0))
    e.check(e.loops["ry.rx.fused.rc.fused.outer"][0], tir.floordiv(3 * 3 * 512 - 1, e.sp(1, 0)) + 1)

    # Max2DPool with padding: a thread for each of 8 x 8 x 16 results.
    e = of(CASES["max_pool"], "CI FU SP AN AN")
    assert e.extents() == [8 * 8 * 16]
    e.check(e.threads["blockIdx.x"][-1], e.q(0))
    e.check(e.threads["threadIdx.x"][-1], e.sp(0, 0))
    assert [int(e.loops[name][0]) for name in ("ry", "rx")] == [3, 3]

    # AdaptiveAvgPool: a kernel for the sums, another one for their means, of 3 x 2 x 16 each.
    x = te.placeholder((1, 7, 7, 16), name="x")
    e = of([x, topi.nn.adaptive_avg_pool2d(x, (3, 2))], "FU SP AN AN FU SP AN AN")
    for number, g in enumerate((1, 0)):
        e.check(e.threads["threadIdx.x"][number], e.sp(g, 0))
        e.check(e.threads["blockIdx.x"][number], tir.floordiv(3 * 2 * 16 - 1, e.sp(g, 0)) + 1)

    # Conv3d+Mul+Add #1: N, depth, height, width, channels out; window; channels in.
    x, w = te.placeholder((1, 4, 6, 6, 4), name="x"), te.placeholder((3, 3, 3, 4, 8), name="w")
    scaled = topi.add(topi.multiply(topi.nn.conv3d_ndhwc(x, w, 1, 1), bias), bias)
    e = of([x, w, bias, scaled], "CI" + " SP" * 9 + " RE" + " FSP" * 5)
    assert e.extents()[:9] == [1, 4, 6, 6, 8, 3, 3, 3, 4]
    for tag, j in (("vthread", 0), ("threadIdx.x", 1)):
        e.check(e.threads[tag][-1], math.prod((e.sp(g, j) for g in range(1, 5)), start=e.sp(0, j)))


def realized(func):
    found = []

    def visit(node):
        if isinstance(node, tir.BufferRealize):
            found.append(node)

    tir.stmt_functor.post_order_visit(func.body, visit)
    return found


@pytest.mark.slow
def test_limits_are_those_of_each_kernel():
    # Two kernels: products of all threads, or sums of all shared memory, would be refused.
    function = perf_func("two_matmuls", 0)
    names = [str(name) for name in function.features.pack.constraint_names]
    assert {"kernel0.shared_memory", "kernel1.shared_memory"} <= set(names)
    # Statements that are written out have the same limit, in other knobs.
    products = [
        set(map(str, row.coefficients))
        for row in function.features.pack.linear_cons
        if np.isclose(float(row.constant), -np.log(1024))
    ]
    for threads in ({"sp_0_1_2", "sp_1_1_2"}, {"sp_3_1_2", "sp_4_1_2"}):
        assert products.count(threads) == 1
    groups = [{int(knob.split("_")[1]) for knob in product} for product in products]
    assert all(max(group) < 3 or min(group) >= 3 for group in groups)


def test_points_beyond_a_limit_are_refused():
    task = make_sym_task(dense_add(1024, 1024, 1024), TARGET).task
    function = SketchPerfFunc(task.sketches[0], MLPModelPLWrapper())
    knobs = dict.fromkeys(map(str, function.features.pack.var_factors), 1)
    fine = knobs | {"sp_0_1": 16, "sp_1_1": 16, "sp_0_3": 4, "sp_1_3": 4, "sp_2_1": 4}
    broken = {
        "threads": {"sp_0_1": 64, "sp_1_1": 32},
        "less than a warp": {"sp_0_1": 4, "sp_1_1": 4},
        "virtual threads": {"sp_0_0": 16},
        "shared memory": {"sp_2_1": 256},
        "registers": {"sp_0_3": 16, "sp_1_3": 16},
        "registers of a block": {"sp_0_1": 32, "sp_1_1": 32, "sp_0_3": 8, "sp_1_3": 8},
        "statements": {"sp_2_1": 128},
        "lanes": {"sp_3_0": 4, "sp_2_1": 2},
        "innermost": {"sp_0_3": 1, "sp_1_3": 128},
    }
    points = np.array([function.features.point(fine | change) for change in ({}, *broken.values())])
    valid = function.features.config_maker.valid(points)
    assert valid[0]
    assert [name for name, ok in zip(broken, valid[1:]) if ok] == []


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_has_sketches_and_none_fails(name):
    task = sym_task(name)
    assert 1 <= len(task.sketches) <= 8
    assert task.failures == []
    for sketch in task.sketches:
        assert perf_func(name, sketch.index).features.pack.n_features == len(NAMES)
    assert any(random_states(name, sketch.index, 8) for sketch in task.sketches)


def check_features(task, function, points):
    """Those of the tape, at integer points, are those of the concrete programs."""
    pack = function.features.pack
    for point in points:
        config = function.features.config(point)
        state = function.sketch.state_from_config(config)
        func, _ = ffi.generate_code_for_state(task.ansor_task, state, False)
        expected = _ffi_api.LoopFeatures(task.ansor_task, func, pack.buffer_order, "felix").numpy()
        roots = pack.tape.forward(point[None])[0]
        actual = roots[: expected.size].reshape(expected.shape)
        wrong = np.argwhere(~np.isclose(actual, expected, rtol=1e-5, atol=1e-5))
        assert len(wrong) == 0, [
            (str(pack.store_names[int(r)]), NAMES[c], actual[r, c], expected[r, c], config)
            for r, c in wrong[:5]
        ]


@pytest.mark.parametrize("name", WORKLOADS)
def test_features_at_integer_points_equal_those_of_the_concrete_program(name):
    task = sym_task(name)
    for sketch in task.sketches:
        function = perf_func(name, sketch.index)
        points = function.features.config_maker.make(3, np.random.default_rng(0))
        check_features(task, function, points)


@pytest.mark.parametrize("name", WORKLOADS)
def test_random_programs_compute_the_same_without_races(name):
    task = sym_task(name)
    inputs = inputs_of(task.ansor_task)
    expected = run_plain(task.ansor_task, inputs)
    for sketch in task.sketches:
        for state in random_states(name, sketch.index, 2, seed=1):
            # Sums of at most 200 products of values below 1, in another order.
            np.testing.assert_allclose(
                run_emulated(task.ansor_task, state, inputs),
                expected,
                rtol=1e-4,
                atol=1e-4,
                err_msg=str(state),
            )


def test_long_reductions_of_few_results_are_shared_by_blocks():
    data = te.placeholder((2, 256, 64), name="data")
    for tensors in ([data, topi.sum(data)], [data, topi.max(data, (1, 2))]):
        task = make_sym_task(tensors, TARGET).task
        assert task.failures == []
        shared = split_sketches(task)
        assert shared
        inputs = inputs_of(task.ansor_task)
        expected = run_plain(task.ansor_task, inputs)
        for sketch in shared:
            function = SketchPerfFunc(sketch, MLPModelPLWrapper())
            for point in function.features.config_maker.make(2, np.random.default_rng(0)):
                check_program(task.ansor_task, function, point, inputs, expected)


def test_parts_of_a_group_are_known_to_read_one_group():
    # What lies before the parts of squares is computed for each of them, and is as large as ever.
    data, scale, shift = (te.placeholder(s, name="x") for s in ((1, 4, 64, 128), (4,), (4,)))
    out = topi.nn.group_norm(data, scale, shift, 2, 1, [2, 3], 1e-5)
    task = make_sym_task([data, scale, shift, out], TARGET).task
    assert task.failures == []
    for sketch in task.sketches:
        function = SketchPerfFunc(sketch, MLPModelPLWrapper())
        check_features(
            task, function, function.features.config_maker.make(3, np.random.default_rng(0))
        )
    both = max(task.sketches, key=lambda sketch: sketch.backbone.count("RF"))
    assert both.backbone.count("RF") == 2
    function = SketchPerfFunc(both, MLPModelPLWrapper())
    inputs = inputs_of(task.ansor_task)
    (point,) = function.features.config_maker.make(1, np.random.default_rng(0))
    check_program(task.ansor_task, function, point, inputs, run_plain(task.ansor_task, inputs))


def test_parts_are_shared_by_as_many_threads_as_they_are_long():
    data = te.placeholder((1 << 20,), name="data")
    [sketch] = split_sketches(make_sym_task([data, topi.sum(data)], TARGET).task)
    # The part, the threads of a part, and those of its results.
    extents = {str(g.vars[0].name): int(g.extent_expr) for g in sketch.context.split_groups}
    assert extents["sp_0_0"] == 1 << 20
    assert sorted(extents.values())[:-1] == [512, 1024]


@pytest.mark.parametrize("shape", [(11, 26, 101), (13, 1000, 169)])
def test_extents_of_large_primes_have_valid_programs(shape):
    # Lanes of copies must be single ones; where axes are not padded, threads come in steps of 11 or
    # 13.
    task = make_sym_task(dense_add(*shape), TARGET).task
    tiled = [s for s in task.sketches if "CHR" in s.backbone]
    assert sorted("PDA" in sketch.backbone for sketch in tiled) == [False, True]
    inputs = inputs_of(task.ansor_task)
    expected = run_plain(task.ansor_task, inputs)
    for sketch in tiled:
        function = SketchPerfFunc(sketch, MLPModelPLWrapper())
        points = function.features.config_maker.make(4, np.random.default_rng(0))
        assert len(points) == 4
        state = sketch.state_from_config(function.features.config(points[0]))
        found = run_emulated(task.ansor_task, state, inputs)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_limits_of_zero_are_an_error_and_limits_that_nothing_meets_are_told(caplog):
    def policy(**limits):
        known = auto_scheduler.SearchTask(compute_dag=dense_add(64, 64, 64), target=TARGET)
        fields = [
            "num_cores",
            "vector_unit_bytes",
            "cache_line_bytes",
            "max_shared_memory_per_block",
            "max_local_memory_per_block",
            "max_threads_per_block",
            "max_vthread_extent",
            "warp_size",
        ]
        values = dict(zip(fields, known.hardware_params.as_list())) | limits
        task = auto_scheduler.SearchTask(
            compute_dag=dense_add(64, 64, 64),
            target=TARGET,
            desc="product",
            hardware_params=auto_scheduler.HardwareParams(*values.values()),
        )
        return FelixPolicy(task, n_config_seeds=2, verbose=0)

    with pytest.raises(ValueError, match="max_threads_per_block must be >= 1, got 0"):
        policy(max_threads_per_block=0)
    # Tiles of both operands take 8 bytes at least.
    hopeless = policy(max_shared_memory_per_block=7)
    assert hopeless.propose(2) == []
    assert "no program of its 1 sketches was found" in hopeless.explanation
    assert [r.message for r in caplog.records].count(f"product: {hopeless.explanation}") == 1


LARGE = {
    "matmul": lambda: _matmul(1024, 1024, 1024),
    "depthwise": lambda: depthwise(56, 144, 1),
    "batch_matmul": lambda: _batch_matmul(12, 128, 128, 64),
    "softmax": lambda: softmax(1536, 128),
}


def _matmul(n, m, k):
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    return [a, b, topi.nn.matmul(a, b)]


def _batch_matmul(batch, n, m, k):
    a, b = te.placeholder((batch, n, k), name="A"), te.placeholder((batch, m, k), name="B")
    return [a, b, topi.nn.batch_matmul(a, b)]


@pytest.mark.slow
def test_what_the_constraints_admit_compiles_without_spills():
    # Both architectures have the same limits, so that they share points.
    pytest.importorskip("cuda.bindings.nvrtc")
    built = spilled = 0
    tasks = {name: make_sym_task(make(), TARGET).task for name, make in LARGE.items()}
    # Of convolutions, extraction takes longest; other tests have this one already.
    tasks["conv3x3"] = sym_task("conv3x3")
    for name, task in tasks.items():
        newer = auto_scheduler.SearchTask(
            compute_dag=task.ansor_task.compute_dag, target="cuda -arch=sm_90"
        )
        for sketch in task.sketches:
            function = (
                perf_func(name, sketch.index)
                if name not in LARGE
                else SketchPerfFunc(sketch, MLPModelPLWrapper())
            )
            points = function.features.config_maker.make(5, np.random.default_rng(0))
            for number, point in enumerate(points):
                state = sketch.state_from_config(function.features.config(point))
                of_arch = newer if number % 2 else task.ansor_task
                request = MeasureInput(of_arch, state).request()
                result, _ = measure_jobs.build(
                    {"program": request.function, "arguments": request.arguments}, b""
                )
                built += 1
                spilled += "spills" in result.get("error_msg", "")
                assert result["error_no"] == 0 or "spills" in result["error_msg"], (name, result)
    print(f"{spilled} of {built} programs spill")
    assert spilled <= 0.05 * built


@pytest.mark.parametrize("target", [TARGET, "llvm"])
@pytest.mark.parametrize("name", ["matmul", "max_pool", "softmax"])
def test_evolution_stays_among_the_points_of_the_symbolic_sketches(name, target):
    task = sym_task(name, target)
    policy = evolution(task, 8, 128, 2)
    population = policy.sample_initial_population()
    offspring = policy.evolutionary_search(population, 8)
    assert len(population) >= 1 and len(offspring) >= 1
    for state in [*population, *offspring]:
        configs = [sketch.config_from_state(state) for sketch in task.sketches]
        assert any(config is not None for config in configs)
