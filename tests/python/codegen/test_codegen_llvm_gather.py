"""Vectors of elements at any places: one instruction where that is faster, else one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te

LANES = 16


def looked_up(dtype="float32", index="int32", count=64, size=100):
    """B[i] = A[I[i]], in vectors."""
    A = te.placeholder((size,), dtype, "A")
    places = te.placeholder((count,), index, "I")
    B = te.compute((count,), lambda i: A[places[i]], name="B")
    s = te.create_schedule(B.op)
    _, lane = s[B].split(B.op.axis[0], factor=LANES)
    s[B].vectorize(lane)
    return s, [A, places, B]


def text_for(cpu, **options):
    halves = " -mattr=+avx512fp16" if cpu == "sapphirerapids" else ""
    target = tvm.target.Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}{halves}")
    return tvm.build(*looked_up(**options), target).get_source("ll")


def test_processors_that_gather_fast_do():
    assert "llvm.masked.gather.v16f32" in text_for("sapphirerapids")
    assert "llvm.masked.gather.v8i64" in text_for("sapphirerapids", dtype="int64")


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512", "znver4"])
def test_others_read_element_by_element(cpu):
    assert "masked.gather" not in text_for(cpu)


def test_elements_shorter_than_a_word_are_read_one_by_one():
    assert "masked.gather" not in text_for("sapphirerapids", dtype="int16")
    assert "masked.gather" not in text_for("sapphirerapids", dtype="bool")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8", "float16"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_elements_are_those_at_the_places(dtype, index):
    s, args = looked_up(dtype, index)
    function = tvm.build(s, args, "llvm")
    rng = np.random.default_rng(0)
    values = (rng.standard_normal(100) * 50).astype(dtype)
    places = rng.integers(0, 100, 64).astype(index)
    result = tvm.nd.empty((64,), dtype)
    function(tvm.nd.array(values), tvm.nd.array(places), result)
    np.testing.assert_array_equal(result.numpy(), values[places])
