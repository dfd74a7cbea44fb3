"""Symbolic sketches: their number, their shape, and that every choice of knobs is correct."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import tvm
from testing_sketches import (
    CASES,
    MAX_SKETCHES,
    make_task,
    random_config,
    random_inputs,
    sketches_of,
)
from tvm import te, topi
from tvm.auto_scheduler import LayoutRewriteOption, SearchTask, pack_array
from tvm.felix import ffi
from tvm.felix.sym_task import make_task as make_sym_task


def _run(task, state, inputs):
    sch, args = task.compute_dag.apply_steps_from_state(
        state, LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    )
    inputs = list(inputs)
    for transform in task.compute_dag.layout_transforms(state):
        index = int(transform.tensor_index)
        inputs[index] = pack_array(inputs[index], transform)
    out = tvm.nd.array(np.full([int(s) for s in args[-1].shape], np.nan, "float32"))
    tvm.build(sch, args, target="llvm")(*[tvm.nd.array(x) for x in inputs], out)
    return out.numpy()


@pytest.mark.parametrize("name", CASES)
def test_sketches_are_few_and_none_fails(name):
    sketches, failures = sketches_of(make_task(name))
    assert failures == []
    assert 1 <= len(sketches) <= MAX_SKETCHES
    texts = {str(sketch) for sketch in sketches}
    assert len(texts) == len(sketches)


@pytest.mark.parametrize("name", CASES)
def test_every_random_tiling_computes_the_same(name):
    task = make_task(name)
    rng = random.Random(name)
    inputs = random_inputs(list(task.compute_dag.tensors)[:-1], np.random.default_rng(0))
    expected = _run(task, task.compute_dag.init_state, inputs)
    for sketch in sketches_of(task)[0]:
        config = random_config(sketch, rng)
        state = ffi.state_from_config(task, sketch, config)
        # Sums of at most 200 products of values below 1, in another order.
        np.testing.assert_allclose(
            _run(task, state, inputs), expected, rtol=1e-4, atol=1e-4, err_msg=f"{config}\n{state}"
        )


@pytest.mark.parametrize("name", ["conv3x3", "depthwise", "softmax", "max_pool"])
def test_configuration_of_a_state_is_the_one_it_was_made_from(name):
    task = make_task(name)
    rng = random.Random(1)
    for sketch in sketches_of(task)[0]:
        config = random_config(sketch, rng)
        state = ffi.state_from_config(task, sketch, config)
        assert ffi.extract_config_dict(sketch, state) == config
        assert ffi.extract_backbone(state) == ffi.extract_backbone(sketch)


def test_missing_and_unknown_knobs_are_refused():
    task = make_task("matmul")
    sketch = sketches_of(task)[0][0]
    config = random_config(sketch, random.Random(0))
    with pytest.raises(ValueError, match="knob sp_0_0 has no value"):
        ffi.state_from_config(task, sketch, {k: v for k, v in config.items() if k != "sp_0_0"})
    with pytest.raises(ValueError, match="values are given for the"):
        ffi.state_from_config(task, sketch, {**config, "sp_9_9": 1})


def test_symbolic_extents_equal_concrete_ones():
    task = make_task("conv3x3")
    rng = random.Random(3)
    for sketch in sketches_of(task)[0]:
        config = random_config(sketch, rng)
        concrete = task.compute_dag.infer_bound_from_state(
            ffi.state_from_config(task, sketch, config)
        )
        func, context = ffi.generate_code_for_state(task, sketch, True)
        sizes = dict(config)
        for group in context.split_groups:
            extent = int(group.extent_expr)
            sizes[str(group.extent.name)] = extent
            known = math.prod(config[str(var.name)] for var in group.vars)
            sizes[str(group.quotient.name)] = extent // known
        for stage, expected in zip(sketch.stages, concrete.stages):
            for loop, wanted in zip(stage.iters, expected.iters):
                if wanted.range is None:
                    continue
                variables = tvm.tir.analysis.undefined_vars(loop.range.extent)
                values = {v: sizes[str(v.name)] for v in variables if str(v.name) in sizes}
                extent = tvm.tir.stmt_functor.substitute(loop.range.extent, values)
                extent = tvm.arith.Analyzer().simplify(extent)
                assert int(extent) == int(wanted.range.extent), f"{stage.op.name} {loop.name}"


def test_tiled_stage_has_a_register_tile_without_unrolled_reductions():
    task = make_task("conv3x3")
    for sketch in sketches_of(task)[0]:
        tiled = next(s for s in sketch.stages if s.op.name.startswith("conv2d_nhwc"))
        assert [int(it.annotation) for it in tiled.iters[-4:]] == [1, 1, 1, 2]
        assert all(int(it.annotation) == 0 for it in tiled.iters[:-4])


def test_outermost_loops_are_parallel_in_every_sketch():
    for name in CASES:
        for sketch in sketches_of(make_task(name))[0]:
            assert "parallel" in str(sketch), f"{name}\n{sketch}"


@pytest.mark.parametrize(("cores", "fused"), [(1, 2), (4, 3)])
def test_pixels_of_few_channels_are_no_parallel_loop_of_their_own(cores, fused):
    """Rows are work enough for few cores, and a fused loop over pixels divides for each of them."""
    data = te.placeholder((1, 30, 30, 3), name="data")
    weight = te.placeholder((7, 7, 3, 16), name="weight")
    tensors = [data, weight, topi.nn.conv2d_nhwc(data, weight, 2, 3, 1)]
    task = SearchTask(compute_dag=tensors, target=f"llvm -num-cores={cores}")
    for sketch in sketches_of(task)[0]:
        padding = next(stage for stage in sketch.stages if stage.op.name == "PadInput")
        loops = {str(it.name): int(it.annotation) for it in padding.iters}
        [parallel] = [name for name, kind in loops.items() if kind == 3]
        assert parallel == "".join(f"ax{i}@" for i in range(fused)), loops


@pytest.mark.parametrize("rows", [1, 8])
def test_orders_of_loops_that_are_one_are_no_sketches_of_their_own(rows):
    """A single row has its blocks of columns in one order, so it would be measured twice."""
    data = te.placeholder((rows, 64), name="data")
    weight = te.placeholder((512, 64), name="weight")
    task = make_sym_task([data, weight, topi.nn.dense(data, weight)], "llvm -num-cores=1").task
    tiled = [sketch for sketch in task.sketches if "rfactor" not in str(sketch.state)]
    programs = set()
    for sketch in tiled:
        knobs = [str(knob.name) for group in sketch.context.split_groups for knob in group.vars]
        config = dict.fromkeys(knobs, 1) | {"sp_1_2": 32, "sp_2_0": 8}
        state = sketch.state_from_config(config)
        schedule, args = task.ansor_task.compute_dag.apply_steps_from_state(state)
        programs.add(str(tvm.lower(schedule, args)))
    assert len(programs) == len(tiled) == (2 if rows == 1 else 4)


def test_alternatives_of_many_stages_do_not_multiply():
    n = 64
    data = te.placeholder((n, n), name="data")
    weights = [te.placeholder((n, n), name=f"weight{i}") for i in range(8)]
    out = data
    for weight in weights:
        out = topi.nn.matmul(out, weight)
    task = make_sym_task([data, *weights, out], "llvm -mcpu=skylake-avx512").task
    assert len(task.sketches) == MAX_SKETCHES and not task.failures
    # Stages are whole, whatever tile a consumer reads of them, so that each has knobs of its own.
    for sketch in task.sketches:
        extents = {int(group.extent_expr) for group in sketch.context.split_groups}
        assert extents <= {n, 42}  # 42: register tiles that leave a remainder
