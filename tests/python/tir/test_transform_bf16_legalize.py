"""bfloat16 by way of float32."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import apply, loop
from tvm import te, tir
from tvm.tir import transform


def to_bf16(values):
    """Bits of float32 values rounded to the nearest bfloat16, to the even one of two."""
    bits = values.astype("float32").view("uint32")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("uint16")


def from_bf16(bits):
    return (bits.astype("uint32") << 16).view("float32")


def elementwise(f, n=64):
    a, b = tir.decl_buffer((n,), "bfloat16", name="A"), tir.decl_buffer((n,), "bfloat16", name="B")
    return tir.PrimFunc([a, b], loop(n, lambda i: tir.BufferStore(b, f(a[i]), [i])))


def bf16_array(bits):
    return tvm.nd.empty(bits.shape, "bfloat16").copyfrom(bits)


def run(func, bits):
    out = tvm.nd.empty(bits.shape, "bfloat16")
    tvm.build(func, target="llvm")(bf16_array(bits), out)
    return out.numpy()


def test_an_expression_is_rounded_once():
    func = apply(transform.BF16Legalize(), elementwise(lambda x: x * x + x))
    text = str(func)
    assert "bfloat16" in text
    store = func.body.body
    assert store.value.dtype == "bfloat16"
    assert store.value.value.dtype == "float32"


def test_a_conversion_the_program_asks_for_stays():
    a, b = tir.decl_buffer((4,), name="A"), tir.decl_buffer((4,), name="B")
    rounded = tir.Cast("float32", tir.Cast("bfloat16", a[0]))
    func = tir.PrimFunc([a, b], tir.BufferStore(b, rounded, [0]))
    assert apply(transform.BF16Legalize(), func).body.same_as(func.body)


@pytest.mark.parametrize("storage", [False, True])
def test_values_are_those_of_float32_rounded(storage):
    func = apply(transform.BF16Legalize(), elementwise(lambda x: tir.max(x * x + x, x)))
    if storage:
        func = apply(transform.BF16StorageLegalize(), func)
        body = repr(func).split("\n", 3)[3]
        assert "bfloat16" not in body
    rng = np.random.default_rng(0)
    bits = to_bf16(rng.standard_normal(64).astype("float32"))
    x = from_bf16(bits)
    expected = to_bf16(np.maximum(x * x + x, x))
    np.testing.assert_array_equal(run(func, bits), expected)


def test_bfloat16_matmul_runs_compiled():
    A = te.placeholder((8, 16), "bfloat16", name="A")
    B = te.placeholder((16, 8), "bfloat16", name="B")
    k = te.reduce_axis((0, 16), name="k")

    def product(i, j):
        return te.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k)

    C = te.compute((8, 8), product, name="C")
    module = tvm.build(te.create_schedule(C.op), [A, B, C], target="llvm")
    rng = np.random.default_rng(1)
    a, b = (to_bf16(rng.standard_normal(s).astype("float32")) for s in ((8, 16), (16, 8)))
    out = tvm.nd.empty((8, 8))
    module(bf16_array(a), bf16_array(b), out)
    np.testing.assert_allclose(out.numpy(), from_bf16(a) @ from_bf16(b), rtol=1e-5)
