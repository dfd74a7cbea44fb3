"""Names for values: for all, and for those that several blocks use."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing import run_opt_pass


def bound(expr):
    """Names of the operators that lets bind, and those that stand in other places."""
    named, inline = [], []

    def look(node):
        if isinstance(node, relay.Let) and isinstance(node.value, relay.Call):
            named.append(node.value)
        elif isinstance(node, relay.Call) and isinstance(node.op, tvm.ir.Op):
            inline.append(node)

    relay.expr_functor.post_order_visit(expr, look)
    rest = [str(call.op.name) for call in inline if not any(call.same_as(n) for n in named)]
    return [str(call.op.name) for call in named], rest


def branches():
    """exp is used by both branches, tanh by one."""
    x, c = relay.var("x", shape=(3,)), relay.var("c", shape=(), dtype="bool")
    both = relay.exp(x)
    return relay.Function([c, x], relay.If(c, relay.tanh(both), both + both))


def run(func, *args):
    return relay.create_executor("vm").evaluate(func)(*args).numpy()


def test_what_both_branches_use_is_named_before_them():
    blocks = run_opt_pass(branches(), transform.ToBasicBlockNormalForm())
    assert bound(blocks) == (["exp"], ["tanh", "add"])
    assert isinstance(blocks.body, relay.Let)


def test_what_one_branch_uses_stays_in_it():
    x, c = relay.var("x", shape=(3,)), relay.var("c", shape=(), dtype="bool")
    once = relay.exp(x)
    func = relay.Function([c, x], relay.If(c, once * once, x))
    blocks = run_opt_pass(func, transform.ToBasicBlockNormalForm())
    assert bound(blocks) == ([], ["exp", "multiply"])


def test_shared_work_of_nested_branches_goes_to_the_innermost_block_around_its_uses():
    x, c = relay.var("x", shape=(3,)), relay.var("c", shape=(), dtype="bool")
    work = relay.exp(x)
    inner = relay.If(c, relay.tanh(work), relay.sqrt(work))
    func = relay.Function([c, x], relay.If(c, inner, x))
    blocks = run_opt_pass(func, transform.ToBasicBlockNormalForm())
    assert isinstance(blocks.body, relay.If)
    assert isinstance(blocks.body.true_branch, relay.Let)
    assert bound(blocks)[0] == ["exp"]


def test_a_function_gets_what_is_computed_once_from_outside():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    outside = relay.exp(x)
    inner = relay.Function([y], y + outside)
    func = relay.Function([x], relay.Call(inner, [outside]))
    blocks = run_opt_pass(func, transform.ToBasicBlockNormalForm())
    assert bound(blocks)[0] == ["exp"]


@pytest.mark.parametrize(
    "form", [transform.ToANormalForm, transform.ToBasicBlockNormalForm, transform.ToGraphNormalForm]
)
def test_forms_compute_the_same(form):
    func = branches()
    x = np.array([0.5, 1.0, 2.0], "float32")
    again = run_opt_pass(run_opt_pass(func, form()), form())
    for choice in (True, False):
        np.testing.assert_allclose(run(again, choice, x), run(func, choice, x), rtol=1e-6)


def test_every_value_has_a_name_once():
    named = run_opt_pass(branches(), transform.ToANormalForm())
    calls, inline = bound(named)
    assert sorted(calls) == ["add", "exp", "tanh"] and inline == []


def test_long_chains_take_no_stack():
    x = relay.var("x", shape=(2,))
    y = x
    for _ in range(3000):
        y = relay.negative(y)
    func = relay.Function([x], relay.If(relay.const(True), y, y + y))
    blocks = transform.ToBasicBlockNormalForm()(tvm.IRModule.from_expr(func))["main"]
    assert isinstance(blocks.body, relay.Let)


def _atrous(padding, crops, pad_value=0.0, own=(0, 0), layout="NHWC"):
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 9, 10, 3))
    w = relay.const(rng.standard_normal((3, 3, 3, 4)).astype("float32"))
    spread = relay.nn.space_to_batch_nd(x, (2, 3), padding, pad_value)
    conv = relay.nn.conv2d(spread, w, padding=own, channels=4, kernel_size=3, data_layout=layout,
                           kernel_layout="HWIO")  # fmt: skip
    return relay.Function([x], relay.nn.batch_to_space_nd(conv, (2, 3), crops))


@pytest.mark.parametrize(
    ("padding", "crops", "own"),
    [
        (((0, 1), (0, 2)), ((0, 0), (0, 0)), (0, 0)),
        (((2, 3), (3, 5)), ((0, 1), (0, 2)), (0, 0)),
        (((0, 1), (1, 1)), ((1, 1), (0, 1)), (1, 1)),
    ],
)
def test_convolutions_of_blocks_become_convolutions_with_gaps(padding, crops, own):
    func = _atrous(padding, crops, own=own)
    flat = run_opt_pass(func, transform.FlattenAtrousConv())
    assert str(flat.body.op.name) == "nn.conv2d"
    assert [int(d) for d in flat.body.attrs.dilation] == [2, 3]
    x = np.random.default_rng(1).standard_normal((1, 9, 10, 3)).astype("float32")
    np.testing.assert_allclose(run(flat, x), run(func, x), rtol=1e-4, atol=1e-4)


def test_borders_that_a_convolution_has_not_are_left():
    for func in (
        _atrous(((0, 1), (0, 2)), ((1, 0), (0, 0))),
        _atrous(((0, 1), (0, 2)), ((0, 0), (0, 0)), pad_value=1.0),
    ):
        kept = run_opt_pass(func, transform.FlattenAtrousConv())
        assert str(kept.body.op.name) == "nn.batch_to_space_nd"
