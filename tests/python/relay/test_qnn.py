"""Quantised operators."""

from __future__ import annotations

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
