"""Parts of programs as C, for the compiler of the machine."""

import numpy as np

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay import transform

RNG = np.random.default_rng(3)


def _parts(mod):
    return [f for f in mod.functions.values() if "Compiler" in (f.attrs or {})]


def test_marked_parts_run_as_c(tmp_path):
    x, y = relay.var("x", shape=(4, 8)), relay.var("y", shape=(8,))
    weight = RNG.standard_normal((6, 8)).astype("float32")
    table = RNG.standard_normal((4, 8)).astype("float32")
    inner = relay.multiply(relay.add(x, relay.const(table)), y)
    body = relay.exp(relay.nn.dense(inner, relay.const(weight)) * relay.const(0.5))
    for name in ("add", "multiply", "nn.dense"):
        tvm.ir.register_op_attr(name, "target.ccompiler", lambda call: True, 20)
    mod = tvm.IRModule.from_expr(relay.Function([x, y], body))
    for step in (
        transform.AnnotateTarget("ccompiler"),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(),
    ):
        mod = step(mod)
    [part] = _parts(mod)
    for name in ("add", "multiply", "nn.dense"):
        relay.op.get(name).reset_attr("target.ccompiler")
    lib = relay.build(mod, "llvm")
    path = str(tmp_path / "net.so")
    lib.export_library(path)
    a, b = (RNG.standard_normal(s).astype("float32") for s in ((4, 8), (8,)))
    wanted = np.exp(((a + table) * b) @ weight.T * 0.5)
    for made in (lib, tvm.runtime.load_module(path)):
        module = graph_executor.GraphModule(made["default"](tvm.cpu()))
        module.run(x=a, y=b)
        np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-4)
    symbol = str(part.attrs["global_symbol"])
    source = tvm.get_global_func("relay.ext.ccompiler")(part).get_source()
    assert symbol in source


def test_what_evaluates_gives_its_module():
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    typed = relay.create_executor("debug", mod=mod).optimize()
    assert typed["main"].body.checked_type == relay.TensorType((2,))
