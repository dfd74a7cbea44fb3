"""Walks of programs' own over relay expressions."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay

X = relay.var("x", shape=(2, 3))


def test_methods_are_called_before_operands_are_visited():
    seen = []

    class Order(relay.ExprVisitor):
        def visit_call(self, call):
            seen.append(f"into {call.op.name}")
            super().visit_call(call)
            seen.append(f"out of {call.op.name}")

    Order().visit(relay.nn.relu(relay.abs(X)))
    assert seen == ["into nn.relu", "into abs", "out of abs", "out of nn.relu"]


def test_a_method_decides_what_is_visited():
    seen = []

    class UpToRelu(relay.ExprVisitor):
        def visit_call(self, call):
            seen.append(call.op.name)
            if call.op.name != "nn.relu":
                super().visit_call(call)

    UpToRelu().visit(relay.exp(relay.nn.relu(relay.abs(X))))
    assert seen == ["exp", "nn.relu"]


def test_functors_need_methods_only_for_what_they_visit():
    class Count(relay.ExprFunctor):
        def visit_call(self, call):
            return 1 + sum(self.visit(arg) for arg in call.args)

        def visit_var(self, var):
            return 0

    assert Count().visit(relay.add(relay.exp(X), X)) == 2
    with pytest.raises(NotImplementedError, match="Count has no method for Constant"):
        Count().visit(relay.add(X, relay.const(1.0)))


def test_long_chains_are_walked():
    class Negated(relay.ExprMutator):
        def visit_call(self, call):
            call = super().visit_call(call)
            return relay.negative(call.args[0]) if call.op.name == "abs" else call

    chain = X
    for _ in range(1000):
        chain = relay.abs(chain)
    found = 0
    node = Negated().visit(chain)
    while isinstance(node, relay.Call):
        found += node.op.name == "negative"
        node = node.args[0]
    assert found == 1000 and node.same_as(X)


def test_every_expression_is_rebuilt_once():
    class Renamed(relay.ExprMutator):
        def visit_var(self, var):
            return relay.var(f"{var.name_hint}_new", var.type_annotation)

    shared = relay.exp(X)
    both = Renamed().visit(relay.add(shared, shared))
    assert both.args[0].same_as(both.args[1])
    expected = relay.exp(relay.var("x_new", shape=(2, 3)))
    assert tvm.ir.structural_equal(both, relay.add(expected, expected), map_free_vars=True)
