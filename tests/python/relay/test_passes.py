"""Passes over relay programs."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing import run_opt_pass
from tvm.relay.testing.temp_op_attr import TempOpAttr


def value(expr: relay.Expr, *args):
    func = expr if isinstance(expr, relay.Function) else relay.Function([], expr)
    return relay.create_executor("graph").evaluate(func)(*args).numpy()


def op_names(expr: relay.Expr) -> list[str]:
    found = []
    relay.expr_functor.post_order_visit(
        expr, lambda e: found.append(str(e.op.name)) if isinstance(e, relay.Call) else None
    )
    return found


def test_constant_parts_become_constants():
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], x + (relay.const([1.0, 2.0]) * relay.const(3.0)))
    folded = run_opt_pass(func, transform.FoldConstant())
    assert op_names(folded) == ["add"]
    np.testing.assert_array_equal(folded.body.args[1].data.numpy(), [3, 6])


@pytest.mark.parametrize("name", ["batch_norm", "layer_norm", "instance_norm"])
def test_normalisations_are_written_in_arithmetic(name):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(2, 3, 4, 4)).astype("float32")
    x = relay.var("x", shape=data.shape)
    size = data.shape[-1] if name == "layer_norm" else 3
    vectors = [relay.const(rng.uniform(0.5, 1, size).astype("float32")) for _ in range(4)]
    count = 4 if name == "batch_norm" else 2
    out = getattr(relay.nn, name)(x, *vectors[:count])
    func = relay.Function([x], out[0] if name == "batch_norm" else out)
    simple = run_opt_pass(func, transform.SimplifyInference())
    assert f"nn.{name}" not in op_names(simple)
    np.testing.assert_allclose(value(simple, data), value(func, data), rtol=1e-4, atol=1e-5)


def test_equal_calls_are_shared_unless_they_are_skipped():
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], relay.exp(x) + relay.exp(x))
    shared = run_opt_pass(func, transform.EliminateCommonSubexpr())
    assert shared.body.args[0].same_as(shared.body.args[1])
    skipped = run_opt_pass(func, transform.EliminateCommonSubexpr(lambda e: True))
    assert not skipped.body.args[0].same_as(skipped.body.args[1])


def test_bindings_that_nothing_uses_disappear():
    x, y = relay.var("x", shape=(2,)), relay.var("y")
    func = relay.Function([x], relay.Let(y, relay.exp(x), relay.tanh(x)))
    assert op_names(run_opt_pass(func, transform.DeadCodeElimination())) == ["tanh"]


def test_normal_forms_undo_each_other():
    x = relay.var("x", shape=(2,))
    func = run_opt_pass(relay.Function([x], relay.exp(x) * relay.tanh(x)), transform.InferType())
    named = run_opt_pass(func, transform.ToANormalForm())
    assert isinstance(named.body, relay.Let)
    straight = run_opt_pass(named, transform.ToGraphNormalForm())
    assert tvm.ir.structural_equal(straight, func)


def test_functions_marked_so_are_inlined_and_unused_ones_removed():
    mod = relay.parse("""
        def @twice(%x: float32, Inline=1) -> float32 { add(%x, %x) }
        def @unused(%x: float32) -> float32 { %x }
        def @main(%y: float32) -> float32 { @twice(@twice(%y)) }
    """)
    mod = transform.RemoveUnusedFunctions()(transform.Inline()(mod))
    assert [str(gv.name_hint) for gv in mod.get_global_vars()] == ["main"]
    assert op_names(mod["main"]) == ["add", "add"]


def test_borders_become_part_of_convolutions():
    rng = np.random.default_rng(1)
    data, weight = rng.normal(size=(1, 2, 6, 6)), rng.normal(size=(3, 2, 3, 3))
    data, weight = data.astype("float32"), weight.astype("float32")
    x = relay.var("x", shape=data.shape)
    padded = relay.nn.pad(x, ((0, 0), (0, 0), (1, 0), (2, 1)))
    func = relay.Function([x], relay.nn.conv2d(padded, relay.const(weight), padding=1))
    folded = run_opt_pass(func, transform.FoldExplicitPadding())
    assert op_names(folded) == ["nn.conv2d"]
    assert list(folded.body.attrs.padding) == [2, 3, 1, 2]
    np.testing.assert_allclose(value(folded, data), value(func, data), rtol=1e-4, atol=1e-5)


def test_rules_of_operators_rewrite_their_calls():
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], relay.tanh(x))

    def rule(attrs, args, types):
        assert types[-1] == relay.TensorType((2,))
        return relay.exp(args[0])

    with TempOpAttr("tanh", "FTVMLegalize", rule):
        assert op_names(run_opt_pass(func, transform.Legalize())) == ["exp"]
    assert op_names(run_opt_pass(func, transform.Legalize())) == ["tanh"]


def test_a_pass_that_a_user_adds_runs_by_its_name():
    class AddOfConstants(relay.ExprMutator):
        def visit_call(self, call):
            new = super().visit_call(call)
            if str(new.op.name) == "add" and all(isinstance(a, relay.Constant) for a in new.args):
                a, b = (arg.data.numpy() for arg in new.args)
                return relay.const(a + b)
            return new

    @transform.function_pass(opt_level=1)
    class FoldAdd:
        def transform_function(self, func, mod, ctx):
            return AddOfConstants().visit(func)

    x = relay.var("x", shape=())
    func = relay.Function([x], (relay.const(1.0) + relay.const(2.0)) + x)
    assert FoldAdd().info.name == "FoldAdd"
    folded = run_opt_pass(func, FoldAdd())
    assert folded.body.args[0].data.numpy() == 3
    plain = relay.Function([x], relay.exp(x))
    assert AddOfConstants().visit(plain).same_as(plain)


def test_derivatives_agree_with_differences():
    rng = np.random.default_rng(2)
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    func = relay.Function([x, w], relay.tanh(relay.nn.dense(x, w)))
    relay.testing.check_grad(func, [rng.normal(size=(2, 3)), rng.normal(size=(4, 3))])


def test_instruments_see_modules_of_relay_only():
    seen = []

    @tvm.ir.instrument.pass_instrument
    class Watch:
        def run_before_pass(self, mod, info):
            seen.append((info.name, isinstance(mod["main"], relay.Function)))

    x = relay.var("x", shape=(2,))
    value = relay.exp(relay.const([1.0, 2.0]))  # worked out by a compiled kernel
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, value)))
    with tvm.transform.PassContext(instruments=[Watch()]):
        relay.transform.FoldConstant()(mod)
    assert seen and all(of_relay for _, of_relay in seen)


@pytest.mark.parametrize(("value", "folds"), [(10, True), (0, False)])
def test_a_border_of_the_zero_point_becomes_that_of_a_quantised_convolution(value, folds):
    x = relay.var("x", shape=(1, 6, 6, 4), dtype="int8")
    w = relay.var("w", shape=(3, 3, 4, 2), dtype="int8")
    pad = relay.nn.pad(x, [[0, 0], [1, 1], [1, 2], [0, 0]], pad_value=value)
    conv = relay.qnn.op.conv2d(
        pad, w, relay.const(10), relay.const(1), relay.const(1.0), relay.const(1.0),
        channels=2, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    func = relay.Function([x, w], conv)
    folded = run_opt_pass(func, transform.FoldExplicitPadding())
    assert (
        (str(folded.body.args[0].name_hint) == "x")
        if folds
        else (str(folded.body.args[0].op.name) == "nn.pad")
    )
    rng = np.random.default_rng(0)
    given = [rng.integers(-100, 100, size).astype("int8") for size in ((1, 6, 6, 4), (3, 3, 4, 2))]
    results = [
        relay.create_executor("graph", target="llvm").evaluate(f)(*given).numpy()
        for f in (func, folded)
    ]
    np.testing.assert_array_equal(*results)


def test_dropout_is_not_folded():
    out = relay.nn.dropout(relay.const(np.ones(4, "float32"))) + relay.const(1.0)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([], out)))
    assert "nn.dropout" in relay.transform.FoldConstant()(mod).astext()
