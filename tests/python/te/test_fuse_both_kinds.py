"""Loops over spatial and reduction axes at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te


def row_sums(rows, columns):
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return te.create_schedule(B.op), A, B


def check(s, A, B):
    rows, columns = map(int, A.shape)
    values = np.random.default_rng(0).normal(size=(rows, columns)).astype("float32")
    result = tvm.nd.array(np.full(rows, np.nan, "float32"))
    tvm.build(s, [A, B], target="llvm")(tvm.nd.array(values), result)
    np.testing.assert_allclose(result.numpy(), values.sum(1), rtol=1e-4, atol=1e-5)


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.booleans(), st.integers(1, 5), st.booleans())
def test_sums_are_right_in_any_order_and_split(rows, columns, swapped, factor, parts):
    s, A, B = row_sums(rows, columns)
    i, k = B.op.axis[0], B.op.reduce_axis[0]
    if swapped:
        s[B].reorder(k, i)
        i, k = k, i
    fused = s[B].fuse(i, k)
    if parts:
        s[B].split(fused, nparts=factor)
    else:
        s[B].split(fused, factor=factor)
    check(s, A, B)


def test_a_part_of_the_sum_may_stay_outside_of_the_fused_loop():
    s, A, B = row_sums(6, 10)
    outer, inner = s[B].split(B.op.reduce_axis[0], factor=4)
    s[B].reorder(outer, B.op.axis[0], inner)
    s[B].fuse(B.op.axis[0], inner)
    check(s, A, B)


def test_such_a_loop_runs_in_order():
    s, _, B = row_sums(4, 4)
    fused = s[B].fuse(B.op.axis[0], B.op.reduce_axis[0])
    with pytest.raises(tvm.error.ScheduleError, match="a reduction loop carries"):
        s[B].parallel(fused)


@pytest.mark.parametrize("primitive", ["rfactor", "cache_write", "bind"])
def test_what_needs_loops_of_one_kind_says_so(primitive):
    s, A, B = row_sums(4, 4)
    fused = s[B].fuse(B.op.axis[0], B.op.reduce_axis[0])
    with pytest.raises(tvm.error.ScheduleError, match="spatial and reduction axes at once"):
        if primitive == "rfactor":
            s.rfactor(B, fused)
        elif primitive == "cache_write":
            s.cache_write(B, "local")
        else:
            s[B].bind(fused, te.thread_axis("threadIdx.x"))
            tvm.lower(s, [A, B])


def test_the_steps_of_a_scan_stay_by_themselves():
    X = te.placeholder((5, 3), name="X")
    state = te.placeholder((5, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    scan = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(scan.op)
    s[scan].env_threads(te.thread_axis((0, 3), "threadIdx.x"))
    thread, step = s[scan].leaf_iter_vars
    with pytest.raises(tvm.error.ScheduleError, match="one of them runs in order"):
        s[scan].fuse(thread, step)
