"""Names written as functions, and wide calls as several."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.prelude import Prelude


def test_names_that_are_not_called_become_functions():
    mod = tvm.IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    x = relay.var("x", "int32")
    mod["double"] = relay.Function([x], x + x)
    doubled = p.map(mod.get_global_var("double"), cons(relay.const(3), nil()))
    mod["main"] = relay.Function([], p.foldr(cons, nil(), doubled))
    expanded = relay.transform.EtaExpand(expand_constructor=True, expand_global_var=True)(mod)
    _, args = expanded["main"].body.op, expanded["main"].body.args
    assert isinstance(args[0], relay.Function)
    assert isinstance(args[0].body.op, relay.Constructor)
    inner = args[2].args[0]
    assert isinstance(inner, relay.Function)
    assert inner.body.op.name_hint == "double"
    run = relay.vm.VirtualMachine(relay.vm.compile(expanded, "llvm")).run()
    assert run[0].numpy() == 6
    # Only what is asked for, and never what is called.
    plain = relay.transform.EtaExpand()(mod)
    assert isinstance(plain["main"].body.args[0], relay.Constructor)
    assert isinstance(plain["main"].body.op, relay.GlobalVar)


@pytest.mark.parametrize(("count", "most"), [(7, 3), (4, 4), (10, 2)])
def test_wide_joins_become_several(count, most):
    parts = [relay.var(f"x{k}", shape=(2, k + 1)) for k in range(count)]
    func = relay.Function(parts, relay.concatenate(parts, 1))
    mod = relay.transform.SplitArgs(most)(tvm.IRModule.from_expr(func))
    widest = []

    def look(node):
        if isinstance(node, relay.Call) and node.op.name == "concatenate":
            widest.append(len(node.args[0].fields))

    relay.analysis.post_order_visit(mod["main"].body, look)
    assert max(widest) <= most
    assert (len(widest) == 1) == (count <= most)
    rng = np.random.default_rng(0)
    values = [rng.random((2, k + 1), "float32") for k in range(count)]
    found = relay.create_executor("graph", mod=mod).evaluate()(*values)
    np.testing.assert_array_equal(found.numpy(), np.concatenate(values, 1))
    with pytest.raises(ValueError, match="max_function_args is at least 2, got 1"):
        relay.transform.SplitArgs(1)


def test_products_in_einsteins_notation():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 3, 4), "float32"), rng.random((2, 4, 5), "float32")
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    func = relay.Function([x, y], relay.einsum([x, y], "bij,bjk->bik"))
    found = relay.create_executor("graph").evaluate(func)(a, b)
    np.testing.assert_allclose(found.numpy(), a @ b, rtol=1e-5)
