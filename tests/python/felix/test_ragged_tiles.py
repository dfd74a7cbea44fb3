"""Register tiles that need not divide their axis: which tasks have them, what they compute."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_features import features_at, features_of_state
from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import LayoutRewriteOption, _ffi_api
from tvm.auto_scheduler.compute_dag import pack_array
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix.canonical import KnobRole, knob_roles
from tvm.felix.perf_func import TaskPerfFunc
from tvm.felix.sym_task import make_task

# 32 registers of 16 lanes, and 16 of 8.
WIDE_PROCESSOR = "llvm -mcpu=znver4"
WIDE, NARROW = f"{WIDE_PROCESSOR} -num-cores=1", "llvm -mcpu=haswell -num-cores=1"


def dense(rows, inputs, outputs):
    data = te.placeholder((rows, inputs), name="data")
    weight = te.placeholder((outputs, inputs), name="weight")
    bias = te.placeholder((outputs,), name="bias")
    return [data, weight, bias, topi.nn.relu(topi.add(topi.nn.dense(data, weight), bias))]


def line(length, channels, filters, kernel=3):
    data = te.placeholder((1, 1, length, channels), name="data")
    weight = te.placeholder((1, kernel, channels, filters), name="weight")
    return [data, weight, topi.nn.conv2d_nhwc(data, weight, 1, (0, kernel // 2), 1)]


def image(height, width, channels, filters):
    data = te.placeholder((1, height, width, channels), name="data")
    weight = te.placeholder((3, 3, channels, filters), name="weight")
    return [data, weight, topi.nn.conv2d_nhwc(data, weight, 1, 1, 1)]


def products(batch, rows, columns, inputs):
    left = te.placeholder((batch, rows, inputs), name="left")
    right = te.placeholder((batch, columns, inputs), name="right")
    return [left, right, topi.nn.batch_matmul(left, right)]


def depthwise(size, channels):
    data = te.placeholder((1, size, size, channels), name="data")
    weight = te.placeholder((3, 3, channels, 1), name="weight")
    return [data, weight, topi.nn.depthwise_conv2d_nhwc(data, weight, 1, 1, 1)]


def ragged(task):
    """Sketches with a split whose number of tiles follows from the tile."""
    return [
        sketch
        for sketch in task.sketches
        if any(
            int(step.extent) != int(group.extent_expr)
            for step, group in zip(_splits(sketch), sketch.context.split_groups)
        )
    ]


def _splits(sketch):
    return [
        step
        for step in sketch.state.transform_steps
        if str(step.type_key) == "auto_scheduler.SplitStep"
    ]


@pytest.mark.parametrize(
    ("tensors", "target", "expected"),
    [
        (dense(197, 64, 768), WIDE, True),
        (dense(197, 64, 768), NARROW, True),
        (line(799, 16, 384), WIDE, True),
        (products(4, 197, 64, 32), WIDE, True),
        (dense(50, 64, 768), WIDE, True),
        # Two rows of seven pixels fill the registers better than one.
        (image(7, 7, 16, 64), WIDE, True),
        (image(7, 7, 16, 64), NARROW, True),
        # Tiles of 14 and of 6 rows divide these.
        (dense(56, 64, 768), WIDE, False),
        (dense(48, 64, 768), NARROW, False),
        (image(14, 14, 16, 64), WIDE, False),
        # Nothing to cut, or no vector that rows share.
        (dense(7, 64, 64), WIDE, False),
        (depthwise(19, 64), WIDE, False),
    ],
)
def test_where_no_divisor_makes_a_good_tile_some_sketches_are_ragged(tensors, target, expected):
    task = make_task(tensors, target).task
    found = ragged(task)
    assert bool(found) == expected
    # They come on top of those whose tiles divide everything.
    assert len(task.sketches) - len(found) >= 2
    assert len(task.sketches) <= 8
    for sketch in found:
        assert KnobRole.ROWS in knob_roles(sketch).values()


def test_canonical_points_have_ragged_tiles_that_fill_the_registers():
    group = make_task(dense(197, 64, 768), WIDE)
    functions = TaskPerfFunc(group.task.sketches, 1.0, "dense", MLPModelPLWrapper()).sketch_funcs
    for sketch in ragged(group.task):
        function = functions[sketch.index]
        rows = next(k for k, role in knob_roles(sketch).items() if role is KnobRole.ROWS)
        heights = {function.features.config(point)[rows] for point in function.canonical}
        assert {6, 8, 14} <= heights
        assert max(heights) <= 28


def run(dag, state, option, inputs, shape):
    """The result of a program, of weights laid out as it reads them."""
    schedule, args = dag.apply_steps_from_state(state, option)
    inputs = list(inputs)
    if option == LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED:
        for transform in dag.layout_transforms(state):
            at = int(transform.tensor_index)
            inputs[at] = pack_array(inputs[at], transform)
    out = tvm.nd.array(np.full(shape, np.nan, "float32"))
    tvm.build(schedule, args, "llvm")(*map(tvm.nd.array, inputs), out)
    return out.numpy()


def check(tensors, n_points, seed):
    """Random points of the ragged sketches against the program that nobody scheduled."""
    # Which sketches are ragged depends on the registers, so they are not those of this machine.
    group = make_task(tensors, f"{WIDE_PROCESSOR} -num-cores=2")
    dag = group.task.ansor_task.compute_dag
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(-1, 1, [int(s) for s in t.shape]).astype("float32") for t in tensors[:-1]]
    shape = [int(s) for s in tensors[-1].shape]
    expected = run(dag, dag.get_init_state(), LayoutRewriteOption.NO_REWRITE, inputs, shape)
    option = int(group.task.ansor_task.layout_rewrite_option)
    assert ragged(group.task)
    for sketch in ragged(group.task):
        for _ in range(n_points):
            config = random_config(sketch, random.Random(int(rng.integers(1 << 30))))
            state = sketch.state_from_config(config)
            found = run(dag, state, option, inputs, shape)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=str(config))


def random_config(sketch, rng):
    """Lengths that the knobs may have, with register tiles that compile soon."""
    roles = knob_roles(sketch)
    limits = {KnobRole.ROWS: 28, KnobRole.LANES: 48}
    config = {}
    for group in sketch.context.split_groups:
        rest = int(group.extent_expr)
        names = [str(knob.name) for knob in group.vars]
        for name in rng.sample(names, len(names)):
            most = limits.get(roles.get(name), rest)
            config[name] = rng.choice(
                [d for d in range(1, rest + 1) if rest % d == 0 and d <= most]
            )
            rest //= config[name]
    return config


@settings(max_examples=6, deadline=None)
@given(st.sampled_from([53, 97, 197]), st.sampled_from([24, 32, 96]), st.integers(0, 99))
def test_products_of_awkward_rows(rows, columns, seed):
    check(dense(rows, 20, columns), 2, seed)


@settings(max_examples=4, deadline=None)
@given(st.sampled_from([37, 67]), st.sampled_from([32, 40]), st.integers(0, 99))
def test_lines_of_awkward_length(length, filters, seed):
    check(line(length, 6, filters), 2, seed)


@settings(max_examples=4, deadline=None)
@given(st.sampled_from([(3, 17), (19, 19), (7, 7), (5, 7)]), st.integers(0, 99))
def test_images_of_awkward_sizes(size, seed):
    check(image(*size, 4, 32), 2, seed)


@settings(max_examples=4, deadline=None)
@given(st.sampled_from([41, 103]), st.sampled_from([32, 48]), st.integers(0, 99))
def test_batches_of_awkward_rows(rows, columns, seed):
    check(products(2, rows, columns, 12), 2, seed)


def test_constant_weights_are_laid_out_in_panels_beside_ragged_rows():
    group = make_task(dense(53, 24, 64), WIDE)
    dag = group.task.ansor_task.compute_dag
    for sketch in ragged(group.task):
        names = [[str(knob.name) for knob in g.vars] for g in sketch.context.split_groups]
        config = dict.fromkeys(itertools.chain(*names), 1)
        config.update({names[0][0]: 14, names[1][2]: 32, names[2][0]: 24})
        [transform] = dag.layout_transforms(sketch.state_from_config(config))
        assert [int(x) for x in transform.extents if int(x) > 1] == [2, 24, 32]


def test_tiles_over_two_lines_of_a_small_image_are_canonical():
    group = make_task(image(7, 7, 16, 64), WIDE)
    functions = TaskPerfFunc(group.task.sketches, 1.0, "conv", MLPModelPLWrapper()).sketch_funcs
    for sketch in ragged(group.task):
        function = functions[sketch.index]
        rows = [name for name, role in knob_roles(sketch).items() if role is KnobRole.ROWS]
        configs = map(function.features.config, function.canonical)
        assert [2, 7] in [sorted(config[name] for name in rows) for config in configs]


@pytest.mark.parametrize(
    "tensors",
    [dense(197, 20, 64), line(67, 6, 32), image(7, 7, 6, 32)],
    ids=["rows", "line", "7x7"],
)
def test_features_equal_those_of_the_concrete_program(tensors):
    task = make_task(tensors, WIDE).task
    for sketch in ragged(task):
        pack = sketch.fetch_features()
        for seed in range(3):
            config = random_config(sketch, random.Random(seed))
            state = sketch.state_from_config(config)
            expected = features_of_state(task.ansor_task, state, pack)
            actual = features_at(pack, config, expected.shape)
            np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3, err_msg=str(config))


def test_evolution_draws_and_mutates_ragged_tiles():
    task = auto_scheduler.SearchTask(compute_dag=dense(197, 24, 64), target=WIDE)
    policy = auto_scheduler.SketchPolicy(
        task,
        auto_scheduler.RandomModel(3),
        params={
            "search_space": "felix",
            "evolutionary_search_population": 48,
            "sample_init_min_population": 24,
        },
        seed=3,
        verbose=0,
    )
    states = [*policy.sample_initial_population(), *policy.evolutionary_search([], 24)]
    heights = set()
    for state in states:
        for step in state.transform_steps:
            record = _ffi_api.StepToRecord(step)
            if record[0] == "SP" and int(record[3]) == 197 and len(record[4]) == 1:
                heights.add(int(record[4][0]))
    assert {h for h in heights if 197 % h}
    assert all(168 % h == 0 for h in heights)


def test_records_of_ragged_programs_read_back():
    task = make_task(dense(53, 24, 64), WIDE).task
    sketch = ragged(task)[-1]
    config = random_config(sketch, random.Random(5))
    state = sketch.state_from_config(config)
    line_ = auto_scheduler.measure_record.dump_record_to_string(
        auto_scheduler.MeasureInput(task.ansor_task, state),
        auto_scheduler.MeasureResult([0.1], 0, "", 0.1, 0.0),
    )
    read, _ = auto_scheduler.load_record_from_string(line_)
    assert sketch.config_from_state(read.state) == config
