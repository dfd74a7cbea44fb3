"""Regions of producers that no number or variable bounds, and indices of other types."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


def run(sch, inputs, output, *arrays, target="llvm"):
    func = tvm.build(sch, [*inputs, output], target=target)
    shape = [int(extent) for extent in output.shape]
    result = tvm.nd.array(np.full(shape, -7, str(output.dtype)))
    func(*map(tvm.nd.array, arrays), result)
    return result.numpy()


def test_elements_chosen_by_another_tensor_need_all_of_it():
    # Which element of B is read is known once I is computed, which is after B.
    A = te.placeholder((6,), "int32", name="A")
    B = te.compute((6,), lambda i: A[i] * 2, name="B")
    k = te.reduce_axis((0, 6), name="k")
    I = te.compute((1,), lambda _: te.max(A[k], axis=k), name="I")
    C = te.compute((3,), lambda i: B[tir.floormod(I[0], 6)] + i, name="C")
    a = np.array([1, 5, 2, 0, 4, 3], "int32")
    for attach in (False, True):
        s = te.create_schedule(C.op)
        if attach:
            s[I].compute_at(s[C], C.op.axis[0])
        np.testing.assert_array_equal(run(s, [A], C, a), 2 * a[5] + np.arange(3))


def test_quotient_of_a_run_time_size_leaves_a_region_of_that_size():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[tir.truncdiv(n + i, 4)], name="C")
    s = te.create_schedule(C.op)
    assert "1073741825" not in str(tvm.lower(s, [A, C]))
    func = tvm.build(s, [A, C])
    for size in (1, 2, 7):
        a, c = np.arange(size, dtype="float32"), tvm.nd.empty((size,))
        func(tvm.nd.array(a), c)
        np.testing.assert_array_equal(c.numpy(), a[(size + np.arange(size)) // 4] + 1)


@pytest.mark.parametrize("inline", [False, True])
def test_an_index_may_have_another_type_than_the_axis(inline):
    A = te.placeholder((8,), "int64", name="A")
    B = te.compute((8,), lambda i: A[i] * 3, name="B")
    C = te.compute((8,), lambda i: B[A[i]] + B[i.astype("int64") // 2], name="C")
    s = te.create_schedule(C.op)
    if inline:
        s[B].compute_inline()
    else:
        outer, _ = s[C].split(C.op.axis[0], factor=3)
        s[B].compute_at(s[C], outer)
    a = np.array([3, 1, 7, 0, 2, 6, 5, 4], "int64")
    np.testing.assert_array_equal(run(s, [A], C, a), 3 * a[a] + 3 * a[np.arange(8) // 2])


def test_loops_without_trips_are_fused_and_split():
    A = te.placeholder((4, 0), name="A")
    B = te.compute((4, 0), lambda i, j: A[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, 0), name="k")
    C = te.compute((4,), lambda i: te.sum(B[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    cached = s.cache_write(B, "global")
    outer, _ = s[B].split(s[B].fuse(*s[B].op.axis), factor=2)
    s[cached].compute_at(s[B], outer)
    s[cached].split(s[cached].fuse(*s[cached].op.axis), nparts=3)
    s[C].split(s[C].op.reduce_axis[0], factor=4)
    result = run(s, [A], C, np.zeros((4, 0), "float32"))
    np.testing.assert_array_equal(result, np.zeros(4))


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_a_region_that_ends_before_its_start_is_empty(target):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: te.if_then_else(i >= 5000, B[i - 5000], 0.0), name="C")
    s = te.create_schedule(C.op)
    func = tvm.build(s, [A, C], target=target)
    for size in (1, 4990, 5003):
        a, c = np.arange(size, dtype="float32"), tvm.nd.empty((size,))
        func(tvm.nd.array(a), c)
        np.testing.assert_array_equal(c.numpy(), np.pad(a + 1, (5000, 0))[:size])


@pytest.mark.parametrize("target", ["llvm", "stackvm"])
def test_a_read_stays_guarded_inside_of_a_choice_that_computes_both_sides(target):
    A = te.placeholder((4,), name="A")

    def body(i):
        guarded = te.if_then_else(te.all(i >= 2, i < 6), A[i - 2], 1.0)
        return tir.Select(i >= 2, guarded, 3.0)

    C = te.compute((8,), body, name="C")
    s = te.create_schedule(C.op)
    text = str(tvm.lower(s, [A, C]))
    assert "2 <= i and i < 6" in text or "Select" not in text, text
    a = np.arange(4, dtype="float32")
    result = run(s, [A], C, a, target=target)
    np.testing.assert_array_equal(result, [3, 3, 0, 1, 2, 3, 1, 1])
