"""Functions of C's mathematical library."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["nextafter", "copysign", "hypot", "ldexp"])
def test_they_compute_what_numpy_computes(name, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(32).astype(dtype)
    y = rng.standard_normal(32).astype(dtype)
    if name == "ldexp":
        y = rng.integers(-4, 5, 32).astype("int32")
    a = te.placeholder((32,), dtype, name="a")
    b = te.placeholder((32,), str(y.dtype), name="b")
    c = te.compute((32,), lambda i: getattr(tir, name)(a[i], b[i]), name="c")
    func = tvm.build(te.create_schedule(c.op), [a, b, c], "llvm")
    out = tvm.nd.array(np.zeros(32, dtype))
    func(tvm.nd.array(x), tvm.nd.array(y), out)
    want = getattr(np, name)(x, y)
    if dtype == "float16" and name == "hypot":
        # NumPy rounds halves in between.
        want = np.hypot(x.astype("float32"), y.astype("float32")).astype("float16")
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6)


def test_the_next_half_of_every_half():
    x = np.arange(1 << 16, dtype="uint16").view("float16")
    a = te.placeholder(x.shape, "float16", name="a")
    b = te.placeholder(x.shape, "float16", name="b")
    c = te.compute(x.shape, lambda i: tir.nextafter(a[i], b[i]), name="c")
    func = tvm.build(te.create_schedule(c.op), [a, b, c], "llvm")
    for towards in (np.inf, -np.inf, 0.0, -1.5, np.nan):
        y = np.full_like(x, towards)
        out = tvm.nd.array(np.zeros_like(x))
        func(tvm.nd.array(x), tvm.nd.array(y), out)
        with np.errstate(all="ignore"):
            want = np.nextafter(x, y)
        known = ~np.isnan(want)
        np.testing.assert_array_equal(np.isnan(out.numpy()), ~known)
        np.testing.assert_array_equal(out.numpy()[known], want[known])


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="computed of floating-point numbers"):
        tir.hypot(tir.Var("x", "int32"), 1)
