"""float16 on processors that have no instructions for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_programs import apply, loop
from tvm import te, tir
from tvm.tir import transform

ALL_HALVES = np.arange(1 << 16).astype("uint16").view("float16")
#: The processor of this machine, as if it had no conversions of halves.
PLAIN = "llvm -mattr=-f16c,-avx512f,-avx512fp16"


def converted(source, result, n, target=PLAIN):
    a = te.placeholder((n,), source, name="A")
    b = te.compute((n,), lambda i: a[i].astype(result), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], 8)[1])
    return tvm.build(s, [a, b], target=target)


def run(func, x, result):
    out = tvm.nd.empty(x.shape, result)
    func(tvm.nd.array(x), out)
    return out.numpy()


def assert_same_numbers(found, expected):
    """Equal with the signs of zeros, NaN where NaN is expected."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    is_number = ~np.isnan(expected)
    bits = f"uint{expected.dtype.itemsize * 8}"
    np.testing.assert_array_equal(found.view(bits)[is_number], expected.view(bits)[is_number])


@pytest.fixture(scope="module")
def narrow():
    return converted("float32", "float16", 4096)


def test_every_half_is_the_number_that_it_stands_for():
    func = converted("float16", "float32", 1 << 16)
    assert_same_numbers(run(func, ALL_HALVES, "float32"), ALL_HALVES.astype("float32"))


def test_numbers_around_every_half_are_rounded_to_the_nearest_and_even():
    halves = ALL_HALVES[np.isfinite(ALL_HALVES) & (ALL_HALVES >= 0)].astype("float32")
    between = (halves[1:] + halves[:-1]) / 2
    odd = np.array([np.nan, np.inf, 65519.99, 65520, 1e30, 3e-8, 2.9e-8, 1e-40, 0], "float32")
    around = [np.nextafter(between, np.float32(sign)) for sign in (-1, 1e9)]
    x = np.concatenate([halves, between, *around, odd, -halves, -between, -odd])
    with np.errstate(over="ignore"):
        expected = x.astype("float16")
    assert_same_numbers(run(converted("float32", "float16", len(x)), x, "float16"), expected)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_float_is_rounded_as_numpy_rounds_it(narrow, seed):
    bits = np.random.default_rng(seed).integers(0, 1 << 32, 4096, dtype="uint64")
    x = bits.astype("uint32").view("float32")
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype("float16")
    assert_same_numbers(run(narrow, x, "float16"), expected)


def test_conversions_are_vectors_of_integers_and_no_calls():
    for source, result in (("float16", "float32"), ("float32", "float16")):
        func = converted(source, result, 64)
        text = func.get_source("ll")
        assert "half" not in text
        assert "<8 x i32>" in text or "<4 x i32>" in text
        assembly = func.get_source("asm")
        assert "vcvtph2ps" not in assembly
        assert "hf2" not in assembly  # of the compiler's library


def test_arithmetic_is_rounded_once_an_expression():
    a = tir.decl_buffer((64,), "float16", name="A")
    b = tir.decl_buffer((64,), "float16", name="B")
    body = loop(64, lambda i: tir.BufferStore(b, tir.exp(a[i]) * a[i] + a[i], [i]))
    x = np.linspace(-3, 3, 64).astype("float16")
    wide = x.astype("float32")
    found = run(tvm.build(tir.PrimFunc([a, b], body), target=PLAIN), x, "float16")
    np.testing.assert_allclose(found, np.exp(wide) * wide + wide, rtol=2**-11, atol=1e-6)


def test_values_are_integers_after_the_two_passes():
    a = tir.decl_buffer((8,), "float16", name="A")
    pointer = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float16"), "global"))
    b = tir.decl_buffer((8,), "float16", name="B", data=pointer)
    body = loop(8, lambda i: tir.BufferStore(b, a[i] * tir.const(0.5, "float16"), [i]))
    func = apply(transform.FP16ComputeLegalize(), tir.PrimFunc([a, pointer], body))
    assert func.body.body.value.dtype == "float16"
    func = apply(transform.FP16StorageLegalize(), func)
    assert func.body.body.value.dtype == "uint16"
    assert str(func.params[1].type_annotation.element_type.dtype) == "uint16"
    assert func.buffer_map[func.params[0]].dtype == "float16"


def test_a_function_from_elsewhere_cannot_take_the_bits():
    a = tir.decl_buffer((8,), "float16", name="A")
    call = tir.call_extern("float16", "half_root", a[0])
    func = tir.PrimFunc([a], tir.BufferStore(a, call, [0]))
    with pytest.raises(ValueError, match="holds float16 as integers, but .half_root. takes or"):
        apply(transform.FP16StorageLegalize(), func)
