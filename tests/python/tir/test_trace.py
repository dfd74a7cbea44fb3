"""Values shown to a function while a program runs."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


def run(dtype, action):
    x = te.placeholder((4,), name="x", dtype=dtype)
    y = te.compute((4,), lambda i: tir.trace([i, x[i]], action) + tir.const(1, dtype), name="y")
    func = tvm.build(te.create_schedule(y.op), [x, y], "llvm")
    given = tvm.nd.array(np.arange(4, dtype=dtype))
    out = tvm.nd.array(np.zeros(4, dtype))
    func(given, out)
    return out.numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_a_traced_value_is_seen_and_kept(dtype):
    seen = []

    @tvm.register_func("test.trace.seen", override=True)
    def note(i, value):
        seen.append((i, value))

    np.testing.assert_array_equal(run(dtype, "test.trace.seen"), [1, 2, 3, 4])
    assert sorted(seen) == [(0, 0), (1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_what_the_function_returns_takes_the_place_of_the_value(dtype):
    tvm.register_func("test.trace.double", lambda i, value: value * 2, override=True)
    np.testing.assert_array_equal(run(dtype, "test.trace.double"), [1, 3, 5, 7])


def test_wrong_traces_are_refused():
    with pytest.raises(TypeError, match="args is a list"):
        tir.trace(tir.Var("x"))
    with pytest.raises(ValueError, match="no value to trace"):
        tir.trace([])
    with pytest.raises(ValueError, match=r'no global function "test\.trace\.missing"'):
        run("int32", "test.trace.missing")
