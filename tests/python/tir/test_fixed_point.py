"""Products of fixed-point numbers round to the nearest integer."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


def rounded(product, bits):
    return (product + (1 << (bits - 1))) >> bits


@pytest.mark.parametrize("shift", [-3, 0, 4])
def test_products_are_shifted_and_rounded(shift):
    rng = np.random.default_rng(2)
    A = te.placeholder((40,), "int32", name="A")
    y, q = 1457846997, 31
    B = te.compute((40,), lambda i: tir.q_multiply_shift(A[i], y, q, shift), name="B")
    a = rng.integers(-(2**20), 2**20, 40).astype("int32")
    b = tvm.nd.empty((40,), "int32")
    tvm.build(te.create_schedule(B.op), [A, B], "llvm")(tvm.nd.array(a), b)
    wide = (a.astype("int64") << max(shift, 0)) * y
    np.testing.assert_array_equal(b.numpy(), rounded(wide, q + max(-shift, 0)))


@pytest.mark.parametrize(("left", "right"), [(False, True), (True, False), (False, False)])
def test_factors_and_shifts_of_each_channel(left, right):
    rng = np.random.default_rng(3)
    n = 32
    A, Y = te.placeholder((n,), "int32", name="A"), te.placeholder((n,), "int32", name="Y")
    L, R = te.placeholder((n,), "int32", name="L"), te.placeholder((n,), "int32", name="R")
    B = te.compute(
        (n,),
        lambda i: tir.q_multiply_shift_per_axis(A[i], Y[i], L[i], R[i], 31, left, right),
        name="B",
    )
    a = rng.integers(-(2**16), 2**16, n).astype("int32")
    y = rng.integers(2**30, 2**31 - 1, n).astype("int32")
    ls, rs = (rng.integers(0, 5, n).astype("int32") for _ in range(2))
    b = tvm.nd.empty((n,), "int32")
    built = tvm.build(te.create_schedule(B.op), [A, Y, L, R, B], "llvm")
    built(*[tvm.nd.array(x) for x in (a, y, ls, rs)], b)
    wide = (a.astype("int64") << (ls if left else 0)) * y
    bits = 31 + (rs if right else 0) + np.zeros(n, "int64")
    np.testing.assert_array_equal(b.numpy(), (wide + (1 << (bits - 1))) >> bits)
