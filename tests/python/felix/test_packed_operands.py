"""Operands that change at run time, copied into panels: which tasks have them, and results."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_features import features_at, features_of_state
from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import LayoutRewriteOption
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix import ffi
from tvm.felix.canonical import KnobRole, knob_roles
from tvm.felix.perf_func import TaskPerfFunc
from tvm.felix.sym_task import make_task

WIDE = "llvm -mcpu=znver4 -num-cores=1"


def products(form, batch, rows, columns, inputs):
    left = (batch, inputs, rows) if form[0] == "T" else (batch, rows, inputs)
    right = (batch, columns, inputs) if form[1] == "T" else (batch, inputs, columns)
    a, b = te.placeholder(left, name="a"), te.placeholder(right, name="b")
    turned = {"transpose_a": form[0] == "T", "transpose_b": form[1] == "T"}
    return [a, b, topi.nn.batch_matmul(a, b, **turned)]


def scaled_products(batch, rows, columns, inputs):
    a, b, product = products("NT", batch, rows, columns, inputs)
    return [a, b, topi.nn.relu(topi.multiply(product, tvm.tir.const(0.125, "float32")))]


def products_of_turned(rows, columns, inputs):
    """The right side is computed from an input, in place."""
    a = te.placeholder((2, rows, inputs), name="a")
    b = te.placeholder((2, columns, inputs), name="b")
    twice = te.compute(b.shape, lambda x, j, k: b[x, j, k] + b[x, j, k], name="twice")
    return [a, b, topi.nn.batch_matmul(a, twice)]


def dense(rows, inputs, outputs):
    data = te.placeholder((rows, inputs), name="data")
    weight = te.placeholder((outputs, inputs), name="weight")
    return [data, weight, topi.nn.dense(data, weight)]


def depthwise(size, channels):
    data = te.placeholder((1, size, size, channels), name="data")
    weight = te.placeholder((3, 3, channels, 1), name="weight")
    return [data, weight, topi.nn.depthwise_conv2d_nhwc(data, weight, 1, 1, 1)]


def image(size, channels, filters):
    data = te.placeholder((1, size, size, channels), name="data")
    weight = te.placeholder((3, 3, channels, filters), name="weight")
    return [data, weight, topi.nn.conv2d_nhwc(data, weight, 1, 1, 1)]


def panels(state):
    """The stages of a state that are panels."""
    return [stage for stage in state.stages if int(stage.origin) == 1]


@pytest.mark.parametrize(
    ("tensors", "packed", "plain"),
    [
        # Vectors of columns cannot be read from rows of the reduction.
        (products("NT", 4, 64, 64, 32), True, False),
        (products("TT", 4, 64, 64, 32), True, False),
        (scaled_products(4, 64, 64, 32), True, False),
        (products_of_turned(64, 64, 32), True, False),
        # Rows of 4 KiB fall into few sets of a cache.
        (products("NN", 1, 64, 1024, 32), True, True),
        (products("NN", 4, 64, 64, 32), False, True),
        (products("TN", 4, 64, 64, 32), False, True),
        # Too few rows share the copy.
        (products("NT", 4, 4, 64, 32), False, True),
        # Constant weights are laid out when the network is built.
        (dense(64, 32, 64), False, True),
        (image(14, 32, 64), False, True),
        (depthwise(14, 64), False, True),
    ],
)
def test_which_tasks_have_structures_with_panels(tensors, packed, plain):
    task = make_task(tensors, WIDE).task
    with_panels = [bool(panels(sketch.state)) for sketch in task.sketches]
    assert (any(with_panels), not all(with_panels)) == (packed, plain)
    assert len(task.sketches) <= 8


def test_weights_that_keep_their_layout_are_packed():
    task = auto_scheduler.SearchTask(
        compute_dag=dense(64, 32, 64),
        target=WIDE,
        layout_rewrite_option=LayoutRewriteOption.NO_REWRITE,
    )
    sketches, _ = ffi.generate_all_sym_sketches(task)
    assert all(panels(state) for state in sketches)


def test_panels_are_turned_and_shared_by_all_rows():
    [*_, sketch] = make_task(products("NT", 4, 128, 64, 32), WIDE).task.sketches
    [panel] = panels(sketch.state)
    assert [int(extent) for extent in panel.op.output(0).shape] == [4, 32, 64]
    host = next(s for s in sketch.state.stages if int(s.id) == int(panel.attach_stage))
    # Parallel over batches and panels; rows are inside.
    assert [str(loop.name) for loop in host.iters][:2] == ["ax0.0@ax2.0@", "ax1.0"]
    assert int(panel.attach_iter) == 0


def test_canonical_points_fill_the_registers_and_copy_once():
    group = make_task(products("NT", 4, 128, 64, 32), WIDE)
    functions = TaskPerfFunc(group.task.sketches, 1.0, "x", MLPModelPLWrapper()).sketch_funcs
    assert len(functions) == len(group.task.sketches)
    heights = set()
    for function in functions.values():
        roles = knob_roles(function.sketch)
        rows = [k for k, role in roles.items() if role is KnobRole.ROWS]
        for point in function.canonical:
            config = function.features.config(point)
            heights.add(int(np.prod([config[k] for k in rows])))
    assert {8, 12, 14} & heights
    assert max(heights) <= 30


def random_config(sketch, rng):
    """Lengths that the knobs may have, with register tiles that compile soon."""
    limits = {KnobRole.ROWS: 16, KnobRole.LANES: 32}
    roles, config = knob_roles(sketch), {}
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


def run(dag, state, inputs, shape):
    schedule, args = dag.apply_steps_from_state(state)
    out = tvm.nd.array(np.full(shape, np.nan, "float32"))
    tvm.build(schedule, args, "llvm")(*map(tvm.nd.array, inputs), out)
    return out.numpy()


def check(tensors, seed):
    """A random point of each sketch against the program that nobody scheduled."""
    group = make_task(tensors, "llvm -num-cores=2")
    dag = group.task.ansor_task.compute_dag
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(-1, 1, [int(s) for s in t.shape]).astype("float32") for t in tensors[:-1]]
    shape = [int(s) for s in tensors[-1].shape]
    expected = run(dag, dag.get_init_state(), inputs, shape)
    assert any(panels(sketch.state) for sketch in group.task.sketches)
    for sketch in group.task.sketches:
        config = random_config(sketch, random.Random(int(rng.integers(1 << 30))))
        found = run(dag, sketch.state_from_config(config), inputs, shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=str(config))


@settings(max_examples=6, deadline=None)
@given(
    st.sampled_from(["NT", "TT"]),
    st.sampled_from([12, 37, 64]),
    st.sampled_from([16, 24, 80]),
    st.integers(0, 99),
)
def test_products_with_a_turned_operand(form, rows, columns, seed):
    check(products(form, 3, rows, columns, 20), seed)


@settings(max_examples=2, deadline=None)
@given(st.sampled_from([16, 53]), st.integers(0, 99))
def test_products_with_far_rows(rows, seed):
    check(products("NN", 2, rows, 256, 12), seed)


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 99))
def test_products_with_neighbours_in_the_kernel(seed):
    check(scaled_products(2, 24, 32, 10), seed)
    check(products_of_turned(24, 32, 10), seed)


@pytest.mark.parametrize("tensors", [products("NT", 4, 53, 64, 20), products("NN", 1, 64, 512, 12)])
def test_features_equal_those_of_the_concrete_program(tensors):
    task = make_task(tensors, WIDE).task
    for sketch in task.sketches:
        pack = sketch.fetch_features()
        for seed in range(3):
            config = random_config(sketch, random.Random(seed))
            state = sketch.state_from_config(config)
            expected = features_of_state(task.ansor_task, state, pack)
            actual = features_at(pack, config, expected.shape)
            np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3, err_msg=str(config))


def test_elements_far_apart_count_as_two_operations_each():
    """Of a vector of the turned operand each element is loaded and inserted."""
    [sketch, *_] = make_task(products("NT", 1, 64, 64, 32), WIDE).task.sketches
    task, pack = sketch.parent_task.ansor_task, sketch.fetch_features()
    config = dict.fromkeys(
        (str(knob.name) for group in sketch.context.split_groups for knob in group.vars), 1
    )
    lanes = next(k for k, role in knob_roles(sketch).items() if role is KnobRole.LANES)
    config[lanes] = 16
    rows = features_of_state(task, sketch.state_from_config(config), pack)
    names = list(map(str, pack.feature_names))
    copies = np.expm1(rows[:, names.index("scalars_broadcast")])
    vectors = np.expm1(rows[:, names.index("vectors_loaded")])
    assert any(np.isclose(c, 32) and np.isclose(v, 0) for c, v in zip(copies, vectors))


def test_records_of_packed_programs_read_back():
    task = make_task(products("NT", 2, 53, 64, 24), WIDE).task
    for sketch in task.sketches:
        config = random_config(sketch, random.Random(5))
        line = auto_scheduler.measure_record.dump_record_to_string(
            auto_scheduler.MeasureInput(task.ansor_task, sketch.state_from_config(config)),
            auto_scheduler.MeasureResult([0.1], 0, "", 0.1, 0.0),
        )
        assert '"PKR"' in line
        read, _ = auto_scheduler.load_record_from_string(line)
        assert sketch.config_from_state(read.state) == config


def test_evolution_draws_and_mutates_packed_programs():
    tensors = products("NT", 2, 64, 64, 24)
    task = auto_scheduler.SearchTask(compute_dag=tensors, target=WIDE)
    policy = auto_scheduler.SketchPolicy(
        task,
        auto_scheduler.RandomModel(3),
        params={
            "search_space": "felix",
            "evolutionary_search_population": 32,
            "sample_init_min_population": 16,
        },
        seed=3,
        verbose=0,
    )
    states = [*policy.sample_initial_population(), *policy.evolutionary_search([], 8)]
    assert len(states) >= 16
    assert all(panels(state) for state in states)
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, [int(s) for s in t.shape]).astype("float32") for t in tensors[:-1]]
    expected = inputs[0] @ inputs[1].transpose(0, 2, 1)
    for state in states[:3]:
        found = run(task.compute_dag, state, inputs, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
