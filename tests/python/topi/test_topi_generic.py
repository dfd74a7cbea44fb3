"""Default schedules leave the numbers as they are."""

import numpy as np
import pytest

import tvm
from testing_topi import random_array
from tvm import te, topi
from tvm.topi import generic

RNG = np.random.default_rng(0)
CASES = {
    "schedule_injective": ((8, 300), lambda x: topi.exp(topi.transpose(topi.add(x, 1.0)))),
    "schedule_reduce": ((8, 300), lambda x: topi.mean(topi.relu(x), 1)),
    "schedule_softmax": ((8, 300), topi.nn.softmax),
    "schedule_dense": ((8, 30), lambda x: topi.relu(topi.nn.dense(x, x))),
    "schedule_conv2d_nhwc": (
        (1, 12, 12, 16),
        lambda x: topi.nn.conv2d_nhwc(x, topi.full((3, 3, 16, 8), "float32", 0.5), 1, 1),
    ),
    "schedule_extern": ((8, 30), lambda x: topi.add(topi.sort(topi.exp(x)), 1.0)),
    "schedule_scatter": ((30,), lambda x: topi.exp(topi.cumsum(topi.exp(x)))),
}


def run(schedule, x, out, array):
    """Result of the schedule for the array."""
    result = tvm.nd.array(np.zeros([int(n) for n in out.shape], "float32"))
    tvm.build(schedule, [x, out], "llvm")(tvm.nd.array(array), result)
    return result.numpy()


@pytest.mark.parametrize("name", CASES)
def test_default_schedule_computes_the_same(name):
    shape, fn = CASES[name]
    x = te.placeholder(shape, name="x")
    out = fn(x)
    array = random_array(RNG, *shape)
    expected = run(te.create_schedule(out.op), x, out, array)
    np.testing.assert_allclose(
        run(getattr(generic, name)(out), x, out, array), expected, rtol=1e-5, atol=1e-5
    )


def test_pool_schedules_take_the_layout():
    x = te.placeholder((1, 8, 8, 16), name="x")
    out = topi.nn.pool2d(x, 2, 2, 1, 0, "max", layout="NHWC")
    array = random_array(RNG, 1, 8, 8, 16)
    ours = run(generic.schedule_pool([out], "NHWC"), x, out, array)
    np.testing.assert_array_equal(ours, array.reshape(1, 4, 2, 4, 2, 16).max((2, 4)))


def test_default_schedule_takes_symbolic_shapes():
    n = te.size_var("n")
    x = te.placeholder((n, 8), name="x")
    out = topi.sum(topi.exp(x), 1)
    array = random_array(RNG, 5, 8)
    result = tvm.nd.array(np.zeros(5, "float32"))
    tvm.build(generic.schedule_reduce(out), [x, out], "llvm")(tvm.nd.array(array), result)
    np.testing.assert_allclose(result.numpy(), np.exp(array).sum(1), rtol=1e-5)


def test_traverse_inline_inlines_what_is_injective_and_calls_back():
    x = te.placeholder((4, 5), name="x")
    total = topi.sum(topi.exp(x), 1)
    out = topi.add(topi.sqrt(total), 1.0)
    s = te.create_schedule(out.op)
    met = []
    topi.utils.traverse_inline(s, out.op, lambda op: met.append(op.name))
    assert met == ["T_exp", "T_sum", "T_sqrt", "T_add"]
    array = np.abs(random_array(RNG, 4, 5))
    result = tvm.nd.array(np.zeros(4, "float32"))
    tvm.build(s, [x, out], "llvm")(tvm.nd.array(array), result)
    np.testing.assert_allclose(result.numpy(), np.sqrt(np.exp(array).sum(1)) + 1, rtol=1e-5)
