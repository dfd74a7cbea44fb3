"""What builds are made of: graphs and kernels, regions between marks, names of generated code."""

import json

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.analysis.annotated_regions import AnnotatedRegionSet
from tvm.relay.backend import graph_executor_codegen, name_transforms
from tvm.relay.backend.utils import mangle_module_name
from tvm.relay.op.annotation import compiler_begin, compiler_end


def test_the_graph_and_its_kernels_are_given_apart():
    a, b = relay.var("a", shape=(4, 8)), relay.var("b", shape=(6, 8))
    func = relay.Function([a, b], relay.nn.relu(relay.nn.dense(a, b) + relay.const(1.0)))
    mod, _ = relay.optimize(tvm.IRModule.from_expr(func), "llvm")
    codegen = graph_executor_codegen.GraphExecutorCodegen(None, "llvm")
    graph, lowered, params = codegen.codegen(mod, mod["main"])
    [(target, kernels)] = lowered.items()
    assert target.kind.name == "llvm" and not params
    called = [n["attrs"]["func_name"] for n in json.loads(graph)["nodes"] if n["op"] == "tvm_op"]
    names = [str(gv.name_hint) for gv in kernels.get_global_vars()]
    assert called == names and len(names) == 1
    run = tvm.build(kernels, target=target)[names[0]]
    x, w = (np.random.default_rng(k).standard_normal(s).astype("float32")
            for k, s in enumerate([(4, 8), (6, 8)]))  # fmt: skip
    out = tvm.nd.empty((4, 6))
    run(*[tvm.nd.array(v) for v in (x, w)], out)
    np.testing.assert_allclose(out.numpy(), np.maximum(x @ w.T + 1, 0), rtol=1e-4)


def test_kernels_are_lowered_of_graphs_only():
    x = relay.var("x", shape=(relay.Any(),))
    codegen = graph_executor_codegen.GraphExecutorCodegen(None, "llvm")
    with pytest.raises(ValueError, match="no graph of tensors of fixed shape"):
        codegen.codegen(None, relay.Function([x], relay.exp(x)))


def test_regions_between_marks_are_found():
    x = relay.var("x", shape=(4,))
    begin = [compiler_begin(x, "one"), compiler_begin(x, "one")]
    inner = relay.add(*begin)
    outer = relay.exp(inner)
    ends = [compiler_end(outer, "one"), compiler_end(inner, "one")]
    second = compiler_begin(ends[0], "two")
    left = relay.add(compiler_end(relay.log(second), "two"), ends[1])
    regions = AnnotatedRegionSet(
        relay.Function([x], left),
        relay.op.get("annotation.compiler_begin"),
        relay.op.get("annotation.compiler_end"),
    )
    assert len(regions) == 2 and sorted(r.target for r in regions) == ["one", "two"]
    first = regions.get_region(inner)
    assert set(first.args) == set(begin) and set(first.rets) == set(ends)
    assert set(first.nodes) == {*begin, *ends, inner, outer}
    assert regions.get_region(second).target == "two" and regions.get_region(second) is not first
    assert regions.get_region(left) is None and regions.get_region(x) is None


def test_names_of_generated_code():
    named = name_transforms
    assert named.prefix_name(["run", "net"]) == "TVM_run_net"
    assert named.prefix_generated_name("net") == "TVMGen_net"
    assert named.to_c_function_style("TVM_run_net") == "TVMRunNet"
    assert named.to_c_variable_style("TVM_Run_Net") == "tvm_run_net"
    assert named.to_c_constant_style("TVM_Run_Net") == "TVM_RUN_NET"
    assert named.sanitize_name("a+b c") == "a_b_c"
    assert (mangle_module_name("net"), mangle_module_name("")) == ("tvmgen_net", "tvmgen")
    for wrong in (named.to_c_function_style, named.to_c_variable_style, named.to_c_constant_style):
        with pytest.raises(ValueError, match="not TVM prefixed"):
            wrong("run_net")
    for empty in (named.sanitize_name, named.prefix_name, named.to_c_function_style):
        with pytest.raises(ValueError, match="Name is empty"):
            empty("")
    with pytest.raises(ValueError, match="Name segment is empty"):
        named.prefix_name(["a", ""])
    with pytest.raises(ValueError, match="invalid characters"):
        mangle_module_name("ä")
