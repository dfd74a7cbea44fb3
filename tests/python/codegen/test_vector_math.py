"""Elementary functions written out in float32, against numpy in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

import testing_processors
import tvm
from tvm import te, tir

FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "atan": np.arctan,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf),
}
# Units in the last place; sigmoid and tanh add a division and a sum to exp's error.
ULPS = {"exp": 2.0, "log": 2.0, "log1p": 3.0, "atan": 2.0, "tanh": 3.0, "sigmoid": 3.0, "erf": 2.0}


def compiled(name, n, vectorize=True, dtype="float32", target="llvm"):
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: getattr(tir, name)(A[i]), name="B")
    s = te.create_schedule(B.op)
    if vectorize:
        _, lane = s[B].split(B.op.axis[0], factor=8)
        s[B].vectorize(lane)
    return tvm.build(s, [A, B], target=target, name="f")


def apply(name, values, vectorize=True, dtype="float32"):
    module = compiled(name, len(values), vectorize, dtype)
    result = tvm.nd.empty((len(values),), dtype)
    module["f"](tvm.nd.array(values.astype(dtype)), result)
    return result.numpy(), module


def inputs(name):
    rng = np.random.default_rng(0)
    wide = rng.uniform(-87, 88.7, 4096)
    near = rng.uniform(-2, 2, 4096)
    tiny = rng.choice([-1, 1], 2048) * 10.0 ** rng.uniform(-37, 0, 2048)
    values = np.concatenate([wide, near, tiny]).astype("float32")
    if name == "log":
        return np.abs(values)
    return np.maximum(values, np.float32(-0.999999)) if name == "log1p" else values


@pytest.mark.parametrize("vectorize", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_stays_within_a_few_units_in_the_last_place(name, vectorize):
    values = inputs(name)
    got, _ = apply(name, values, vectorize)
    with np.errstate(over="ignore"):
        expected = FUNCTIONS[name](values.astype("float64"))
    unit = np.spacing(np.abs(expected).astype("float32")).astype("float64")
    error = np.abs(got.astype("float64") - expected) / unit
    worst = int(np.argmax(error))
    assert error[worst] <= ULPS[name], f"{name}({values[worst]!r}): {error[worst]:.2f} ulp"


def atan2(y, x, vectorize):
    A, C = (te.placeholder(y.shape, "float32", name=name) for name in "AC")
    B = te.compute(y.shape, lambda i: tir.atan2(A[i], C[i]), name="B")
    s = te.create_schedule(B.op)
    if vectorize:
        _, lane = s[B].split(B.op.axis[0], factor=8)
        s[B].vectorize(lane)
    result = tvm.nd.empty(y.shape, "float32")
    tvm.build(s, [A, C, B], "llvm")(tvm.nd.array(y), tvm.nd.array(x), result)
    return result.numpy()


@pytest.mark.parametrize("vectorize", [True, False])
def test_angles_of_points_stay_within_a_few_units_in_the_last_place(vectorize):
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-15, 15, (2, 8192))
    y, x = (rng.choice([-1, 1], sizes.shape) * sizes).astype("float32")
    y[:2048], x[:2048] = rng.uniform(-2, 2, (2, 2048))
    expected = np.arctan2(y.astype("float64"), x.astype("float64"))
    unit = np.spacing(np.abs(expected).astype("float32")).astype("float64")
    assert np.max(np.abs(atan2(y, x, vectorize) - expected) / unit) <= 3.0


def test_angles_of_points_on_axes_and_at_infinity_are_those_of_numpy():
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40], "float32")
    y, x = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(values, values))
    got, expected = atan2(y, x, True), np.arctan2(y, x)
    np.testing.assert_allclose(got, expected, rtol=3e-7, atol=1e-45)
    np.testing.assert_array_equal(
        np.signbit(got[~np.isnan(got)]), np.signbit(expected[~np.isnan(got)])
    )


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("exp", [(np.inf, np.inf), (-np.inf, 0.0), (0.0, 1.0), (100.0, np.inf), (-200.0, 0.0)]),
        ("log", [(np.inf, np.inf), (0.0, -np.inf), (1.0, 0.0), (-1.0, np.nan)]),
        ("log1p", [(np.inf, np.inf), (-1.0, -np.inf), (0.0, 0.0), (-2.0, np.nan), (-0.0, -0.0)]),
        ("atan", [(np.inf, np.pi / 2), (-np.inf, -np.pi / 2), (0.0, 0.0), (-0.0, -0.0)]),
        ("tanh", [(np.inf, 1.0), (-np.inf, -1.0), (0.0, 0.0), (30.0, 1.0)]),
        ("sigmoid", [(np.inf, 1.0), (-np.inf, 0.0), (0.0, 0.5)]),
        ("erf", [(np.inf, 1.0), (-np.inf, -1.0), (0.0, 0.0), (6.0, 1.0)]),
    ],
)
def test_special_values(name, pairs):
    values = np.array([x for x, _ in pairs] + [np.nan] * (8 - len(pairs)), "float32")
    got, _ = apply(name, values)
    expected = np.array([y for _, y in pairs] + [np.nan] * (8 - len(pairs)), "float32")
    np.testing.assert_array_equal(got, expected)


def test_subnormal_results_and_arguments():
    # What would be subnormal is zero, as softmax of masked scores needs it for speed.
    got, _ = apply("exp", np.linspace(-103, -87.34, 64).astype("float32"))
    np.testing.assert_array_equal(got, 0)
    least = np.linspace(-87.3365, -87, 64).astype("float32")
    got, _ = apply("exp", least)
    np.testing.assert_allclose(got, np.exp(least.astype("float64")), rtol=2e-7)
    tiny = np.float32(1e-40) * np.arange(1, 65, dtype="float32")
    got, _ = apply("log", tiny)
    np.testing.assert_allclose(got, np.log(tiny.astype("float64")), rtol=2e-7)


@pytest.mark.parametrize("cpu", [*testing_processors.X86, *testing_processors.ARM])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vectors_call_no_library(name, cpu):
    module = compiled(name, 8, target=testing_processors.target_of(cpu))
    assembly = module.get_source("asm")
    for symbol in ("expf", "logf", "tanhf", "erff"):
        assert symbol not in assembly


@pytest.mark.parametrize(
    "name", [*FUNCTIONS, "sqrt", "rsqrt", "floor", "ceil", "sin", "cos", "log1p"]
)
def test_float64_agrees_with_numpy(name):
    reference = (
        FUNCTIONS.get(name) or {"rsqrt": lambda x: 1 / np.sqrt(x)}.get(name) or getattr(np, name)
    )
    values = np.random.default_rng(1).uniform(0.1, 5, 32)
    got, _ = apply(name, values, dtype="float64")
    np.testing.assert_allclose(got, reference(values), rtol=1e-14)


@pytest.mark.parametrize("vectorize", [True, False])
@pytest.mark.parametrize("name", ["tanh", "sin", "tan", "erf", "sqrt", "floor", "ceil", "trunc"])
def test_minus_zero_stays_minus_zero(name, vectorize):
    got, _ = apply(name, np.array([-0.0, 0.0] * 8, "float32"), vectorize)
    np.testing.assert_array_equal(np.signbit(got), [True, False] * 8)
    assert not got.any()


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_are_exact_whatever_the_quotient(dtype, target):
    values = np.array([0.0, -0.0, 1.5, -3, 7.25, 1e20, -3e38, 1e-40, np.inf, np.nan], dtype)
    x, y = (part.ravel() for part in np.meshgrid(values, values))
    A, B = (te.placeholder(x.shape, dtype, name=name) for name in "AB")
    C = te.compute(x.shape, lambda i: tir.fmod(A[i], B[i]), name="C")
    s = te.create_schedule(C.op)
    _, lane = s[C].split(C.op.axis[0], factor=4)
    s[C].vectorize(lane)
    got = tvm.nd.empty(x.shape, dtype)
    tvm.build(s, [A, B, C], target=target)(tvm.nd.array(x), tvm.nd.array(y), got)
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(got.numpy(), expected)
    np.testing.assert_array_equal(
        np.signbit(got.numpy())[expected == 0], np.signbit(expected[expected == 0])
    )
