"""New layouts of constant inputs."""

from __future__ import annotations

import numpy as np
import pytest

from tvm import auto_scheduler
from tvm.auto_scheduler import LayoutRewriteOption, pack_array


def _tiled_conv(h=8, ci=4, co=16):
    dag = auto_scheduler.ComputeDAG(
        auto_scheduler.make_workload_key("test_conv_relu", (h, h, ci, co, 3, 1, 1))
    )
    state = dag.get_init_state()
    conv = next(i for i, op in enumerate(dag.ops) if op.name == "conv2d_nhwc")
    n, y, x, f, ry, rx, rc = state[conv].iters
    f0, f1 = state.split(conv, f, [8])
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


def test_a_split_with_remainder_keeps_the_layout():
    dag, _ = _tiled_conv()
    state = dag.get_init_state()
    conv = next(i for i, op in enumerate(dag.ops) if op.name == "conv2d_nhwc")
    state.split(conv, state[conv].iters[3], [5])
    assert dag.layout_transforms(state) == []
