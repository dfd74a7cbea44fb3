"""Quantised operators."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tvm
from tvm import relay


def _value(expr):
    return relay.create_executor("graph", target="llvm").evaluate(expr).numpy()


def _scale(value):
    return relay.const(value, "float32")


def _zero(value):
    return relay.const(value, "int32")


def _ints(dtype, *shape):
    limits = np.iinfo(dtype)
    return np.random.default_rng(0).integers(limits.min, limits.max, shape).astype(dtype)


def _store(real, zero, dtype):
    limits = np.iinfo(dtype)
    return np.clip(np.round(real) + zero, limits.min, limits.max).astype(dtype)


def test_quantize_and_dequantize_along_an_axis():
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    scale, zero = np.array([0.5, 0.25, 0.125], "float32"), np.array([3, 0, -5], "int32")
    q = relay.qnn.op.quantize(relay.const(x), relay.const(scale), relay.const(zero), axis=0)
    stored = _value(q)
    wanted = _store(x / scale[:, None], zero[:, None], "int8")
    np.testing.assert_array_equal(stored, wanted)
    real = relay.qnn.op.dequantize(q, relay.const(scale), relay.const(zero), axis=0)
    np.testing.assert_array_equal(
        _value(real), (wanted.astype("int32") - zero[:, None]).astype("float32") * scale[:, None]
    )


def test_requantize_rounds_and_limits():
    x = np.array([-400, -3, 0, 5, 1000], "int32")
    q = relay.qnn.op.requantize(
        relay.const(x), _scale(0.5), _zero(2), _scale(1.0), _zero(10), out_dtype="uint8"
    )
    np.testing.assert_array_equal(_value(q), _store((x - 2) * 0.5, 10, "uint8"))


def _exactly(x, factor, zero, rounding, dtype):
    """`x * factor` rounded as asked, of fractions."""
    limits = np.iinfo(dtype)

    def one(value):
        real, half = Fraction(int(value)) * Fraction(factor), Fraction(1, 2)
        if rounding == "UPWARD":
            whole = math.floor(real + half)
        else:
            whole = math.floor(abs(real) + half) * (-1 if real < 0 else 1)
        return min(max(whole + zero, limits.min), limits.max)

    return np.array([one(value) for value in x.flat], dtype).reshape(x.shape)


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("compute_dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("factor", [1 / 16, 0.5, 1.0, 4.0, 0.375])
@pytest.mark.parametrize("out_dtype", ["int8", "uint8", "int32"])
def test_requantize_rounds_halves_as_it_is_told(rounding, compute_dtype, factor, out_dtype):
    x = np.concatenate([np.arange(-200, 200), [-4000, 4000]]).astype("int32")
    q = relay.qnn.op.requantize(
        relay.const(x), _scale(factor), _zero(0), _scale(1.0), _zero(5),
        rounding=rounding, compute_dtype=compute_dtype, out_dtype=out_dtype,
    )  # fmt: skip
    np.testing.assert_array_equal(_value(q), _exactly(x, factor, 5, rounding, out_dtype))


@pytest.mark.parametrize("axis", [0, 1])
def test_fixed_point_has_a_factor_for_each_channel(axis):
    x = np.random.default_rng(0).integers(-(2**24), 2**24, (3, 4)).astype("int32")
    scales = np.array([0.1, 0.003, 7.5e-5, 1.7], "float32")[: x.shape[axis]]
    zeros = np.array([3, -4, 0, 9], "int32")[: x.shape[axis]]
    q = relay.qnn.op.requantize(
        relay.const(x), relay.const(scales), relay.const(zeros), _scale(0.3), _zero(-2),
        axis=axis, rounding="UPWARD", compute_dtype="int64", out_dtype="int32",
    )  # fmt: skip
    wanted = np.empty_like(x)
    for k, (scale, zero) in enumerate(zip(scales, zeros)):
        at = (k,) if axis == 0 else (slice(None), k)
        factor = Fraction(float(scale)) / Fraction(float(np.float32(0.3)))
        wanted[at] = _exactly(x[at] - zero, factor, -2, "UPWARD", "int32")
    # The factor has 31 bits, of which 2**25 leaves six behind the point.
    np.testing.assert_allclose(_value(q), wanted, atol=1)
    assert (_value(q) != wanted).mean() < 0.2


def test_a_configuration_says_what_calls_leave_open():
    x = np.array([1, 3, 5, -1, -3], "int32")
    call = relay.qnn.op.requantize(
        relay.const(x), _scale(0.5), _zero(0), _scale(1.0), _zero(0), out_dtype="int8"
    )
    assert _value(call).tolist() == [0, 2, 2, 0, -2]
    with relay.qnn.op.requantize_config(rounding="TONEAREST", compute_dtype="float32") as config:
        assert relay.qnn.op.current_requantize_config() is config
        assert _value(call).tolist() == [1, 2, 3, -1, -2]
        with relay.qnn.op.requantize_config():
            assert _value(call).tolist() == [1, 2, 3, 0, -1]
    assert _value(call).tolist() == [0, 2, 2, 0, -2]
    with pytest.raises(ValueError, match="no setting round; there are rounding and"):
        relay.qnn.op.requantize_config(round="UPWARD")


def test_fixed_point_asks_for_constant_scales():
    scale = relay.var("s", shape=())
    with pytest.raises(ValueError, match="there is no rounding 'DOWN'; use None, UPWARD, TONEA"):
        relay.qnn.op.requantize(scale, scale, _zero(0), scale, _zero(0), rounding="DOWN")
    q = relay.qnn.op.requantize(
        relay.const(np.ones(3, "int32")), scale, _zero(0), _scale(1.0), _zero(0),
        compute_dtype="int64",
    )  # fmt: skip
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([scale], q)))
    with pytest.raises(ValueError, match='"int64" needs scales that are constants'):
        relay.qnn.transform.CanonicalizeOps()(mod)


@pytest.mark.parametrize("name", ["add", "subtract", "mul"])
def test_sums_and_products_are_of_the_real_numbers(name):
    a, b = _ints("uint8", 4, 5), _ints("uint8", 5)
    call = getattr(relay.qnn.op, name)(
        relay.const(a), relay.const(b), _scale(0.5), _zero(3), _scale(0.25), _zero(0),
        _scale(2.0), _zero(7),
    )  # fmt: skip
    real = {"add": np.add, "subtract": np.subtract, "mul": np.multiply}[name](
        (a.astype("int32") - 3) * 0.5, b.astype("int32") * 0.25
    )
    np.testing.assert_array_equal(_value(call), _store(real / 2.0, 7, "uint8"))


def test_products_take_zero_points_off():
    x, w = _ints("uint8", 3, 8), _ints("int8", 5, 8)
    dense = relay.qnn.op.dense(
        relay.const(x), relay.const(w), _zero(12), _zero(0), _scale(0.1), _scale(0.2), 5
    )
    np.testing.assert_array_equal(_value(dense), (x.astype("int32") - 12) @ w.T.astype("int32"))
    image, kernel = _ints("uint8", 1, 2, 5, 5), _ints("int8", 3, 2, 3, 3)
    var = relay.var("x", shape=image.shape, dtype="uint8")
    conv = relay.qnn.op.conv2d(
        var, relay.const(kernel), _zero(9), _zero(0), _scale(0.1), _scale(0.2),
        kernel_size=(3, 3), channels=3, padding=(1, 1),
    )  # fmt: skip
    func = relay.Function([var], conv)
    got = relay.create_executor("graph", target="llvm").evaluate(func)(image).numpy()
    padded = np.pad(image.astype("int32") - 9, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    wanted = np.einsum("ncyxij,fcij->nfyx", windows, kernel.astype("int32"))
    np.testing.assert_array_equal(got, wanted)
    plain = relay.qnn.transform.CanonicalizeOps()(tvm.IRModule.from_expr(func))
    assert "qnn." not in plain.astext(show_meta_data=False)
    again = relay.create_executor("graph", target="llvm").evaluate(plain["main"])(image)
    np.testing.assert_array_equal(again.numpy(), wanted)


def test_types_that_hold_no_quantised_tensors_are_refused():
    q = relay.qnn.op.quantize(relay.var("x", shape=(2,)), _scale(1.0), _zero(0), out_dtype="bool")
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(q))
    with pytest.raises(ValueError, match="no quantised tensors of bool; use int8"):
        relay.qnn.transform.CanonicalizeOps()(mod)


def _real(ints, scale, zero):
    return (ints.astype("int32") - zero).astype("float32") * np.float32(scale)


def _close(found, real, scale, zero):
    """Equal but for numbers that lie between two integers."""
    wanted = _store(real / np.float32(scale), zero, str(found.dtype)).astype("int32")
    assert np.abs(found.astype("int32") - wanted).max() <= 1
    assert (found != wanted).mean() < 0.02


_FUNCTIONS = {
    "abs": np.abs,
    "erf": np.vectorize(math.erf),
    "exp": np.exp,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "log": np.log,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", list(_FUNCTIONS))
def test_functions_are_of_the_real_numbers(name):
    x = _ints("uint8", 6, 40) // 2 + 64
    positive = name in ("log", "rsqrt", "sqrt")
    zero = 10 if positive else 128
    call = getattr(relay.qnn.op, name)(
        relay.const(x), _scale(0.02), _zero(zero), _scale(0.03), _zero(7)
    )
    assert relay.testing.run_infer_type(call).checked_type == relay.TensorType((6, 40), "uint8")
    _close(_value(call), _FUNCTIONS[name](_real(x, 0.02, zero)), 0.03, 7)


def test_settings_of_functions():
    x = _ints("int8", 1, 6, 6, 4)
    operands = [relay.const(x), _scale(0.1), _zero(-3), _scale(0.05), _zero(4)]
    real, qnn = _real(x, 0.1, -3), relay.qnn.op
    leaky = qnn.leaky_relu(operands[0], 0.25, *operands[1:])
    _close(_value(leaky), np.where(real < 0, real * 0.25, real), 0.05, 4)
    soft = np.exp(real - real.max(1, keepdims=True))
    soft /= soft.sum(1, keepdims=True)
    _close(_value(qnn.softmax(*operands, axis=1)), soft, 0.05, 4)
    pooled = qnn.avg_pool2d(*operands, pool_size=(2, 2), strides=(2, 2))
    means = real.reshape(1, 3, 2, 3, 2, 4).mean((2, 4))
    _close(_value(pooled), means, 0.05, 4)


def test_tensors_of_several_scales_are_joined_in_one():
    a, b = _ints("uint8", 2, 3), _ints("uint8", 2, 5)
    scales, zeros = [_scale(0.5), _scale(0.25)], [_zero(3), _zero(9)]
    joined = relay.qnn.op.concatenate(
        [relay.const(a), relay.const(b)], scales, zeros, _scale(0.5), _zero(3), axis=1
    )
    found = _value(joined)
    np.testing.assert_array_equal(found[:, :3], a)
    _close(found[:, 3:], _real(b, 0.25, 9), 0.5, 3)
    with pytest.raises(ValueError, match="a scale and a zero point for each tensor"):
        relay.qnn.op.concatenate([relay.const(a)], scales, zeros, _scale(0.5), _zero(3), axis=1)


def test_products_and_transposed_convolutions_leave_zero_points_out():
    a, b = _ints("uint8", 2, 3, 4), _ints("int8", 2, 5, 4)
    product = relay.qnn.op.batch_matmul(
        relay.const(a), relay.const(b), _zero(3), _zero(-2), _scale(0.5), _scale(0.25)
    )
    wanted = (a.astype("int32") - 3) @ (b.astype("int32") + 2).transpose(0, 2, 1)
    np.testing.assert_array_equal(_value(product), wanted)
    x, w = _ints("uint8", 1, 3, 4, 4), _ints("int8", 3, 2, 2, 2)
    moved = relay.qnn.op.conv2d_transpose(
        relay.const(x), relay.const(w), _zero(5), _zero(0), _scale(0.5), _scale(0.25),
        strides=(2, 2), channels=2, kernel_size=(2, 2),
    )  # fmt: skip
    # Windows that do not overlap: each element gives its own block.
    blocks = np.einsum("ncyx,cohw->noyhxw", x.astype("int32") - 5, w.astype("int32"))
    np.testing.assert_array_equal(_value(moved), blocks.reshape(1, 2, 8, 8))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "disable"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("kind", ["graph", "debug"])
def test_simulated_quantization_takes_its_type_when_it_runs(dtype, axis, kind):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(3, 4)) * 60).astype("float32")
    shape = () if axis is None else (x.shape[axis],)
    scale = rng.uniform(0.2, 0.5, shape).astype("float32")
    zero = rng.integers(-10, 10, shape).astype("int32")
    data, code = relay.var("x", shape=x.shape), relay.var("code", shape=(), dtype="int32")
    s, z = relay.var("s", shape=shape), relay.var("z", shape=shape, dtype="int32")
    stored = relay.qnn.op.simulated_quantize(data, s, z, axis or 0, code)
    back = relay.qnn.op.simulated_dequantize(stored, s, z, axis or 0, code)
    if axis == -1:
        stored = relay.qnn.op.simulated_quantize(data, s, z, out_dtype=code)
        back = relay.qnn.op.simulated_dequantize(stored, s, z, in_dtype=code)
    func = relay.Function([data, code, s, z], relay.Tuple([stored, back]))
    number = np.array(tvm.topi.nn.SQNN_DTYPE_TO_CODE[dtype], "int32")
    run = relay.create_executor(kind, target="llvm").evaluate(func)
    found, real = (out.numpy() for out in run(x, number, scale, zero))
    if dtype == "disable":
        np.testing.assert_array_equal(found, x)
        np.testing.assert_array_equal(real, x)
        return
    by, off = (p[:, None] if axis == 0 else p for p in (scale, zero))
    expected = _store(x / by, off, dtype).astype("float32")
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(real, (expected - off) * by, rtol=1e-6)


def test_simulated_quantization_refuses_other_types():
    x = relay.var("x", shape=(3,))
    with pytest.raises(ValueError, match="the types are disable, int8, uint8, int32, got 'int4'"):
        relay.qnn.op.simulated_quantize(x, _scale(1.0), _zero(0), out_dtype="int4")
    wrong = relay.qnn.op.simulated_quantize(x, _scale(1.0), _zero(0), out_dtype=_scale(1.0))
    with pytest.raises(TypeError, match="the type is one int32"):
        relay.transform.InferType()(tvm.IRModule.from_expr(wrong))


def test_rules_of_legalisation_of_quantised_operators():
    x = relay.var("x", shape=(2, 3), dtype="int8")
    scale, zero = relay.const(0.1), relay.const(0)
    func = relay.Function([x], relay.qnn.op.tanh(x, scale, zero, scale, zero))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    seen = []

    def rule(attrs, inputs, types):
        seen.append(len(inputs))
        real = relay.qnn.op.dequantize(inputs[0], inputs[1], inputs[2])
        return relay.qnn.op.quantize(relay.tanh(real), inputs[3], inputs[4], out_dtype="int8")

    relay.qnn.op.register_qnn_legalize("qnn.tanh", rule, level=11)
    try:
        text = relay.qnn.transform.Legalize()(mod).astext()
    finally:
        relay.op.get("qnn.tanh").reset_attr("FTVMQnnLegalize")
    assert seen == [5] and "qnn.tanh" not in text and "tanh" in text
