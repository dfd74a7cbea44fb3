"""tir.fma: a product and a sum, rounded once wherever it runs."""

from __future__ import annotations

import shutil
from fractions import Fraction

import numpy as np
import pytest

import tvm
from testing_processors import has_feature
from tvm import te, tir

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
TARGETS = [
    "llvm",
    "llvm -mattr=-fma,-fma4,-avx512f",
    "stackvm",
    pytest.param("c", marks=needs_cc),
]


def operands(dtype, n):
    """Triples for which the product alone, rounded, would change the sum."""
    rng = np.random.default_rng(n)
    x, y = (rng.uniform(1, 2, n).astype(dtype) for _ in range(2))
    noise = rng.uniform(-1, 1, n) * np.finfo(dtype).eps ** 2
    z = np.where(rng.random(n) < 0.5, -(x * y), noise).astype(dtype)
    return x, y, z


def exact(x, y, z, dtype):
    """Rounded once, from the exact sum."""
    results = []
    for a, b, c in zip(x.tolist(), y.tolist(), z.tolist()):
        total = Fraction(a) * Fraction(b) + Fraction(c)
        if dtype == "float64":
            results.append(float(total))
            continue
        # Of the two neighbours of a first guess the nearest; ties do not occur in these operands.
        guess = np.dtype(dtype).type(float(total))
        near = [guess, *(np.nextafter(guess, np.dtype(dtype).type(s)) for s in (-9e4, 9e4))]
        results.append(min(near, key=lambda v: abs(Fraction(float(v)) - total)))
    return np.array(results, dtype)


def fused(dtype, n, target, lanes=4):
    x, y, z = (te.placeholder((n,), dtype, name=name) for name in "xyz")
    out = te.compute((n,), lambda i: tir.fma(x[i], y[i], z[i]), name="out")
    s = te.create_schedule(out.op)
    if target.startswith("llvm"):
        s[out].vectorize(s[out].split(out.op.axis[0], lanes)[1])
    return tvm.build(s, [x, y, z, out], target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_sum_is_rounded_once(dtype, target):
    if dtype == "float16" and target == "llvm" and not has_feature("f16c"):
        pytest.skip("halves are computed in float32 without F16C")
    n = 256
    arrays = operands(dtype, n)
    expected = exact(*arrays, dtype)
    twice = arrays[0] * arrays[1] + arrays[2]
    assert (twice != expected).any()
    out = tvm.nd.empty((n,), dtype)
    fused(dtype, n, target)(*map(tvm.nd.array, arrays), out)
    np.testing.assert_array_equal(out.numpy(), expected)


def test_processors_with_the_instruction_take_it():
    func = fused("float32", 64, "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell", lanes=8)
    assert "llvm.fma.v8f32" in func.get_source("ll")
    assert "vfmadd" in func.get_source("asm")


@pytest.mark.parametrize("target", TARGETS[:3])
def test_integers_are_multiplied_and_added(target):
    x = np.arange(8, dtype="int32")
    out = tvm.nd.empty((8,), "int32")
    fused("int32", 8, target)(*[tvm.nd.array(a) for a in (x, x + 1, x - 5)], out)
    np.testing.assert_array_equal(out.numpy(), x * (x + 1) + x - 5)


def test_a_double_becomes_a_half_in_one_rounding():
    # Just above halfway between two halves; float32 would round it to halfway, and then to even.
    x = np.array([1 + 2.0**-11 + 2.0**-40, -(1 + 2.0**-11 + 2.0**-40), 1 + 2.0**-11, 65519.999999])
    x = np.concatenate([x, [65520, 1e300, -1e-300, np.inf, np.nan, 2.0**-25 * (1 + 2.0**-40)]])
    a = te.placeholder(x.shape, "float64", name="a")
    out = te.compute(x.shape, lambda i: a[i].astype("float16"), name="out")
    result = tvm.nd.empty(x.shape, "float16")
    tvm.build(te.create_schedule(out.op), [a, out], target="llvm")(tvm.nd.array(x), result)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(result.numpy(), x.astype("float16"))
