"""Relay functions as one tensor program."""

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.backend import te_compiler
from tvm.relay.backend.te_compiler import lower_to_primfunc


def test_a_function_becomes_one_program_in_blocks():
    x = relay.var("x", shape=(4, 8))
    y = relay.var("y", shape=(8,))
    func = relay.Function([x, y], relay.nn.relu(relay.add(relay.exp(x), y)))
    program = lower_to_primfunc(func, "llvm")
    assert program.attrs["target"].kind.name == "llvm" and len(program.params) == 3
    assert [tvm.tir.Schedule(program).get_block("T_relu")]
    given = [np.random.default_rng(0).normal(size=size).astype("float32") for size in [(4, 8), 8]]
    result = tvm.nd.array(np.zeros((4, 8), "float32"))
    tvm.build(program, "llvm")(*map(tvm.nd.array, given), result)
    np.testing.assert_allclose(
        result.numpy(), np.maximum(np.exp(given[0]) + given[1], 0), rtol=1e-5, atol=1e-6
    )


def test_functions_that_are_no_graphs_are_refused():
    x = relay.var("x", relay.FuncType([], relay.TupleType([])))
    with pytest.raises((TypeError, ValueError)):
        lower_to_primfunc(relay.Function([x], x), "llvm")


def test_the_compiler_keeps_a_kernel_for_equal_functions():
    x = relay.var("x", shape=(4, 8))
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(relay.exp(relay.add(x, x))))
    engine = te_compiler.TECompiler()
    kernel = engine.lower(typed["main"], "llvm")
    assert engine.lower(typed["main"], "llvm") is kernel and len(engine.items()) == 1
    assert engine.lower(typed["main"], "c") is not kernel
    given = np.random.default_rng(0).normal(size=(4, 8)).astype("float32")
    result = tvm.nd.array(np.zeros((4, 8), "float32"))
    tvm.build(kernel.funcs, "llvm")[kernel.prim_fn_var.name_hint](tvm.nd.array(given), result)
    np.testing.assert_allclose(result.numpy(), np.exp(2 * given), rtol=1e-5)
    engine.clear()
    assert engine.items() == [] and relay.backend.te_compiler.get() is te_compiler.get()
