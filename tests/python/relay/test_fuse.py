"""Operators as functions that are one kernel."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay import transform


def _fused(expr, level=2):
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    return transform.FuseOps(level)(tvm.IRModule.from_expr(func))


def _kernels(mod):
    """The operators of each kernel, in the order in which they are called."""
    found = []

    def visit(expr):
        if isinstance(expr, relay.Call) and isinstance(expr.op, relay.Function):
            names = []

            def note(inner):
                if isinstance(inner, relay.Call):
                    names.append(str(inner.op.name))

            relay.analysis.post_order_visit(expr.op.body, note)
            assert int(expr.op.attrs["Primitive"]) == 1
            found.append(names)

    relay.analysis.post_order_visit(mod["main"].body, visit)
    # Calls inside of kernels are visited too; only calls of functions count.
    return found


def _conv(data, name, size=3):
    pad = size // 2
    return relay.nn.conv2d(
        data, relay.var(name), kernel_size=(size, size), padding=(pad, pad), channels=16
    )


X = relay.var("x", shape=(1, 16, 8, 8))


def test_elementwise_operators_follow_the_convolution_before_them():
    y = relay.nn.relu(_conv(relay.exp(X), "w") + relay.const(1.0))
    assert _kernels(_fused(y)) == [["exp"], ["nn.conv2d", "add", "nn.relu"]]


def test_a_kernel_has_one_convolution():
    left, right = _conv(X, "w1"), _conv(X, "w2", 1)
    kernels = _kernels(_fused(left + right))
    assert sorted(kernels, key=len) == [["nn.conv2d"], ["nn.conv2d", "add"]]


def test_what_two_branches_read_is_written_once():
    shared = relay.exp(X)
    kernels = _kernels(_fused(_conv(shared, "w1") + relay.sum(shared)))
    assert kernels[0] == ["exp"]
    diamond = relay.sigmoid(shared) + relay.tanh(shared)
    assert _kernels(_fused(diamond)) == [["exp", "sigmoid", "tanh", "add"]]


def test_a_reduction_ends_its_kernel():
    y = relay.exp(relay.sum(relay.exp(X), axis=1))
    assert _kernels(_fused(y)) == [["exp", "sum"], ["exp"]]


def test_tuples_in_the_middle_are_no_kernels():
    pair = relay.concatenate((relay.nn.relu(X), relay.tanh(X)), axis=1)
    parts = relay.split(pair, 2, axis=1)
    names = ["nn.relu", "tanh", "concatenate", "split", "add"]
    assert _kernels(_fused(parts[0] + parts[1])) == [names]


def test_level_zero_makes_a_kernel_of_each_operator():
    y = relay.nn.relu(relay.exp(X))
    assert _kernels(_fused(y, 0)) == [["exp"], ["nn.relu"]]
    assert len(_kernels(_fused(relay.reshape(X, (16, 64))))) == 1
    call = _fused(relay.reshape(X, (16, 64)))["main"].body
    assert int(call.op.attrs["relay.reshape_only"]) == 1


def test_branches_fuse_inside():
    y = relay.If(relay.var("c", "bool"), relay.exp(X) + X, relay.log(X))
    assert sorted(_kernels(_fused(y))) == [["exp", "add"], ["log"]]


@pytest.mark.parametrize("level", [0, 2])
def test_fused_programs_run_and_come_apart_again(level):
    data = _conv(relay.exp(X), "w")
    pool = relay.nn.max_pool2d(relay.nn.relu(data), (2, 2), (2, 2))
    parts = relay.split(pool, 2, axis=1)
    y = relay.Tuple([relay.sum(parts[0] * parts[1], axis=1), relay.nn.batch_flatten(pool)])
    func = relay.Function(relay.analysis.free_vars(y), y)
    mod = transform.InferType()(tvm.IRModule.from_expr(func))
    fused = transform.FuseOps(level)(mod)
    assert tvm.ir.structural_equal(mod, transform.DefuseOps()(fused))
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=[int(e) for e in p.checked_type.shape]).astype("float32")
              for p in mod["main"].params]  # fmt: skip
    results = [relay.create_executor("graph", m).evaluate()(*inputs) for m in (mod, fused)]
    for got, wanted in zip(*results):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_the_option_max_depth_says_how_many_operators_a_kernel_has():
    x = np.random.default_rng(0).normal(size=(1, 16, 8, 8)).astype("float32")
    y = relay.nn.relu(relay.tanh(relay.exp(relay.sigmoid(X)) + relay.const(1.0)))
    mod = tvm.IRModule.from_expr(relay.Function([X], y))
    found = {}
    for most in (1, 2, 256):
        with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": most}):
            assert max(map(len, _kernels(_fused(y)))) == min(most, 5)
            lib = relay.build(mod, "llvm")
        executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        executor.run(x=x)
        found[most] = executor.get_output(0).numpy()
        nodes = json.loads(lib.get_graph_json())["nodes"]
        assert sum(node["op"] == "tvm_op" for node in nodes) == -(-5 // min(most, 5))
    want = np.maximum(np.tanh(np.exp(1 / (1 + np.exp(-x))) + 1), 0)
    for result in found.values():
        np.testing.assert_allclose(result, want, rtol=1e-5)
    with (
        tvm.transform.PassContext(config={"relay.FuseOps.max_depth": 0}),
        pytest.raises(ValueError, match="max_depth is the most operators in a kernel"),
    ):
        relay.build(mod, "llvm")
