"""Sketches of computations of rows, such as softmax: lanes along the reduction, rows in cache."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, topi
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix.perf_func import TaskPerfFunc
from tvm.felix.sym_task import make_task


def softmax(*shape):
    a = te.placeholder(shape, name="a")
    return [a, topi.nn.softmax(a, axis=len(shape) - 1)]


def layer_norm(rows, columns):
    a = te.placeholder((rows, columns), name="a")
    scale, shift = (te.placeholder((columns,), name=name) for name in ("scale", "shift"))
    return [a, scale, shift, topi.nn.layer_norm(a, scale, shift, [1], 1e-5)]


def loops_of(sketch):
    return [line.strip() for line in str(sketch.state).splitlines()]


@pytest.mark.parametrize("tensors", [softmax(64, 96), softmax(2, 64, 96), layer_norm(64, 96)])
def test_all_stages_run_inside_one_parallel_loop_of_rows_with_lanes_along_the_reduction(tensors):
    for sketch in make_task(tensors, target="llvm -num-cores=2").task.sketches:
        lines = loops_of(sketch)
        assert sum(line.startswith("parallel") for line in lines) == 1
        reductions = [i for i, line in enumerate(lines) if ".rf" in line]
        assert len(reductions) == 2
        assert all(lines[i - 1].startswith("vectorize k") for i in reductions)


def test_too_few_rows_for_the_cores_stay_apart():
    [group] = [make_task(softmax(2, 4096), target="llvm -num-cores=8")]
    for sketch in group.task.sketches:
        lines = loops_of(sketch)
        assert sum(line.startswith("parallel") for line in lines) > 1


def test_rows_that_no_vector_divides_are_reduced_step_by_step():
    for sketch in make_task(softmax(64, 197), target="llvm -num-cores=2").task.sketches:
        assert ".rf" not in str(sketch.state)


def in_one_row(tensors):
    """How many sketches have one loop of vectors and none else."""
    sketches = make_task(tensors, target="llvm -num-cores=2").task.sketches
    return sum(
        [line.split()[0] for line in loops_of(sketch) if line.endswith(")")]
        == ["parallel", "vectorize"]
        for sketch in sketches
    )


def test_elements_that_come_from_their_own_place_are_one_row():
    a, b = (te.placeholder((2, 32, 7, 7), name=name) for name in "ab")
    scalar = te.placeholder((), name="scalar")
    assert in_one_row([a, topi.nn.relu(a)]) == 1
    assert in_one_row([a, b, topi.nn.gelu(topi.add(a, b))]) == 1
    assert in_one_row([a, scalar, topi.multiply(a, scalar)]) == 1


def test_elements_that_depend_on_their_place_stay_in_rows():
    a, bias = te.placeholder((40, 24), name="a"), te.placeholder((24,), name="bias")
    wider = te.placeholder((40, 32), name="wider")
    assert in_one_row([a, bias, topi.add(a, bias)]) == 0
    assert in_one_row([a, topi.transpose(a, (1, 0))]) == 0
    assert in_one_row([wider, topi.strided_slice(wider, [0, 0], [40, 24])]) == 0
    assert in_one_row([a, te.compute(a.shape, lambda i, j: a[i, j] * (i + j), name="b")]) == 0
    # What is inlined must keep to its place as well.
    assert in_one_row([a, bias, topi.nn.relu(topi.add(a, bias))]) == 0


def activation(*shape):
    a = te.placeholder(shape, name="a")
    return [a, topi.nn.gelu(topi.add(a, te.const(0.5, "float32")))]


@pytest.mark.parametrize(
    "make",
    [
        lambda: softmax(40, 96),
        lambda: softmax(3, 20, 48),
        lambda: layer_norm(40, 96),
        lambda: activation(3, 5, 7, 7),
    ],
)
def test_every_tiling_of_rows_computes_the_same(make):
    tensors = make()
    group = make_task(tensors, target="llvm -num-cores=2")
    rng = np.random.default_rng(5)
    inputs = [rng.uniform(-1, 1, [int(s) for s in t.shape]).astype("float32") for t in tensors[:-1]]

    def run(schedule, args):
        out = tvm.nd.array(np.full([int(s) for s in tensors[-1].shape], np.nan, "float32"))
        tvm.build(schedule, args, "llvm")(*map(tvm.nd.array, inputs), out)
        return out.numpy()

    expected = run(te.create_schedule(tensors[-1].op), tensors)
    functions = TaskPerfFunc(group.task.sketches, 1.0, "rows", MLPModelPLWrapper()).sketch_funcs
    for function in functions.values():
        for point in function.features.config_maker.make(6, rng):
            state = function.sketch.state_from_config(function.features.config(point))
            found = run(*group.task.ansor_task.compute_dag.apply_steps_from_state(state))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=str(state))
