"""Functions of other compilers moved, and programs for another batch."""

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.dataflow_pattern import is_op, wildcard
from tvm.relay.op.contrib import get_pattern_table, register_pattern_table


def with_inner(name="inner"):
    x = relay.var("x", shape=(2, 3))
    y = relay.var("y", shape=(2, 3))
    inner = relay.Function([y], relay.exp(y)).with_attr("Compiler", "own")
    inner = inner.with_attr("global_symbol", name)
    return tvm.IRModule.from_expr(relay.Function([x], relay.negative(relay.Call(inner, [x]))))


def names(mod):
    return {str(gvar.name_hint) for gvar in mod.functions}


def test_functions_go_out_and_in_again():
    mod = transform.InferType()(with_inner())
    out = transform.OutlineCompilerFunctionsWithExistingGlobalSymbols("own")(mod)
    assert names(out) == {"main", "inner"}
    assert str(out["inner"].attrs["Compiler"]) == "own"
    back = transform.InlineCompilerFunctionsBoundTo([out.get_global_var("inner")])(out)
    assert tvm.ir.structural_equal(back, mod)
    other = transform.OutlineCompilerFunctionsWithExistingGlobalSymbols("other")(mod)
    assert names(other) == {"main"}


def test_names_that_are_taken():
    with pytest.raises(ValueError, match="there is a function main already"):
        transform.OutlineCompilerFunctionsWithExistingGlobalSymbols()(with_inner("main"))


def test_functions_that_are_compiled_elsewhere():
    mod = transform.OutlineCompilerFunctionsWithExistingGlobalSymbols()(with_inner())
    marked = transform.MarkCompilerFunctionsAsExtern("own")(mod)
    assert dict(marked["inner"].attrs.items()) == {"Extern": 1, "global_symbol": "inner"}
    assert "Compiler" in transform.MarkCompilerFunctionsAsExtern("x")(mod)["inner"].attrs


def test_other_batches():
    x, w = relay.var("x", shape=(1, 4, 6)), relay.var("w", shape=(6, 6))
    body = relay.nn.relu(relay.nn.dense(relay.reshape(x, (-1, 6)), w))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], body))
    changed = transform.ChangeBatch({x: 0}, batch_size=5)(mod)
    assert [int(e) for e in changed["main"].params[0].type_annotation.shape] == [5, 4, 6]
    rng = np.random.default_rng(0)
    a, b = rng.random((5, 4, 6), "float32"), rng.random((6, 6), "float32")
    out = relay.create_executor("graph", mod=changed, target="llvm").evaluate()(a, b).numpy()
    np.testing.assert_allclose(out, np.maximum(a.reshape(20, 6) @ b.T, 0), rtol=1e-5)
    with pytest.raises(ValueError, match="the input w has no axis 2"):
        transform.ChangeBatch({w: 2})(mod)


def test_patterns_of_compilers():
    @register_pattern_table("test_moved_functions")
    def table():
        return [("own.relu", is_op("nn.relu")(wildcard()))]

    with pytest.raises(ValueError, match="has a table already"):
        register_pattern_table("test_moved_functions", table)
    assert get_pattern_table("nobody") is None
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    merged = transform.MergeComposite(get_pattern_table("test_moved_functions"))(mod)
    assert str(merged["main"].body.op.attrs["Composite"]) == "own.relu"
