"""Elementwise functions against NumPy and PyTorch."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from testing_topi import evaluate, random_array
from tvm import te, topi

RNG = np.random.default_rng(0)
REAL = random_array(RNG, 3, 35) * 3
UNIT = RNG.uniform(-0.99, 0.99, (3, 35)).astype("float32")
POSITIVE = np.abs(REAL) + 0.1
TOLERANCE = {"float32": {"rtol": 1e-5, "atol": 2e-6}, "float16": {"rtol": 4e-3, "atol": 4e-3}}

# Name: (domain, PyTorch's function where its name differs).
FUNCTIONS = {
    "abs": (REAL, torch.abs),
    "acos": (UNIT, torch.acos),
    "acosh": (POSITIVE + 1, torch.acosh),
    "asin": (UNIT, torch.asin),
    "asinh": (REAL, torch.asinh),
    "atan": (REAL, torch.atan),
    "atanh": (UNIT, torch.atanh),
    "ceil": (REAL, torch.ceil),
    "cos": (REAL, torch.cos),
    "cosh": (REAL / 2, torch.cosh),
    "erf": (REAL, torch.erf),
    "exp": (REAL, torch.exp),
    "fast_erf": (REAL, torch.erf),
    "fast_exp": (REAL, torch.exp),
    "fast_tanh": (REAL, torch.tanh),
    "floor": (REAL, torch.floor),
    "identity": (REAL, torch.clone),
    "log": (POSITIVE, torch.log),
    "log10": (POSITIVE, torch.log10),
    "log2": (POSITIVE, torch.log2),
    "negative": (REAL, torch.neg),
    "round": (np.round(REAL * 2) / 2, torch.round),
    "rsqrt": (POSITIVE, torch.rsqrt),
    "sigmoid": (REAL, torch.sigmoid),
    "sign": (np.round(REAL), torch.sign),
    "sin": (REAL, torch.sin),
    "sinh": (REAL / 2, torch.sinh),
    "sqrt": (POSITIVE, torch.sqrt),
    "tan": (UNIT, torch.tan),
    "tanh": (REAL, torch.tanh),
    "trunc": (REAL, torch.trunc),
    "elu": (REAL, F.elu),
    "gelu": (REAL, F.gelu),
    "hardsigmoid": (REAL, F.hardsigmoid),
    "hardswish": (REAL, F.hardswish),
    "hardtanh": (REAL, F.hardtanh),
    "leaky_relu": (REAL, F.leaky_relu),
    "log_sigmoid": (REAL, F.logsigmoid),
    "mish": (REAL, F.mish),
    "relu": (REAL, F.relu),
    "relu6": (REAL, F.relu6),
    "selu": (REAL, F.selu),
    "silu": (REAL, F.silu),
    "softplus": (REAL, F.softplus),
    "softsign": (REAL, F.softsign),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_equals_torch(name, dtype):
    domain, reference = FUNCTIONS[name]
    x = domain.astype(dtype)
    out = evaluate(getattr(topi, name), x)
    assert out.dtype == x.dtype
    expected = reference(torch.from_numpy(x).float()).numpy()
    np.testing.assert_allclose(out.astype("float32"), expected, **TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["tanh", "clip", "leaky_relu", "relu"])
def test_function_takes_a_symbolic_shape(name):
    args = {"clip": (-1.0, 2.0)}.get(name, ())
    fn = getattr(topi, name)
    expected = evaluate(lambda x: fn(x, *args), REAL)
    np.testing.assert_array_equal(
        evaluate(lambda x: fn(x, *args), REAL, symbolic=(3, 35)), expected
    )


SPECIAL = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 3e38, 1e-42], "float32")


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_kinds_of_numbers_are_told_apart(name):
    np.testing.assert_array_equal(
        evaluate(getattr(topi, name), SPECIAL), getattr(np, name)(SPECIAL)
    )
    whole = np.array([0, 5], "int32")
    np.testing.assert_array_equal(evaluate(getattr(topi, name), whole), getattr(np, name)(whole))


def test_inverse_hyperbolic_functions_keep_their_relative_error_everywhere():
    x = np.array([1e-30, 1e-6, 0.3, 50, 99.9, 100, 1e5, 1e30], "float32")
    both = np.concatenate([-x, x])
    np.testing.assert_allclose(evaluate(topi.asinh, both), np.arcsinh(both), rtol=3e-6)
    np.testing.assert_allclose(evaluate(topi.acosh, 1 + x), np.arccosh(1 + x), rtol=3e-6)
    small = np.array([1e-30, 1e-6, 0.3, 0.999], "float32")
    np.testing.assert_allclose(evaluate(topi.atanh, small), np.arctanh(small), rtol=3e-6)
    assert np.isnan(evaluate(topi.acosh, np.array([0.5], "float32")))[0]


def test_fast_functions_state_their_errors():
    x = np.linspace(-87, 88, 20001, dtype="float32")
    wide = x.astype("float64")
    np.testing.assert_allclose(evaluate(topi.fast_exp, x), np.exp(wide), rtol=3e-7)
    np.testing.assert_allclose(evaluate(topi.fast_tanh, x / 8), np.tanh(wide / 8), atol=1e-6)
    erf = torch.erf(torch.from_numpy(wide / 16)).numpy()
    np.testing.assert_allclose(evaluate(topi.fast_erf, x / 16), erf, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint8"])
def test_functions_of_whole_numbers_stay_whole(dtype):
    x = random_array(RNG, 4, 6, dtype=dtype)
    for name, reference in {"abs": np.abs, "sign": np.sign, "floor": lambda v: v}.items():
        out = evaluate(getattr(topi, name), x)
        assert out.dtype == dtype
        np.testing.assert_array_equal(out, reference(x))
    np.testing.assert_array_equal(
        evaluate(lambda t: topi.clip(t, 1.5, 1e30), x), np.clip(x, 2, None)
    )


@pytest.mark.parametrize("source", ["float32", "int32", "int8", "bool", "float64"])
@pytest.mark.parametrize("target", ["float32", "float16", "int32", "int64", "uint8", "bool"])
def test_cast_converts_as_numpy(source, target):
    x = random_array(RNG, 20, dtype=source)
    if target == "uint8":
        x = np.abs(x)
    np.testing.assert_array_equal(evaluate(lambda t: topi.cast(t, target), x), x.astype(target))


def test_reinterpret_keeps_the_bits():
    out = evaluate(lambda t: topi.reinterpret(t, "int32"), REAL)
    np.testing.assert_array_equal(out, REAL.view("int32"))


def test_clip_leaves_out_an_infinite_limit():
    out = evaluate(lambda t: topi.clip(t, -1.5, math.inf), REAL)
    np.testing.assert_array_equal(out, np.clip(REAL, -1.5, None))


@pytest.mark.parametrize("axis", [0, 1])
def test_prelu_has_a_slope_for_each_channel(axis):
    slope = random_array(RNG, REAL.shape[axis])
    expected = np.where(REAL > 0, REAL, REAL * np.expand_dims(slope, 1 - axis))
    for symbolic in ((), (3, 35)):
        out = evaluate(lambda t, s: topi.nn.prelu(t, s, axis), REAL, slope, symbolic=symbolic)
        np.testing.assert_array_equal(out, expected)


def test_ceil_log2_of_integers_is_exact():
    x = np.array([1, 2, 3, 4, 5, 1023, 1024, 1025, 2**31 - 1], "int32")
    expected = [math.ceil(math.log2(v)) for v in x.tolist()]
    np.testing.assert_array_equal(evaluate(topi.ceil_log2, x), expected)
    reals = np.array([0.3, 1.0, 5.0], "float32")
    np.testing.assert_array_equal(evaluate(topi.ceil_log2, reals), np.ceil(np.log2(reals)))


@pytest.mark.parametrize(("multiplier", "shift"), [(2**30, 0), (1288490189, 3), (-(2**30), -5)])
def test_fixed_point_multiply_rounds_halves_up(multiplier, shift):
    x = RNG.integers(-(2**20), 2**20, 50).astype("int32")
    expected = [math.floor(int(v) * multiplier * 2.0 ** (shift - 31) + 0.5) for v in x]
    out = evaluate(lambda t: topi.fixed_point_multiply(t, multiplier, shift), x)
    np.testing.assert_array_equal(out, expected)
    table = np.full((5,), multiplier, "int32")
    left, right = (np.full((5,), max(s, 0), "int32") for s in (shift, -shift))
    out = evaluate(
        lambda *t: topi.fixed_point_multiply_per_axis(*t, axis=1),
        x.reshape(10, 5),
        table,
        left,
        right,
    )
    np.testing.assert_array_equal(out.ravel(), expected)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: topi.nn.gelu(x, "exact"), "'none' or 'tanh', got 'exact'"),
        (lambda x: topi.clip(x, 2.0, 1.0), "a_min 2.0 exceeds a_max 1.0"),
        (lambda x: topi.nn.prelu(x, x), "slope has one dimension, got 2"),
    ],
)
def test_function_refuses_arguments_that_do_not_fit(fn, message):
    with pytest.raises(ValueError, match=message):
        fn(te.placeholder((3, 5), name="x"))
