"""Elementary functions of float64, and of float32 by way of float64, against wider arithmetic.

What numpy computes in float64 differs by processor in the last bits, so float64 is compared with
long double, which has at least 11 bits more on x86-64 and on aarch64, and float32 with float64.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import tvm
from tvm import te, tir

FLOAT64 = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def apply(function, *arrays):
    dtype, n = str(arrays[0].dtype), len(arrays[0])
    inputs = [te.placeholder((n,), dtype, name=f"A{i}") for i in range(len(arrays))]
    out = te.compute((n,), lambda i: function(*[a[i] for a in inputs]), name="out")
    s = te.create_schedule(out.op)
    _, lane = s[out].split(out.op.axis[0], factor=8)
    s[out].vectorize(lane)
    module = tvm.build(s, [*inputs, out], target="llvm", name="f")
    result = tvm.nd.empty((n,), dtype)
    module["f"](*map(tvm.nd.array, arrays), result)
    return result.numpy(), module


def ulps(got, expected, dtype):
    """Distance from `expected`, of a wider type, in units in the last place of `dtype`."""
    unit = np.spacing(np.maximum(np.abs(expected), np.finfo(dtype).tiny).astype(dtype))
    return np.abs(got.astype(expected.dtype) - expected) / unit.astype(expected.dtype)


def spread(low, high, n=4096):
    rng = np.random.default_rng(0)
    tiny = rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-30, 0, n)
    return np.concatenate([rng.uniform(low, high, n), rng.uniform(-2, 2, n), tiny])


@pytest.mark.parametrize("name", FLOAT64)
def test_float64_error_stays_within_a_few_units(name):
    values = spread(-700, 700)
    if name == "log":
        values = np.abs(values)
    got, module = apply(getattr(tir, name), values)
    with np.errstate(over="ignore"):
        error = ulps(got, FLOAT64[name](values.astype("longdouble")), "float64")
    assert error.max() <= 4, f"{name}({values[error.argmax()]!r})"
    assert f"@{name}" not in module.get_source("ll")


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("exp", [(np.inf, np.inf), (-np.inf, 0.0), (0.0, 1.0), (800.0, np.inf), (-800.0, 0.0)]),
        ("log", [(np.inf, np.inf), (0.0, -np.inf), (1.0, 0.0), (-1.0, np.nan)]),
        ("tanh", [(np.inf, 1.0), (-np.inf, -1.0), (0.0, 0.0), (30.0, 1.0)]),
        ("sigmoid", [(np.inf, 1.0), (-np.inf, 0.0), (0.0, 0.5)]),
    ],
)
def test_float64_special_values(name, pairs):
    values = np.array([x for x, _ in pairs] + [np.nan] * (8 - len(pairs)))
    expected = np.array([y for _, y in pairs] + [np.nan] * (8 - len(pairs)))
    np.testing.assert_array_equal(apply(getattr(tir, name), values)[0], expected)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_are_right_for_arguments_of_all_sizes(name):
    rng = np.random.default_rng(0)
    multiples = np.arange(1, 4097) * (np.pi / 2)
    huge = rng.choice([-1, 1], 512) * 10.0 ** rng.uniform(6, 38, 512)
    values = np.concatenate([spread(-1e5, 1e5), multiples, huge]).astype("float32")
    got, _ = apply(getattr(tir, name), values)
    error = ulps(got, getattr(np, name)(values.astype("float64")), "float32")
    assert error.max() <= 1.5, f"{name}({values[error.argmax()]!r})"
    assert np.isnan(apply(getattr(tir, name), np.full(8, np.inf, "float32"))[0]).all()


def test_powers_are_right_to_one_unit():
    rng = np.random.default_rng(0)
    base = 10.0 ** rng.uniform(-10, 10, 4096)
    exponent = rng.uniform(-3.5, 3.5, 4096)
    base, exponent = base.astype("float32"), exponent.astype("float32")
    got, _ = apply(tir.power, base, exponent)
    expected = np.power(base.astype("float64"), exponent.astype("float64"))
    assert ulps(got, expected, "float32").max() <= 1


def power(x, y):
    """x ** y as IEEE 754 and annex F of C define it, where Python's function raises instead."""
    odd = y == math.floor(y) and math.fmod(y, 2) != 0 if math.isfinite(y) else False
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.copysign(math.inf, x if odd else 1)
    except ValueError:  # zero to a negative power is a pole, what is left has no real value
        return math.copysign(math.inf, x if odd else 1) if x == 0 else math.nan


def test_powers_of_special_values_are_those_that_ieee_754_defines():
    special = np.array(
        [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e30],
        "float32",
    )
    base, exponent = (g.ravel() for g in np.meshgrid(special, special))
    pad = -len(base) % 8
    base, exponent = np.pad(base, (0, pad)), np.pad(exponent, (0, pad), constant_values=1)
    wide = np.array([power(float(x), float(y)) for x, y in zip(base, exponent)])
    got, _ = apply(tir.power, base, exponent)
    with np.errstate(over="ignore", under="ignore"):
        expected = wide.astype("float32")
    number = np.isfinite(expected) & (expected != 0)
    np.testing.assert_array_equal(got[~number], expected[~number])
    assert ulps(got[number], wide[number], "float32").max() <= 1
    signed = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[signed]), np.signbit(expected[signed]))
