"""New layouts of constant inputs."""

from __future__ import annotations

import numpy as np
import pytest

from tvm import auto_scheduler, te
from tvm.auto_scheduler import (
    LayoutRewriteOption,
    get_shape_from_rewritten_layout,
    pack_array,
    rewrite_compute_body,
)


def _tiled_conv(h=8, ci=4, co=16, vector=8):
    dag = auto_scheduler.ComputeDAG(
        auto_scheduler.make_workload_key("test_conv_relu", (h, h, ci, co, 3, 1, 1))
    )
    state = dag.get_init_state()
    conv = next(i for i, op in enumerate(dag.ops) if op.name == "conv2d_nhwc")
    n, y, x, f, ry, rx, rc = state[conv].iters
    f0, f1 = state.split(conv, f, [vector])
    c0, c1 = state.split(conv, rc, [2])
    state.reorder(conv, [f0, n, y, c0, ry, rx, c1, x, f1])
    state.vectorize(conv, state[conv].iters[-1])
    return dag, state


def test_new_layout_is_the_loops_that_index_the_input():
    dag, state = _tiled_conv()
    (transform,) = dag.layout_transforms(state)
    assert transform.placeholder == "weight"
    assert transform.tensor_index == 1
    assert [int(d) for d in transform.dims] == [3, 2, 0, 1, 2, 3]
    assert [int(e) for e in transform.extents] == [2, 2, 3, 3, 2, 8]
    assert [int(s) for s in transform.strides] == [8, 2, 1, 1, 1, 1]


def test_pack_array_follows_the_description():
    dag, state = _tiled_conv()
    (transform,) = dag.layout_transforms(state)
    array = np.arange(3 * 3 * 4 * 16).reshape(3, 3, 4, 16)
    packed = pack_array(array, transform)
    assert packed.flags["C_CONTIGUOUS"]
    assert packed[1, 0, 2, 1, 1, 5] == array[2, 1, 0 * 2 + 1, 1 * 8 + 5]


def test_pack_array_refuses_another_shape():
    dag, state = _tiled_conv()
    (transform,) = dag.layout_transforms(state)
    with pytest.raises(ValueError, match="weight has shape"):
        pack_array(np.zeros((3, 3, 4, 8)), transform)


@pytest.mark.parametrize(
    "option",
    [LayoutRewriteOption.INSERT_TRANSFORM_STAGE, LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED],
)
def test_rewritten_program_gives_the_same_result(option, random_inputs, run_schedule):
    dag, state = _tiled_conv()
    inputs = random_inputs(dag)
    expected = run_schedule(*dag.apply_steps_from_state(dag.get_init_state()), inputs)
    sch, args = dag.apply_steps_from_state(state, option)
    if option == LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED:
        (transform,) = dag.layout_transforms(state)
        inputs[1] = pack_array(inputs[1], transform)
        assert [int(s) for s in args[1].shape] == list(inputs[1].shape)
    np.testing.assert_allclose(run_schedule(sch, args, inputs), expected, rtol=1e-4, atol=1e-4)


def test_loops_in_the_order_of_the_dimensions_keep_the_layout():
    dag, _ = _tiled_conv()
    state = dag.get_init_state()
    conv = next(i for i, op in enumerate(dag.ops) if op.name == "conv2d_nhwc")
    n, y, x, f, ry, rx, rc = state[conv].iters
    state.reorder(conv, [n, y, x, ry, rx, rc, f])
    assert dag.layout_transforms(state) == []


def test_loops_of_one_iteration_keep_their_place_in_the_layout(random_inputs, run_schedule):
    dag, state = _tiled_conv(vector=1)
    (transform,) = dag.layout_transforms(state)
    assert [int(e) for e in transform.extents] == [16, 2, 3, 3, 2, 1]
    inputs = random_inputs(dag)
    expected = run_schedule(*dag.apply_steps_from_state(dag.get_init_state()), inputs)
    sch, args = dag.apply_steps_from_state(state, LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED)
    inputs[1] = pack_array(inputs[1], transform)
    np.testing.assert_allclose(run_schedule(sch, args, inputs), expected, rtol=1e-4, atol=1e-4)


def test_a_split_with_remainder_keeps_the_layout():
    dag, _ = _tiled_conv()
    state = dag.get_init_state()
    conv = next(i for i, op in enumerate(dag.ops) if op.name == "conv2d_nhwc")
    state.split(conv, state[conv].iters[3], [5])
    assert dag.layout_transforms(state) == []


def product(free=True):
    """x @ weight, sizes 6 x 8 x 12."""
    x, weight = te.placeholder((6, 8), name="x"), te.placeholder((8, 12), name="weight")
    k = te.reduce_axis((0, 8), name="k")
    attrs = {"layout_free_placeholders": [weight]} if free else {}
    out = te.compute(
        (6, 12), lambda i, j: te.sum(x[i, k] * weight[k, j], axis=k), name="out", attrs=attrs
    )
    return x, out


def test_shapes_are_read_off_layouts():
    shape = get_shape_from_rewritten_layout("3j2k4j4k", ["k", "j"])
    assert [int(extent) for extent in shape] == [8, 12]
    with pytest.raises(ValueError, match='"3j2k4j4k": it has no axis i'):
        get_shape_from_rewritten_layout("3j2k4j4k", ["i"])
    for text in ("j3", "3", "0j", "3j-2k", "99999999999j"):
        with pytest.raises(ValueError, match="expected an extent and the name of an axis"):
            get_shape_from_rewritten_layout(text, ["j"])


def test_a_body_is_rewritten_for_another_layout(run_schedule):
    x, out = product()
    rewritten = rewrite_compute_body(out, "3j2k4j4k")
    packed = next(t for t in rewritten.op.input_tensors if str(t.op.name) == "weight")
    assert [int(extent) for extent in packed.shape] == [3, 2, 4, 4]
    rng = np.random.default_rng(0)
    a, w = (rng.uniform(-1, 1, shape).astype("float32") for shape in ((6, 8), (8, 12)))
    w_packed = w.reshape(2, 4, 3, 4).transpose(2, 0, 3, 1)
    schedule = te.create_schedule(rewritten.op)
    result = run_schedule(schedule, [x, packed, rewritten], [a, np.ascontiguousarray(w_packed)])
    np.testing.assert_allclose(result, a @ w, rtol=1e-5, atol=1e-5)


def test_what_cannot_be_laid_out_anew_is_refused():
    with pytest.raises(ValueError, match="out has 0 layout-free inputs"):
        rewrite_compute_body(product(free=False)[1], "12j8k")
    with pytest.raises(ValueError, match="layout of weight: there is no axis i"):
        rewrite_compute_body(product()[1], "12i8k")
    weight = te.placeholder((9,), name="weight")
    shifted = te.compute(
        (8,), lambda i: weight[i + 1], name="out", attrs={"layout_free_placeholders": [weight]}
    )
    with pytest.raises(ValueError, match=r"layout of weight: it is read at \[i \+ 1\]"):
        rewrite_compute_body(shifted, "3i3i")
