"""Accesses out of bounds are found when the program runs."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import loop
from tvm import te, tir

CHECKED = {"tir.instrument_bound_checkers": True}


def shifted_copy(shift):
    """B[i] = A[i + shift] for every i of B, whatever A has."""
    A = te.placeholder((8,), name="A")
    n = te.var("n")
    B = te.compute((8,), lambda i: A[i + n], name="B")
    return te.create_schedule(B.op), [A, n, B]


def test_checks_are_made_only_when_asked():
    s, args = shifted_copy(1)
    assert "assert" not in str(tvm.lower(s, args))
    with tvm.transform.PassContext(config=CHECKED):
        checked = str(tvm.lower(s, args))
    assert "out of bounds: A has {} elements" in checked
    assert "buffer_bound" not in checked
    # What is provably inside costs nothing.
    assert "out of bounds: B" not in checked


def test_an_access_out_of_range_raises_and_names_the_buffer():
    s, args = shifted_copy(1)
    with tvm.transform.PassContext(config=CHECKED):
        module = tvm.build(s, args, target="llvm")
    values, out = np.arange(8, dtype="float32"), tvm.nd.empty((8,))
    module(tvm.nd.array(values), 0, out)
    np.testing.assert_array_equal(out.numpy(), values)
    with pytest.raises(tvm.TVMError, match="out of bounds: A has 8 elements, element 8"):
        module(tvm.nd.array(values), 1, out)
    with pytest.raises(tvm.TVMError, match="element -1 was accessed"):
        module(tvm.nd.array(values), -1, out)


def test_a_guarded_access_is_checked_only_where_it_is_made():
    A = te.placeholder((8,), name="A")
    B = te.compute((12,), lambda i: te.if_then_else(i < 8, A[i], 0.0), name="B")
    with tvm.transform.PassContext(config=CHECKED):
        module = tvm.build(te.create_schedule(B.op), [A, B], target="llvm")
    values, out = np.arange(8, dtype="float32"), tvm.nd.empty((12,))
    module(tvm.nd.array(values), out)
    np.testing.assert_array_equal(out.numpy(), np.pad(values, (0, 4)))


def test_stores_and_vectors_are_checked():
    n = tir.Var("n", "int32")
    b = tir.decl_buffer((16,), name="B")
    body = loop(8, lambda i: tir.BufferStore(b, 1.0, [i + n]), tir.ForKind.VECTORIZED)
    with tvm.transform.PassContext(config=CHECKED):
        module = tvm.build(tir.PrimFunc([n, b], body), target="llvm")
    module(8, tvm.nd.empty((16,)))
    with pytest.raises(tvm.TVMError, match="out of bounds: B has 16 elements"):
        module(9, tvm.nd.empty((16,)))


@pytest.mark.parametrize("double", [False, True])
def test_allocations_that_share_memory_or_are_copied_have_their_own_bounds(double):
    # A small and a large temporary take turns in one place; a double buffer has two halves.
    A = te.placeholder((4, 16), name="A")
    small = te.compute((4, 2), lambda i, j: A[i, j] + 1.0, name="small")
    large = te.compute((4, 16), lambda i, j: small[i, j % 2] * A[i, j], name="large")
    last = te.compute((4, 16), lambda i, j: large[i, 15 - j], name="last")
    s = te.create_schedule(last.op)
    s[large].compute_at(s[last], last.op.axis[0])
    s[small].compute_at(s[last], last.op.axis[0])
    if double:
        s[small].double_buffer()
        s[large].bind(s[large].op.axis[1], te.thread_axis("vthread"))
    with tvm.transform.PassContext(config=CHECKED):
        module = tvm.build(s, [A, last], target="llvm")
    values, out = np.random.default_rng(0).random((4, 16), "float32"), tvm.nd.empty((4, 16))
    module(tvm.nd.array(values), out)
    expected = (np.tile(values[:, :2] + 1, 8) * values)[:, ::-1]
    np.testing.assert_array_equal(out.numpy(), expected)
