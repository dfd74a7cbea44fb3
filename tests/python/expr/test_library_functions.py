"""Functions of C's mathematical library."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


@pytest.mark.parametrize("dtype", ["float32", "float64"])
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
    np.testing.assert_allclose(out.numpy(), getattr(np, name)(x, y), rtol=1e-6)


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="computed in float32 and float64"):
        tir.hypot(tir.Var("x", "float16"), 1.0)
