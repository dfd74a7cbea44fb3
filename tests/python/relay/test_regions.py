"""Parts of programs for other compilers."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.dataflow_pattern import is_op, wildcard
from tvm.relay.op.annotation import compiler_begin, compiler_end

SHAPE = (2, 3)


def parts(mod):
    return {str(g.name_hint): f for g, f in mod.functions.items() if str(g.name_hint) != "main"}


def run(mod, *values):
    lib = relay.build(mod, "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for k, value in enumerate(values):
        module.set_input(k, value)
    module.run()
    return module.get_output(0).numpy()


def test_composites_are_marked_cut_out_compiled_and_run():
    seen = []

    @tvm.register_func("relay.ext.testparts", override=True)
    def compile_function(func):
        seen.append(str(func.body.op.attrs["Composite"]))
        a, b = (tvm.te.placeholder(SHAPE, name=n) for n in "ab")
        out = tvm.te.compute(
            SHAPE, lambda *i: tvm.te.if_then_else(a(*i) + b(*i) > 0.0, a(*i) + b(*i), 0.0)
        )
        schedule = tvm.te.create_schedule(out.op)
        return tvm.build(schedule, [a, b, out], "llvm", name=str(func.attrs["global_symbol"]))

    x, y = (relay.var(n, shape=SHAPE) for n in "xy")
    expr = relay.exp(relay.nn.relu(relay.nn.relu(x + y) + y))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], expr))
    table = [("testparts.add_relu", is_op("nn.relu")(wildcard() + wildcard()))]
    mod = relay.transform.MergeComposite(table)(mod)
    mod = relay.transform.AnnotateTarget("testparts")(mod)
    mod = relay.transform.PartitionGraph("net")(mod)
    found = parts(mod)
    assert sorted(found) == ["tvmgen_net_testparts_main_0", "tvmgen_net_testparts_main_1"]
    for name, func in found.items():
        assert func.attrs["global_symbol"] == name
        assert func.attrs["Compiler"] == "testparts"
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=SHAPE).astype("float32") for _ in "ab")
    wanted = np.exp(np.maximum(np.maximum(a + b, 0) + b, 0))
    np.testing.assert_allclose(run(mod, a, b), wanted, rtol=1e-5)
    assert seen == ["testparts.add_relu"] * 2


def test_operators_say_which_compiler_takes_them():
    tvm.ir.register_op_attr("tanh", "target.testops", lambda call: True)
    x = relay.var("x", shape=SHAPE)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(relay.tanh(x))))
    marked = relay.transform.AnnotateTarget(["testops"])(mod)
    begin = compiler_begin(x, "testops")
    end = compiler_end(relay.tanh(begin), "testops")
    wanted = compiler_end(relay.exp(compiler_begin(end, "default")), "default")
    expected = tvm.IRModule.from_expr(relay.Function([x], wanted))
    tvm.ir.assert_structural_equal(marked, relay.transform.InferType()(expected))


def test_a_region_of_two_results_is_one_function_with_its_constants():
    x = relay.var("x", shape=SHAPE)
    begin = compiler_begin(x, "other")
    shared = relay.exp(begin) + compiler_begin(relay.const(1.0), "other")
    first = compiler_end(shared, "other")
    second = compiler_end(relay.tanh(shared), "other")
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.sqrt(first) * second))
    for bind_constants, count in ((True, 1), (False, 2)):
        cut = relay.transform.PartitionGraph(bind_constants=bind_constants)(mod)
        (func,) = parts(cut).values()
        assert len(func.params) == count
        assert len(func.body.fields) == 2


def test_marks_of_the_default_compiler_are_dropped():
    x = relay.var("x", shape=SHAPE)
    marked = compiler_end(relay.exp(compiler_begin(x, "default")), "default")
    cut = relay.transform.PartitionGraph()(tvm.IRModule.from_expr(relay.Function([x], marked)))
    plain = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    tvm.ir.assert_structural_equal(cut, plain)


def test_regions_are_joined_unless_something_lies_between():
    for name in ("tanh", "add"):
        tvm.ir.register_op_attr(name, "target.joinops", lambda call: True)
    x = relay.var("x", shape=SHAPE)
    first = relay.tanh(x)
    second = relay.tanh(first)
    body = relay.add(second, relay.exp(first))
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    passes = [
        relay.transform.AnnotateTarget("joinops"),
        relay.transform.MergeCompilerRegions(),
        relay.transform.PartitionGraph(),
    ]
    cut = tvm.transform.Sequential(passes)(mod)
    counts = sorted(sum(relay.analysis.list_op_freqs(f).values()) for f in parts(cut).values())
    # Both tanh are one function; add needs exp, which needs the first of them.
    assert counts == [1, 2]
    again = relay.transform.AnnotateTarget("joinops")(
        relay.transform.AnnotateTarget("joinops")(mod)
    )
    once = relay.transform.AnnotateTarget("joinops")(mod)
    tvm.ir.assert_structural_equal(again, once)


def test_long_chains_are_joined_without_recursion():
    x = relay.var("x", shape=(2,))
    value = x
    for _ in range(600):
        value = relay.tanh(relay.tanh(relay.exp(value)))
    mod = tvm.IRModule.from_expr(relay.Function([x], value))
    mod = relay.transform.AnnotateTarget("regionchain")(mod)
    mod = relay.transform.PartitionGraph()(relay.transform.MergeCompilerRegions()(mod))
    assert len(mod.functions) == 601


@tvm.ir.register_op_attr("tanh", "target.regionchain")
def _takes_tanh(call):
    return True
