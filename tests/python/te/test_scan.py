"""Recurrences: numbers, schedules of their steps, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError


def cumsum(m=9, n=6):
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    start = te.compute((1, n), lambda _, i: X[0, i], name="start")
    step = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    return X, state, start, step, te.scan(start, step, state, inputs=[X], name="sums")


def check_cumsum(sch, X, out, target="llvm"):
    func = tvm.build(sch, [X, out], target=target)
    x = np.random.default_rng(1).normal(size=[int(e) for e in X.shape]).astype("float32")
    result = tvm.nd.array(np.zeros_like(x))
    func(tvm.nd.array(x), result)
    np.testing.assert_allclose(result.numpy(), np.cumsum(x, axis=0), rtol=1e-4, atol=1e-5)


def test_running_sums_equal_numpy():
    X, _, _, _, out = cumsum()
    check_cumsum(te.create_schedule(out.op), X, out)


def test_lowered_scan_has_its_start_before_the_loop_of_its_steps():
    X, _, _, _, out = cumsum(4, 3)
    mod = tvm.driver.form_irmodule(te.create_schedule(out.op), [X, out])
    text = str(tvm.tir.transform.Simplify()(mod))
    body = [line.strip() for line in text.splitlines() if "for " in line or " = " in line]
    assert body[-4:] == [
        "sums[0, i] = X[0, i]",
        "for sums_idx in range(3):",
        "for i_1 in range(3):",
        "sums[sums_idx + 1, i_1] = sums[sums_idx, i_1] + X[sums_idx + 1, i_1]",
    ]


@pytest.mark.parametrize("how", ["split", "vectorize", "cache_state", "cache_result", "inline"])
def test_scheduled_steps_equal_numpy(how):
    m, n = 9, 8
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    start = te.compute((1, n), lambda _, i: X[0, i], name="start")
    twice = te.compute((m, n), lambda t, i: state[t - 1, i] * 2.0, name="twice")
    step = te.compute((m, n), lambda t, i: twice[t, i] * 0.5 + X[t, i], name="step")
    out = te.scan(start, step, state, inputs=[X])
    s = te.create_schedule(out.op)
    if how == "split":
        s[step].split(step.op.axis[1], 3)
        s[out].split(out.op.scan_axis, 2)
    elif how == "vectorize":
        s[step].vectorize(step.op.axis[1])
        s[start].vectorize(start.op.axis[1])
        s[twice].compute_at(s[step], step.op.axis[0])
    elif how == "cache_state":
        cache = s.cache_read(state, "local", [twice])
        s[cache].compute_at(s[twice], twice.op.axis[0])
        s[twice].compute_at(s[step], step.op.axis[1])
    elif how == "cache_result":
        cache = s.cache_write(step, "local")
        s[cache].compute_at(s[step], step.op.axis[1])
    else:
        s[twice].compute_inline()
    check_cumsum(s, X, out)


def test_rnn_cell_with_a_matrix_product_in_each_step():
    steps, n, h = 5, 3, 7
    X = te.placeholder((steps, n, h), name="X")
    W = te.placeholder((h, h), name="W")
    state = te.placeholder((steps, n, h), name="state")
    start = te.compute((1, n, h), lambda _, i, j: te.tanh(X[0, i, j]), name="start")
    k = te.reduce_axis((0, h), name="k")
    product = te.compute(
        (steps, n, h), lambda t, i, j: te.sum(state[t - 1, i, k] * W[j, k], axis=k), name="product"
    )
    step = te.compute(
        (steps, n, h), lambda t, i, j: te.tanh(product[t, i, j] + X[t, i, j]), name="step"
    )
    out = te.scan(start, step, state, inputs=[X, W])
    s = te.create_schedule(out.op)
    s[product].reorder(product.op.axis[1], k, product.op.axis[2])
    func = tvm.build(s, [X, W, out], target="llvm")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(steps, n, h)).astype("float32")
    w = rng.normal(size=(h, h)).astype("float32")
    result = tvm.nd.array(np.zeros_like(x))
    func(tvm.nd.array(x), tvm.nd.array(w), result)
    hidden = [np.tanh(x[0])]
    for t in range(1, steps):
        hidden.append(np.tanh(hidden[-1] @ w.T + x[t]))
    np.testing.assert_allclose(result.numpy(), np.stack(hidden), rtol=1e-4, atol=1e-5)


def test_two_states_that_read_each_other():
    m, n = 8, 4
    A = te.placeholder((m, n), name="A")
    B = te.placeholder((m, n), name="B")
    fib0 = te.compute((1, n), lambda _, i: te.const(0.0), name="fib0")
    sum0 = te.compute((1, n), lambda _, i: te.const(1.0), name="sum0")
    fib = te.compute((m, n), lambda t, i: B[t - 1, i], name="fib")
    both = te.compute((m, n), lambda t, i: A[t - 1, i] + B[t - 1, i], name="both")
    first, second = te.scan([fib0, sum0], [fib, both], [A, B])
    s = te.create_schedule([first.op])
    func = tvm.build(s, [first, second], target="llvm")
    a, b = (tvm.nd.array(np.zeros((m, n), "float32")) for _ in range(2))
    func(a, b)
    np.testing.assert_array_equal(a.numpy()[:, 0], [0, 1, 1, 2, 3, 5, 8, 13])
    np.testing.assert_array_equal(b.numpy()[:, 2], [1, 1, 2, 3, 5, 8, 13, 21])


def test_result_of_a_scan_is_read_like_any_other_tensor():
    X, _, _, _, out = cumsum()
    Y = te.compute(X.shape, lambda t, i: out[t, i] * 3.0, name="Y")
    s = te.create_schedule(Y.op)
    func = tvm.build(s, [X, Y], target="llvm")
    x = np.random.default_rng(0).random((9, 6)).astype("float32")
    result = tvm.nd.array(np.zeros_like(x))
    func(tvm.nd.array(x), result)
    np.testing.assert_allclose(result.numpy(), 3 * np.cumsum(x, axis=0), rtol=1e-4)


def test_start_of_several_positions():
    m = 10
    state = te.placeholder((m,), "int32", name="state")
    start = te.compute((2,), lambda i: i, name="start")
    step = te.compute((m,), lambda t: state[t - 1] + state[t - 2], name="step")
    fib = te.scan(start, step, state)
    func = tvm.build(te.create_schedule(fib.op), [fib], target="llvm")
    result = tvm.nd.array(np.zeros(m, "int32"))
    func(result)
    np.testing.assert_array_equal(result.numpy(), [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])


def test_parts_are_stages_of_a_group_attached_to_the_scan():
    X, _, _, step, out = cumsum()
    s = te.create_schedule(out.op)
    assert s[step].group.attach_stage.same_as(s[out])
    assert s[step].group.op is None
    assert out.op.scan_axis.var.name == "sums.idx"
    with pytest.raises(ScheduleError, match="step.* is in a group"):
        s[step].compute_at(s[out], out.op.scan_axis)
    with pytest.raises(ScheduleError, match="a group has no loops"):
        s[step].group.split(step.op.axis[0], 2)
    with pytest.raises(ScheduleError, match="the steps of a scan are computed in its loop"):
        s[step].group.compute_root()


def test_env_threads_need_a_scan_and_extents():
    X, _, start, step, out = cumsum()
    s = te.create_schedule(out.op)
    thread = te.thread_axis((0, 6), "threadIdx.x")
    with pytest.raises(ScheduleError, match=r"env_threads\(step\): expected the stage of a scan"):
        s[step].env_threads([thread])
    with pytest.raises(ScheduleError, match="thread axes of given extents"):
        s[out].env_threads([te.thread_axis("threadIdx.x")])
    s[out].env_threads([thread])
    s[step].bind(step.op.axis[1], thread)
    s[start].bind(start.op.axis[1], thread)
    text = str(tvm.lower(s, [X, out], simple_mode=True))
    assert text.count('"thread_extent"') == 1
    assert text.index("thread_extent") < text.index("for sums_idx")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (lambda a: ([a(1, 4)], [a(8, 4), a(8, 4)]), "1 starts, 2 updates and 1 states"),
        (lambda a: ([a(1, 5)], [a(8, 4)]), "axis 1 of start s has extent 5"),
        (lambda a: ([a(1, 4)], [a(9, 4)]), "update s has 9 steps, its state state has 8"),
        (lambda a: ([a(1)], [a(8, 4)]), "start s has 1 axes, its state state has 2"),
    ],
)
def test_parts_that_do_not_agree_are_refused(parts, message):
    state = te.placeholder((8, 4), name="state")
    starts, updates = parts(lambda *shape: te.compute(shape, lambda *i: te.const(0.0), name="s"))
    with pytest.raises(ValueError, match=message):
        te.scan(starts, updates, [state])


def test_placeholder_as_start_is_refused():
    X, state, _, step, _ = cumsum()
    with pytest.raises(ValueError, match="start X0 is a placeholder"):
        te.scan(te.placeholder((1, 6), name="X0"), step, state)


def test_steps_stay_in_order():
    _, _, _, _, out = cumsum()
    s = te.create_schedule(out.op)
    outer, inner = s[out].split(out.op.scan_axis, 2)
    with pytest.raises(ScheduleError, match="sums.idx.outer runs in order"):
        s[out].reorder(inner, outer)
    with pytest.raises(ScheduleError, match="the steps of a scan run in order"):
        s[out].parallel(outer)
    s[out].unroll(inner)


@pytest.mark.parametrize("around_the_steps", [True, False])
def test_steps_on_threads_equal_numpy(around_the_steps):
    """One kernel whose threads go through all steps, or one kernel per step."""
    n, width = 20, 8
    X, _, start, step, out = cumsum(9, n)
    s = te.create_schedule(out.op)
    if around_the_steps:
        block = te.thread_axis((0, (n + width - 1) // width), "blockIdx.x")
        thread = te.thread_axis((0, width), "threadIdx.x")
        s[out].env_threads([block, thread])
    else:
        block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    for part in (start, step):
        outer, inner = s[part].split(part.op.axis[1], factor=width)
        s[part].bind(outer, block)
        s[part].bind(inner, thread)
    check_cumsum(s, X, out, tvm.target.emulated("cuda", check_races=True))


def test_threads_exchange_the_state_of_a_step_through_shared_memory():
    steps, h = 5, 6
    X = te.placeholder((steps, h), name="X")
    W = te.placeholder((h, h), name="W")
    state = te.placeholder((steps, h), name="state")
    start = te.compute((1, h), lambda _, j: te.tanh(X[0, j]), name="start")
    k = te.reduce_axis((0, h), name="k")
    product = te.compute(
        (steps, h), lambda t, j: te.sum(state[t - 1, k] * W[j, k], axis=k), name="product"
    )
    step = te.compute((steps, h), lambda t, j: te.tanh(product[t, j] + X[t, j]), name="step")
    out = te.scan(start, step, state, inputs=[X, W], name="rnn")
    s = te.create_schedule(out.op)
    thread = te.thread_axis((0, h), "threadIdx.x")
    s[out].env_threads([thread])
    cache = s.cache_read(state, "shared", [product])
    s[cache].compute_at(s[step], step.op.axis[0])
    s[product].set_scope("local")
    s[product].compute_at(s[step], step.op.axis[1])
    for part in (cache, start, step):
        s[part].bind(s[part].op.axis[1], thread)
    func = tvm.build(s, [X, W, out], target=tvm.target.emulated("cuda", check_races=True))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(steps, h)).astype("float32")
    w = rng.normal(size=(h, h)).astype("float32")
    result = tvm.nd.array(np.zeros_like(x))
    func(tvm.nd.array(x), tvm.nd.array(w), result)
    hidden = [np.tanh(x[0])]
    for t in range(1, steps):
        hidden.append(np.tanh(w @ hidden[-1] + x[t]))
    np.testing.assert_allclose(result.numpy(), np.stack(hidden), rtol=1e-4, atol=1e-5)
