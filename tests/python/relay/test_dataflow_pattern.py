"""Patterns of graphs: matching, rewriting, cutting parts out."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.dataflow_pattern import (
    DFPatternCallback,
    FunctionPattern,
    dominates,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    rewrite,
    wildcard,
)


@pytest.fixture
def x():
    return relay.var("x", shape=(2, 3))


@pytest.fixture
def y():
    return relay.var("y", shape=(2, 3))


def test_leaves(x, y):
    assert match(wildcard(), x)
    assert is_var().match(x)
    assert is_var("x").match(x)
    assert not is_var("y").match(x)
    assert is_constant().match(relay.const(1.0))
    assert not is_constant().match(x)
    assert is_expr(x).match(x)
    assert not is_expr(x).match(y)
    assert is_op("add").match(tvm.ir.Op.get("add"))


def test_calls_and_commutative_operands(x, y):
    relu = is_op("nn.relu")(wildcard())
    assert (relu + is_var("y")).match(relay.nn.relu(x) + y)
    assert (relu + is_var("y")).match(y + relay.nn.relu(x))
    assert not (relu - is_var("y")).match(y - relay.nn.relu(x))
    assert not relu.match(relay.exp(x))
    one = wildcard()
    assert is_op("multiply")(one, one).match(x * x)
    assert not is_op("multiply")(one, one).match(x * y)


def test_an_attempt_that_fails_leaves_no_bindings(x, y):
    a = wildcard()
    pattern = is_op("subtract")(a, is_op("exp")(a)) | is_op("subtract")(is_op("exp")(a), a)
    assert pattern.match(relay.exp(x) - x)
    assert not pattern.match(relay.exp(x) - y)


def test_alternatives_optionals_and_structures(x, y):
    pattern = is_op("nn.relu")(wildcard()).optional(lambda p: is_op("exp")(p))
    assert pattern.match(relay.nn.relu(x))
    assert pattern.match(relay.exp(relay.nn.relu(x)))
    assert not pattern.match(relay.exp(x))
    pair = relay.Tuple([x, y])
    assert is_tuple([is_var("x"), is_var("y")]).match(pair)
    assert is_tuple(None).match(pair)
    assert not is_tuple([is_var("x")]).match(pair)
    assert is_tuple_get_item(is_tuple(None), 1).match(relay.TupleGetItem(pair, 1))
    assert not is_tuple_get_item(wildcard(), 0).match(relay.TupleGetItem(pair, 1))
    branch = relay.If(relay.var("c", "bool"), x, y)
    assert is_if(wildcard(), is_var("x"), is_var("y")).match(branch)
    assert is_let(wildcard(), is_constant(), wildcard()).match(relay.Let(x, relay.const(1.0), x))
    func = relay.Function([x, y], x + y)
    assert FunctionPattern([is_var(), is_var()], wildcard() + wildcard()).match(func)
    assert FunctionPattern(None, wildcard() + wildcard()).match(func)
    assert not FunctionPattern([is_var()], wildcard()).match(func)


def test_attributes_types_and_shapes(x):
    conv = relay.nn.conv2d(
        relay.var("d", shape=(1, 2, 5, 5)), relay.var("w"), kernel_size=3, channels=4
    )
    pattern = is_op("nn.conv2d")(wildcard(), wildcard())
    assert pattern.has_attr({"kernel_size": [3, 3], "channels": 4}).match(conv)
    assert not pattern.has_attr({"channels": 5}).match(conv)
    assert not pattern.has_attr({"no_such_setting": 5}).match(conv)
    assert is_op("add").has_attr({"TOpPattern": 1}).match(tvm.ir.Op.get("add"))
    func = relay.Function([x], x).with_attr("Composite", "a.b")
    assert wildcard().has_attr({"Composite": "a.b"}).match(func)
    assert has_dtype("float32").match(x)
    assert not has_dtype("int8").match(x)
    assert has_shape((2, 3)).match(x)
    assert not has_shape((3, 2)).match(x)
    assert has_type(relay.TensorType((2, 3), "float32")).match(x)
    with pytest.raises(ValueError, match="InferType"):
        has_dtype("float32").match(relay.exp(x))


def test_dominators(x, y):
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    unary = is_op("nn.relu")(wildcard()) | is_op("tanh")(wildcard())
    diamond = dominates(conv, unary, is_op("add")(wildcard(), wildcard()))
    data, weight = relay.var("data"), relay.var("weight")
    value = relay.nn.conv2d(data, weight)
    good = relay.tanh(relay.nn.relu(value)) + relay.nn.relu(value)
    assert diamond.match(good)
    assert not diamond.match(relay.exp(relay.nn.relu(value)) + relay.nn.relu(value))
    assert not diamond.match(x + y)


class SquareOfSum(DFPatternCallback):
    """(a + b) * (a + b) as a * a + 2 * a * b + b * b."""

    def __init__(self, **options):
        super().__init__(**options)
        self.a, self.b = wildcard(), wildcard()
        self.sum = self.a + self.b
        self.pattern = self.sum * self.sum

    def callback(self, pre, post, node_map):
        a, b = node_map[self.a][0], node_map[self.b][0]
        return a * a + relay.const(2.0) * a * b + b * b


def test_rewrite_keeps_the_value_and_reaches_inner_matches(x, y):
    inner = (x + y) * (x + y)
    func = relay.Function([x, y], (inner + y) * (inner + y))
    new = SquareOfSum().rewrite(func)
    assert not SquareOfSum().pattern.match(new.body)
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(2, 3)).astype("float32") for _ in "ab")
    run = relay.create_executor().evaluate
    np.testing.assert_allclose(run(new)(a, b).numpy(), run(func)(a, b).numpy(), rtol=1e-4)


class Swap(DFPatternCallback):
    """exp becomes tanh, or the other way."""

    def __init__(self, before, after, **options):
        super().__init__(**options)
        self.x = wildcard()
        self.pattern = is_op(before)(self.x)
        self.after = after

    def callback(self, pre, post, node_map):
        return self.after(node_map[self.x][0])


def test_rewrite_once_and_without_end(x):
    there, back = Swap("exp", relay.tanh), Swap("tanh", relay.exp)
    assert tvm.ir.structural_equal(rewrite([there, back], relay.exp(x)), relay.exp(x))
    wrap = Swap("exp", lambda v: relay.exp(relay.tanh(v)))
    with pytest.raises(ValueError, match="rewrite_once"):
        wrap.rewrite(relay.exp(x))
    wrap = Swap("exp", lambda v: relay.exp(relay.tanh(v)), rewrite_once=True)
    assert tvm.ir.structural_equal(wrap.rewrite(relay.exp(x)), relay.exp(relay.tanh(x)))


def test_types_are_known_to_callbacks_that_require_them(x):
    class Shapes(Swap):
        def callback(self, pre, post, node_map):
            assert [int(e) for e in pre.checked_type.shape] == [2, 3]
            return super().callback(pre, post, node_map)

    callback = Shapes("exp", relay.tanh, require_type=True)
    assert tvm.ir.structural_equal(callback.rewrite(relay.exp(x)), relay.tanh(x))


def test_partition_makes_functions_of_matches(x, y):
    pattern = is_op("nn.relu")(wildcard() + is_constant())
    one = relay.const(1.0)
    expr = relay.nn.relu(relay.exp(x) + one) * relay.nn.relu(y + one)
    new = pattern.partition(expr, {"Composite": "my.part"})
    for side in new.args:
        func = side.op
        assert func.attrs["PartitionedFromPattern"] == "add_nn.relu_"
        assert func.attrs["Composite"] == "my.part"
        assert len(func.params) == 1
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(2, 3)).astype("float32") for _ in "ab"]
    run = relay.create_executor().evaluate
    found = run(relay.Function([x, y], new))(*values).numpy()
    np.testing.assert_allclose(found, run(relay.Function([x, y], expr))(*values).numpy())
    assert pattern.partition(expr, check=lambda e: False).same_as(expr)


def test_a_match_whose_inside_is_used_elsewhere_is_left(x):
    pattern = is_op("nn.relu")(is_op("exp")(wildcard()))
    shared = relay.exp(x)
    expr = relay.nn.relu(shared) + shared
    assert tvm.ir.structural_equal(pattern.partition(expr), expr)


def test_merge_composite_makes_functions_that_run(x, y):
    add = wildcard() + wildcard()
    table = [
        ("my.add_relu", is_op("nn.relu")(add)),
        ("my.add", add, lambda call: isinstance(call.args[0], relay.Var)),
    ]
    expr = relay.exp(relay.nn.relu(x + y) + relay.const(1.0)) * (y + x)
    func = relay.Function([x, y], expr)
    merged = relay.transform.MergeComposite(table)(tvm.IRModule.from_expr(func))
    names = []
    relay.expr_functor.post_order_visit(
        merged["main"].body,
        lambda e: names.append(e.attrs["Composite"]) if isinstance(e, relay.Function) else None,
    )
    assert names == ["my.add_relu", "my.add"]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(2, 3)).astype("float32") for _ in "ab"]
    run = relay.create_executor().evaluate
    found = run(merged["main"])(*values).numpy()
    np.testing.assert_allclose(found, run(func)(*values).numpy(), rtol=1e-5)


def test_a_wildcard_may_stand_for_a_pattern_that_holds_it(x, y):
    chain = wildcard()
    chain.redirect_to(is_op("nn.relu")(chain) | is_var())
    start = is_op("exp")(chain)
    assert start.match(relay.exp(relay.nn.relu(relay.nn.relu(relay.nn.relu(x)))))
    assert start.match(relay.exp(x))
    assert not start.match(relay.exp(relay.nn.relu(relay.tanh(relay.nn.relu(x)))))
    both = is_op("add")(chain, chain)
    assert not both.match(relay.nn.relu(x) + relay.nn.relu(y))


def test_none_leaves_the_operands_open(x, y):
    joined = relay.concatenate([x, y], 0)
    assert is_op("concatenate")(None).match(joined)
    assert is_op("add")(None).match(x + y) and not is_op("add")(None).match(x - y)


def test_rewritten_operands_keep_the_types_of_what_they_replace(x, y):
    class Doubled(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("exp")(wildcard())
            self.seen = []

        def callback(self, pre, post, node_map):
            self.seen.append(post.args[0].checked_type)
            return relay.multiply(post.args[0], relay.const(2.0))

    func = relay.Function([x], relay.exp(relay.negative(relay.exp(x))))
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]
    callback = Doubled()
    callback.rewrite(typed)
    assert callback.seen == [typed.params[0].checked_type] * 2


def test_patterns_print_as_in_tvm():
    any_value, number = wildcard(), is_constant()
    shown = str(is_op("nn.relu")(is_op("add")(any_value, number) | is_var("q")))
    assert shown == (
        "(id 0): CallPatternNode(Op(nn.relu), [(id 2): AltPattern((id 3): "
        "CallPatternNode(Op(add), [*, ConstantPattern()]) | VarPattern(q))])"
    )
    assert str(is_op("add")(any_value, any_value)) == (
        "(id 0): CallPatternNode(Op(add), [*, (invoke pattern id 2)])"
    )
    assert str(any_value.has_dtype("float32")) == "(id 0): DataTypePattern(* has dtype float32)"
    assert str(any_value.has_shape((1, 2))) == "(id 0): ShapePattern(* has shape [1, 2])"
    assert str(any_value.has_attr({"a": 1})) == "(id 0): AttrPattern(* has attributes {'a': 1})"
    assert str(is_tuple_get_item(is_tuple([number]), 1)) == (
        "(id 0): TupleGetItemPatternNode((id 1): TuplePattern([ConstantPattern()]), 1)"
    )
    chain = wildcard()
    chain.redirect_to(is_op("nn.relu")(chain) | any_value)
    assert str(chain) == "*"
