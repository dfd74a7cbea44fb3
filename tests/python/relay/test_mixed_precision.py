"""`ToMixedPrecision`."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import transform


def names(expr):
    found = []
    relay.expr_functor.post_order_visit(
        expr, lambda e: found.append(str(e.op.name)) if isinstance(e, relay.Call) else None
    )
    return found


def converted(func, *options):
    return transform.ToMixedPrecision(*options)(tvm.IRModule.from_expr(func))["main"]


def _layer():
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 4, 8, 8))
    w = relay.const(rng.standard_normal((8, 4, 3, 3)).astype("float32") * 0.2)
    bias = relay.const(rng.standard_normal((8, 1, 1)).astype("float32"))
    return x, relay.nn.relu(relay.nn.conv2d(x, w, channels=8, kernel_size=3) + bias)


def test_products_are_computed_in_half_precision_and_what_follows_too():
    x, y = _layer()
    half = converted(relay.Function([x], y))
    assert str(half.params[0].checked_type.dtype) == "float32"
    assert str(half.ret_type.dtype) == "float16"
    assert names(half.body) == ["cast", "cast", "nn.conv2d", "cast", "cast", "add", "nn.relu"]
    conv = half.body.args[0].args[0].args[0]
    assert str(conv.attrs.out_dtype) == "float32"


def test_sensitive_operators_keep_their_precision():
    x, y = _layer()
    flat = relay.nn.softmax(relay.nn.batch_flatten(y))
    half = converted(relay.Function([x], flat))
    assert names(half.body)[-3:] == ["nn.batch_flatten", "cast", "nn.softmax"]
    assert str(half.ret_type.dtype) == "float32"


def test_the_result_keeps_its_type_where_that_is_asked_for():
    x, y = _layer()
    option = {"relay.ToMixedPrecision.keep_orig_output_dtype": True}
    with tvm.transform.PassContext(config=option):
        half = converted(relay.Function([x], relay.Tuple([y, x])))
    assert [str(field.dtype) for field in half.ret_type.fields] == ["float32", "float32"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_network_computes_nearly_the_same(dtype):
    x, y = _layer()
    rng = np.random.default_rng(1)
    w = relay.const(rng.standard_normal((10, 8)).astype("float32") * 0.2)
    joined = relay.concatenate([y, relay.exp(-y)], axis=1)
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(relay.split(joined, 2, axis=1)[0]))
    func = relay.Function([x], relay.nn.softmax(relay.nn.dense(pooled, w)))
    image = rng.standard_normal((1, 4, 8, 8)).astype("float32")
    run = relay.create_executor("graph").evaluate
    got = run(converted(func, dtype))(image).numpy()
    np.testing.assert_allclose(got, run(func)(image).numpy(), rtol=0.03, atol=0.01)


def test_branches_and_bindings_keep_their_types():
    x, y = _layer()
    c, v = relay.var("c", shape=(), dtype="bool"), relay.var("v")
    body = relay.Let(v, y, relay.If(c, v, relay.exp(v)))
    half = converted(relay.Function([x, c], body))
    assert str(half.ret_type.dtype) == "float32"


def test_a_registered_rule_comes_first():
    x = relay.var("x", shape=(4,))
    with relay.testing.temp_op_attr.TempOpAttr(
        "tanh", "FTVMMixedPrecisionConversionType", lambda call, low: [0, low, low]
    ):
        half = converted(relay.Function([x], relay.tanh(x)))
    assert names(half.body) == ["cast", "tanh"]
    assert names(converted(relay.Function([x], relay.tanh(x))).body) == ["tanh"]


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ValueError, match="float16 or bfloat16, got 'int8'"):
        transform.ToMixedPrecision("int8")
    with pytest.raises(ValueError, match="missing_op_mode is 0, 1 or 2, got 3"):
        transform.ToMixedPrecision("float16", 3)
