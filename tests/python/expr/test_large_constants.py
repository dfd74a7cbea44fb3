"""Constants of floating point that their type does not hold."""

from __future__ import annotations

import math

import pytest

from tvm import tir


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("float16", 70000.0), ("float16", 70000), ("float16x4", -1e6), ("float32", 1e39)],
)
def test_too_large_constants_are_refused(dtype, value):
    with pytest.raises(ValueError, match="does not fit float"):
        tir.const(value, dtype)
    if "x" not in dtype:
        with pytest.raises(ValueError, match="does not fit float"):
            tir.FloatImm(dtype, value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_greatest_number_and_infinity_are_constants(dtype):
    most = tir.max_value(dtype).value
    assert tir.const(most, dtype).value == tir.FloatImm(dtype, most).value == most
    assert math.isinf(tir.const(float("inf"), dtype).value)
    assert math.isnan(tir.FloatImm(dtype, float("nan")).value)
