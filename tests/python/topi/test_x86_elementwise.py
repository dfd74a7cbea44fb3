"""The hand-written schedules of elementwise work and softmax, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, topi
from tvm.topi import x86


def run(schedule, tensors, arrays):
    function = tvm.build(schedule, tensors, target="llvm", name="f")["f"]
    result = tvm.nd.empty(tuple(int(size) for size in tensors[-1].shape), tensors[-1].dtype)
    function(*(tvm.nd.array(array) for array in arrays), result)
    return result.numpy()


@settings(max_examples=7, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
    vectors=st.sampled_from([1, 2, 4]),
)
def test_a_chain_of_elementwise_stages_is_one_loop_for_any_shape(shape, vectors):
    A, B = (te.placeholder(shape, name=name) for name in "AB")
    C = topi.add(topi.exp(A), B)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype("float32") for _ in range(2))
    schedule = x86.schedule_injective(C, vectors)
    lines = tvm.driver.form_irmodule(schedule, [A, B, C]).script().splitlines()
    loops = [line for line in lines if line.lstrip().startswith("for ")]
    # One over chunks, and the vector itself where there is more than one chunk.
    assert len([line for line in loops if "vectorized" not in line]) <= 1
    got = run(schedule, [A, B, C], [a, b])
    np.testing.assert_allclose(got, np.exp(a) + b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(5, 64), (2, 3, 128)])
def test_softmax_of_whole_vectors_matches_numpy(shape):
    A = te.placeholder(shape, name="A")
    B = topi.nn.softmax(A)
    a = np.random.default_rng(0).standard_normal(shape).astype("float32")
    power = np.exp(a - a.max(-1, keepdims=True))
    expected = power / power.sum(-1, keepdims=True)
    got = run(x86.schedule_softmax(B, vectors=1), [A, B], [a])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


def test_softmax_that_cannot_be_scheduled_says_what_to_change():
    B = topi.nn.softmax(te.placeholder((4, 20), name="A"))
    with pytest.raises(ValueError, match="two or more axes; reshape"):
        x86.schedule_softmax(topi.nn.softmax(te.placeholder((64,), name="A")))
    with pytest.raises(ValueError, match="rows of 20 are no multiple.*pass fewer vectors"):
        x86.schedule_softmax(B)


def test_stages_that_many_ways_lead_to_are_visited_once():
    a = te.placeholder((16,), name="a")
    b = a
    # 2^24 ways lead from the last stage to the first.
    for _ in range(24):
        left, right = topi.add(b, 1.0), topi.multiply(b, 0.25)
        b = topi.minimum(left, right)
    schedule = x86.schedule_injective(topi.nn.relu(b), 1)
    stages = [stage for stage in schedule.stages if isinstance(stage.op, te.ComputeOp)]
    assert len(stages) == 3 * 24 + 1
    inlined = 2
    assert {stage.attach_type for stage in stages[:-1]} == {inlined}


def test_results_may_come_in_a_list_and_extents_be_symbolic():
    n = te.var("n")
    A = te.placeholder((n, 5), name="A")
    B = topi.exp(topi.negative(A))
    a = np.linspace(-1, 1, 35, dtype="float32").reshape(7, 5)
    got = tvm.nd.empty(a.shape)
    tvm.build(x86.schedule_injective([B]), [A, B], "llvm")(tvm.nd.array(a), got)
    np.testing.assert_allclose(got.numpy(), np.exp(-a), rtol=1e-6)
    with pytest.raises(ValueError, match="schedule_injective schedules one tensor, got 2"):
        x86.schedule_injective([B, B])


@pytest.mark.parametrize("shape", [(1, 3, 9, 37), (2, 2, 5, 4), (3, 5, 16)])
def test_images_by_planes_become_pixels(shape):
    axes = (0, 2, 3, 1) if len(shape) == 4 else (1, 2, 0)
    data = te.placeholder(shape, name="data")
    out = topi.transpose(data, axes)
    function = tvm.build(topi.schedule_for(out, "llvm"), [data, out], "llvm")
    array = np.random.default_rng(0).standard_normal(shape).astype("float32")
    result = tvm.nd.empty([int(size) for size in out.shape], "float32")
    function(tvm.nd.array(array), result)
    np.testing.assert_array_equal(result.numpy(), array.transpose(axes))
