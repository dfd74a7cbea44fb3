"""Programs of relay written in Python, which give what executors do."""

import ast

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.prelude import Prelude
from tvm.relay.testing import add_nat_definitions, count, make_nat_expr, run_as_python, to_python
from tvm.runtime import ADT


def test_tuples_cells_and_the_order_of_effects():
    value = run_as_python(relay.Tuple([relay.const(1), relay.Tuple([])]))
    assert isinstance(value, ADT) and value[0].numpy() == 1 and len(value[1]) == 0
    cell, done = relay.Var("cell"), relay.Var("done")
    body = relay.Tuple([relay.RefRead(cell), done, relay.RefRead(cell)])
    both = relay.Let(
        cell, relay.RefCreate(relay.const(1)),
        relay.Let(done, relay.RefWrite(cell, relay.RefRead(cell) + relay.const(4)), body),
    )  # fmt: skip
    before, nothing, after = run_as_python(both)
    assert before.numpy() == after.numpy() == 5 and len(nothing) == 0
    held = run_as_python(relay.RefCreate(relay.const([2, 3])))
    assert isinstance(held, RefValue) and list(held.value.numpy()) == [2, 3]
    held.value = tvm.nd.array(np.int32(8))
    assert held.value.numpy() == 8


def test_only_one_branch_runs():
    cell, done, choice = relay.Var("cell"), relay.Var("done"), relay.Var("choice")
    branches = relay.If(
        choice, relay.RefWrite(cell, relay.const(1)), relay.RefWrite(cell, relay.const(2))
    )
    program = relay.Function(
        [choice],
        relay.Let(cell, relay.RefCreate(relay.const(0)),
                  relay.Let(done, branches, relay.RefRead(cell))),
    )  # fmt: skip
    run = run_as_python(program)
    assert run(tvm.nd.array(np.array(True))).numpy() == 1
    assert run(tvm.nd.array(np.array(False))).numpy() == 2


def test_functions_call_themselves_and_keep_what_is_around_them():
    text = """#[version = "0.0.5"]
    def @down(%n: int32) -> int32 { if (%n == 0) { 0 } else { %n + @down(%n - 1) } }
    def @main(%n: int32) -> int32 {
      let %class = fn (%k: int32) -> int32 { if (%k == 0) { %n } else { %class(%k - 1) * 2 } };
      @down(%n) + %class(3)
    }"""
    mod = relay.parse(text)
    run = run_as_python(mod.get_global_var("main"), mod)
    assert run(tvm.nd.array(np.int32(5))).numpy() == 15 + 40
    written = ast.unparse(to_python(mod.get_global_var("main"), mod))
    assert "def down(n" in written and "_class" in written


def test_values_are_made_and_taken_apart():
    mod = tvm.IRModule()
    prelude = Prelude(mod)
    add_nat_definitions(prelude)
    double = mod.get_global_var("nat_double")
    assert count(prelude, run_as_python(double(make_nat_expr(prelude, 3)), mod)) == 6
    _, cons, nil = mod.get_type("List")
    items = cons(relay.const(1), cons(relay.const(2), nil()))
    twice = relay.Var("x", "int32")
    mapped = prelude.map(relay.Function([twice], twice * relay.const(2)), items)
    value = run_as_python(prelude.rev(mapped), mod)
    assert isinstance(value, ConstructorValue) and value.tag == cons.tag
    assert value.fields[0].numpy() == 4 and value.fields[1].fields[0].numpy() == 2
    assert value.fields[1].fields[1].tag == nil.tag
    with pytest.raises(ValueError, match="no clause of a match fits"):
        run_as_python(prelude.hd(nil()), mod)


def test_operators_keep_their_settings():
    x = relay.var("x", shape=(2, 6))
    parts = relay.split(x, 3, axis=1)
    joined = relay.concatenate([parts[2], relay.nn.relu(parts[0])], axis=0)
    body = relay.Tuple([joined, relay.reshape(x, (-1, 4)), relay.full(relay.const(2.5), (2,))])
    data = np.random.default_rng(0).standard_normal((2, 6)).astype("float32")
    both, reshaped, full = run_as_python(relay.Function([x], body))(tvm.nd.array(data))
    np.testing.assert_array_equal(
        both.numpy(), np.concatenate([data[:, 4:], np.maximum(data[:, :2], 0)])
    )
    np.testing.assert_array_equal(reshaped.numpy(), data.reshape(3, 4))
    assert list(full.numpy()) == [2.5, 2.5]
    special = run_as_python(relay.const(np.array([np.inf, -np.inf], "float16")))
    assert special.dtype == "float16" and list(special.numpy()) == [np.inf, -np.inf]
