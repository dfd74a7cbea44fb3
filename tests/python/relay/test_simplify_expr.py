"""`SimplifyExpr`: fewer calls, the same values."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing import run_opt_pass

X = relay.var("x", shape=(2, 3, 4), dtype="float32")
BYTES = relay.var("x", shape=(2, 3, 4), dtype="int8")
IMAGE = relay.var("x", shape=(1, 8, 5, 6), dtype="float32")
BLOCKED = relay.layout_transform(IMAGE, "NCHW", "NCHW8c")
ONE = relay.const(1.0)


def names(expr):
    found = []
    relay.expr_functor.post_order_visit(
        expr, lambda e: found.append(str(e.op.name)) if isinstance(e, relay.Call) else None
    )
    return found


def simplified(expr):
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    return func, run_opt_pass(func, transform.SimplifyExpr())


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (relay.reshape(relay.reshape(X, (6, 4)), (3, 8)), ["reshape"]),
        (relay.reshape(relay.reshape(X, (6, 4)), (2, 3, 4)), []),
        (relay.squeeze(relay.expand_dims(X, 0)), ["expand_dims", "squeeze"]),
        (relay.clip(BYTES, -128, 127), []),
        (relay.clip(BYTES, -127, 127), ["clip"]),
        (relay.reshape(relay.squeeze(relay.expand_dims(X, 0)), (24,)), ["reshape"]),
        (relay.transpose(relay.transpose(X, (0, 2, 1)), (0, 2, 1)), []),
        (relay.transpose(relay.transpose(X), (1, 0, 2)), ["transpose"]),
        (relay.layout_transform(relay.transpose(IMAGE, (0, 2, 3, 1)), "NHWC", "NCHW"), []),
        (
            relay.layout_transform(BLOCKED, "NCHW8c", "NCHW4c"),
            ["layout_transform"],
        ),
        (relay.layout_transform(BLOCKED, "NCHW8c", "NCHW"), []),
        (relay.cast(X, "float32"), []),
        (relay.cast(relay.cast(BYTES, "int32"), "float32"), ["cast"]),
        (relay.cast(relay.cast(BYTES, "float32"), "int8"), []),
        (relay.cast(relay.cast(X, "int32"), "float32"), ["cast", "cast"]),
        (relay.clip(relay.clip(X, 0.0, 6.0), -1.0, 4.0), ["clip"]),
        (X * relay.ones((2, 3, 4), "float32") + relay.zeros_like(X), []),
        (X / ONE - relay.const(np.zeros((3, 1), "float32")), []),
        (relay.full(relay.const(2.0), (2, 3, 4), "float32") * X, ["multiply"]),
        ((X + relay.const(2.0)) + relay.const(3.0), ["add"]),
        ((X * relay.const(2.0)) * relay.const(3.0), ["multiply"]),
        ((X + relay.const(2.0)) * relay.const(3.0), ["multiply", "add"]),
        (X * relay.const(2.0) + relay.const(3.0), ["multiply", "add"]),
        (ONE / relay.sqrt(relay.abs(X) + ONE), ["abs", "add", "rsqrt"]),
        (X / relay.sqrt(relay.abs(X) + ONE), ["abs", "add", "rsqrt", "multiply"]),
        (
            relay.broadcast_to_like(relay.expand_dims(X, 0), relay.broadcast_to(X, (5, 2, 3, 4))),
            ["expand_dims", "broadcast_to"],
        ),
        (
            relay.argmax(relay.qnn.op.dequantize(BYTES, relay.const(0.5), relay.const(3)), axis=1),
            ["argmax"],
        ),
        # A smaller operand is not the result, whatever it is added to.
        (relay.const(1.0) + relay.zeros((2, 3), "float32"), ["zeros", "add"]),
    ],
)
def test_calls_become_fewer_and_mean_the_same(expr, expected):
    before, after = simplified(expr)
    assert names(after.body) == expected
    rng = np.random.default_rng(0)
    args = []
    for param in before.params:
        shape = [int(e) for e in param.type_annotation.shape]
        args.append((rng.standard_normal(shape) * 5).astype(str(param.type_annotation.dtype)))
    run = relay.create_executor("graph").evaluate
    want, got = (run(func)(*args).numpy() for func in (before, after))
    assert want.dtype == got.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_padding_by_blocks_is_kept():
    x = relay.var("x", shape=(1, 6, 2, 2))
    padded = relay.layout_transform(relay.layout_transform(x, "NCHW", "NCHW4c"), "NCHW4c", "NCHW")
    func = relay.Function([x], relay.cast(relay.cast(padded, "float32"), "float32"))
    assert names(run_opt_pass(func, transform.SimplifyExpr()).body) == names(padded)


def test_shapes_that_are_not_known_are_left():
    x = relay.var("x", shape=(relay.Any(), 4))
    func = relay.Function([x], relay.reshape(relay.reshape(x, (-1, 2)), (-1,)))
    after = run_opt_pass(func, transform.SimplifyExpr())
    assert tvm.ir.structural_equal(after, run_opt_pass(func, transform.InferType()))
