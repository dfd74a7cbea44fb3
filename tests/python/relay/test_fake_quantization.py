"""relay.transform.FakeQuantizationToInteger against the program with real numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.ir import TensorAffineType

qnn = relay.qnn.op


def number(value, dtype="float32"):
    return relay.const(np.array(value, dtype))


def real(data, scale, zero=0, axis=-1):
    return qnn.dequantize(data, number(scale), number(zero, "int32"), axis)


def stored(data, scale, zero=0, dtype="int8"):
    return qnn.quantize(data, number(scale), number(zero, "int32"), out_dtype=dtype)


def var(name, *shape, dtype="int8"):
    return relay.var(name, shape=shape, dtype=dtype)


def operators(func):
    return set(relay.analysis.list_op_freqs(tvm.IRModule.from_expr(func)))


def converted(expr, left=(), **how):
    """The function with integers, which has no operators on real numbers but those of `left`."""
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    new = relay.transform.FakeQuantizationToInteger(**how)(mod)
    assert ("qnn.dequantize" in operators(new["main"])) == bool(left)
    assert new["main"].checked_type == mod["main"].checked_type
    rng = np.random.default_rng(0)
    inputs = []
    for p in func.params:
        limits = np.iinfo(str(p.type_annotation.dtype))
        shape = [int(e) for e in p.type_annotation.shape]
        inputs.append(rng.integers(limits.min, limits.max, shape).astype(limits.dtype))
    before, after = (
        relay.create_executor("graph", mod=m).evaluate()(*inputs).numpy().astype("int32")
        for m in (mod, new)
    )
    assert np.abs(before - after).max() <= 1
    # What is rounded twice may come out one off.
    assert (before != after).mean() < 0.15
    return new["main"]


X = var("x", 1, 4, 6, 6)
R = real(X, 0.1, 3)


@pytest.mark.parametrize(
    "expr",
    [
        relay.reshape(R, (4, 36)),
        relay.nn.max_pool2d(R, (2, 2), (2, 2)),
        relay.nn.avg_pool2d(R, (3, 3), (2, 2), padding=(1, 1)),
        relay.nn.global_avg_pool2d(R),
        relay.mean(R, [2, 3]),
        relay.nn.relu(R),
        relay.clip(R, -2.0, 6.0),
        relay.nn.pad(R, [(0, 0), (0, 0), (1, 1), (1, 1)], 1.0),
        relay.transpose(relay.nn.relu(R), (0, 2, 3, 1)),
        relay.tanh(R),
        relay.maximum(R, real(var("y", 6), 0.2, -1)),
        relay.minimum(R, relay.const(np.float32(1.5))),
        relay.nn.upsampling(R, 2, 2),
        relay.image.resize2d(R, (3, 12), method="nearest_neighbor"),
        relay.take(R, relay.const([1, 0]), axis=1),
        relay.topk(R, 2, ret_type="values"),
        relay.nn.leaky_relu(R, 0.1),
        R + relay.nn.relu(R),
        R * real(var("y", 6), 0.2, -1),
        R - relay.const(np.float32(1.5)),
        relay.split(R, 2, 1)[1],
        relay.concatenate([R, real(var("y", 1, 2, 6, 6), 0.2)], 1),
    ],
    ids=["reshape", "max_pool2d", "avg_pool2d", "global_avg_pool2d", "mean", "relu", "clip", "pad",
         "transpose", "tanh", "maximum", "minimum", "upsampling", "resize", "take", "topk",
         "leaky_relu", "add", "multiply", "subtract", "split", "concatenate"],
)  # fmt: skip
def test_operators_compute_with_integers(expr):
    converted(stored(expr, 0.15, -7))


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_layer_of_a_network_becomes_one_of_integers(per_channel):
    rng = np.random.default_rng(1)
    weight = relay.const(rng.integers(-127, 128, (8, 4, 3, 3)).astype("int8"))
    scale = rng.uniform(0.01, 0.03, 8) if per_channel else 0.02
    zero = np.zeros(8) if per_channel else 0
    kernel = real(weight, scale, zero, axis=0)
    x = relay.nn.conv2d(R, kernel, channels=8, kernel_size=3, padding=1)
    x = relay.nn.bias_add(x, relay.const(rng.normal(size=8).astype("float32")))
    found = converted(stored(relay.nn.relu(x) if not per_channel else x, 0.4, -20))
    assert {"qnn.conv2d", "qnn.requantize", "nn.bias_add"} <= operators(found)


def test_products_become_those_of_integers():
    rng = np.random.default_rng(2)
    weight = relay.const(rng.integers(-127, 128, (5, 6)).astype("int8"))
    dense = relay.nn.dense(real(var("a", 3, 6, dtype="uint8"), 0.1, 120), real(weight, 0.05))
    assert "qnn.dense" in operators(converted(stored(dense, 0.3, 4, "uint8")))
    a, b = real(var("a", 2, 3, 6), 0.1, 2), real(var("b", 2, 5, 6), 0.05)
    assert "qnn.batch_matmul" in operators(converted(stored(relay.nn.batch_matmul(a, b), 0.3)))
    kernel = real(relay.const(rng.integers(-9, 9, (4, 2, 3, 3)).astype("int8")), 0.1)
    wide = relay.nn.conv2d_transpose(R, kernel, channels=2, kernel_size=3)
    assert "qnn.conv2d_transpose" in operators(converted(stored(wide, 0.5)))


def test_parts_without_integers_stay_and_are_named_if_asked():
    again = real(stored(relay.nn.relu(R), 0.2), 0.2)
    expr = stored(relay.sin(again), 0.2)
    found = converted(expr, left=["sin"])
    # What comes before is written with integers all the same.
    assert "nn.relu" not in operators(found)
    func = relay.Function([X], expr)
    with pytest.raises(ValueError, match="no integers for sin; say how with register_fake"):
        relay.transform.FakeQuantizationToInteger(hard_fail=True)(tvm.IRModule.from_expr(func))


def test_optional_operators_are_written_if_they_are_named():
    expr = stored(relay.nn.softmax(R), 1 / 256, -128)
    converted(expr, left=["nn.softmax"])
    converted(expr, optional_qnn_ops=["nn.softmax"])
    with pytest.raises(ValueError, match="'nn.mystery' is none of the optional operators"):
        relay.transform.FakeQuantizationToInteger(optional_qnn_ops=["nn.mystery"])
    with pytest.raises(ValueError, match="use_qat is not there"):
        relay.transform.FakeQuantizationToInteger(use_qat=True)


def test_programs_say_how_operators_are_written():
    @relay.op.register_fake_quantization_to_integer("negative")
    def negated(call, types):
        have = types[call.args[0]]
        scale = relay.const(-have.scale.data.numpy())
        return call.args[0], TensorAffineType(scale, have.zero_point, have.dtype, have.axis)

    converted(stored(relay.negative(R), 0.1, -3))
