"""Max and Min hand NaN on, whichever operand it is, in the code of every generator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tvm
from tvm import te, tir

VALUES = np.array([np.nan, -np.nan, -np.inf, -1.5, 0.0, 2.0, np.inf])
PAIRS = np.array(list(itertools.product(VALUES, VALUES)))


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("vectorized", [False, True], ids=["scalars", "vectors"])
def test_extremes_of_two(target, dtype, vectorized):
    count = len(PAIRS)
    x, y = (te.placeholder((count,), dtype, name=name) for name in "xy")
    number = tir.const(1.0, dtype)
    outs = [
        te.compute((count,), lambda i, make=make: make(i), name=f"out{k}")
        for k, make in enumerate(
            (
                lambda i: tir.Max(x[i], y[i]),
                lambda i: tir.Min(x[i], y[i]),
                lambda i: tir.Max(x[i], number),
                lambda i: tir.Min(number, y[i]),
            )
        )
    ]
    schedule = te.create_schedule([out.op for out in outs])
    for out in outs:
        if vectorized:
            _, inner = schedule[out].split(out.op.axis[0], 7)
            schedule[out].vectorize(inner)
    built = tvm.build(schedule, [x, y, *outs], target)
    first, second = (np.ascontiguousarray(PAIRS[:, k]).astype(dtype) for k in range(2))
    arrays = [tvm.nd.array(np.zeros(count, dtype)) for _ in outs]
    built(tvm.nd.array(first), tvm.nd.array(second), *arrays)
    one = np.array(1.0, dtype)
    expected = (
        np.maximum(first, second),
        np.minimum(first, second),
        np.maximum(first, one),
        np.minimum(one, second),
    )
    for got, want in zip(arrays, expected):
        np.testing.assert_array_equal(got.numpy(), want)


def test_constants_fold_to_what_the_code_gives():
    for a, b in PAIRS:
        pair = tir.const(a, "float32"), tir.const(b, "float32")
        np.testing.assert_equal(tir.max(*pair).value, np.maximum(a, b))
        np.testing.assert_equal(tir.min(*pair).value, np.minimum(a, b))
