"""What builds are asked for takes effect, or is refused with the way out."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.backend import Executor, Runtime


@pytest.fixture
def func():
    x = relay.var("x", shape=(3, 5))
    return relay.Function([x], relay.exp(x) + relay.const(1.0))


def test_a_loaded_library_gives_its_executor_under_its_name(func, tmp_path):
    lib = relay.build(
        func, "llvm", mod_name="net", executor=Executor("graph", {"link-params": True}),
        runtime=Runtime("cpp", {"system-lib": False}),
    )  # fmt: skip
    path = str(tmp_path / "net.so")
    lib.export_library(path)
    data = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
    for library in (lib, tvm.runtime.load_module(path)):
        module = graph_executor.GraphModule(library["net"](tvm.cpu()))
        module.run(x=data)
        np.testing.assert_allclose(module.get_output(0).numpy(), np.exp(data) + 1, rtol=1e-5)


def test_programs_are_built_for_the_executor_aot(func, tmp_path):
    executor = Executor("aot", {"interface-api": "packed", "unpacked-api": False})
    lib = relay.build(func, "llvm", executor=executor)
    assert lib.get_executor_config() is executor
    path = str(tmp_path / "net.so")
    lib.export_library(path)
    data = np.random.default_rng(1).normal(size=(3, 5)).astype("float32")
    for library in (lib, tvm.runtime.load_module(path)):
        [name] = library["list_module_names"]()
        module = tvm.runtime.executor.AotModule(library[str(name)](tvm.cpu()))
        shapes, dtypes = module.get_input_info()
        assert set(shapes) == set(dtypes) and len(shapes) == module.get_num_inputs()
        assert module.get_input_name(0) == "x" and module.get_input_index("x") == 0
        module.set_input("x", data)
        module.run()
        np.testing.assert_allclose(module.get_output(0).numpy(), np.exp(data) + 1, rtol=1e-5)
    with pytest.raises(IndexError, match="input 9"):
        module.get_input_name(9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Executor("graph", {"link-parms": True}), "it has link-params"),
        (lambda: Executor("graph", {"link-params": False}), "leave the option out"),
        (lambda: Executor("crt"), "aot, graph"),
        (lambda: Executor("aot", {"interface-api": "c"}), "leave the option out"),
        (lambda: Runtime("cpp", {"system-lib": True}), "export_library"),
        (lambda: Runtime("cpp", {"other": 1}), "it has system-lib"),
        (lambda: Runtime("crt"), '"cpp"'),
    ],
)
def test_options_that_builds_cannot_follow_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_build_checks_what_it_is_given(func):
    with pytest.raises(TypeError, match=r"relay.backend.Executor"):
        relay.build(func, "llvm", executor=3)
    with pytest.raises(ValueError, match="aot"):
        relay.build(func, "llvm", executor="vm")
    with pytest.raises(ValueError, match="mod_name"):
        relay.build(func, "llvm", mod_name="get_graph_json")


def test_the_machine_compiles_step_by_step(func):
    compiler = relay.vm.VMCompiler()
    with pytest.raises(ValueError, match="lower before codegen"):
        compiler.codegen()
    compiler.lower(tvm.IRModule.from_expr(func), "llvm", "llvm -num-cores 3")
    with pytest.raises(ValueError, match="codegen before get_exec"):
        compiler.get_exec()
    compiler.codegen()
    assert int(tvm.target.Target(compiler.get_exec().target).host.attrs["num-cores"]) == 3
    direct = relay.vm.compile(func, "llvm", "llvm -num-cores 3")
    assert int(tvm.target.Target(direct.target).host.attrs["num-cores"]) == 3


def test_gradients_are_checked_on_the_targets_that_are_given():
    x = relay.var("x", shape=(2, 3))
    func = relay.Function([x], relay.tanh(x))
    relay.testing.check_grad(func, target_devices=[("llvm", tvm.cpu())])
    with pytest.raises(ValueError, match="no_such_target"):
        relay.testing.check_grad(func, target_devices=[("no_such_target", tvm.cpu())])


def test_fast_softmax_computes_its_exponential_by_arithmetic():
    x = relay.var("x", shape=(4, 9))
    mod = tvm.IRModule.from_expr(relay.nn.softmax(x))
    fast = relay.transform.FastMath()(mod)
    data = np.random.default_rng(0).normal(scale=5, size=(4, 9)).astype("float32")
    found = relay.create_executor().evaluate(fast["main"])(data).numpy()
    power = np.exp(data - data.max(-1, keepdims=True))
    np.testing.assert_allclose(found, power / power.sum(-1, keepdims=True), rtol=1e-5)
    kernel = tvm.te.create_prim_func(
        [p := tvm.te.placeholder((4, 9), name="p"), tvm.topi.nn.fast_softmax(p)]
    )
    assert "T.exp(" not in kernel.script()


def test_functions_with_captured_variables_are_lifted():
    x, y, z = (relay.var(n, shape=(2,)) for n in "xyz")
    add_x = relay.Function([y], relay.add(y, x))
    f = relay.var("f")
    body = relay.Let(f, add_x, relay.Call(f, [relay.Call(f, [z])]))
    mod = tvm.IRModule.from_expr(relay.Function([x, z], body))
    lifted = relay.transform.LambdaLift()(mod)
    assert len(lifted.functions) == 2
    inner = []
    relay.expr_functor.post_order_visit(lifted["main"].body, inner.append)
    assert not any(isinstance(e, relay.Function) for e in inner)
    a, b = np.float32([1, 2]), np.float32([10, 20])
    result = relay.create_executor("vm", mod=lifted).evaluate()(a, b)
    np.testing.assert_array_equal(result.numpy(), b + 2 * a)


def test_a_function_that_calls_itself_and_captures_is_lifted():
    n, step, count = (relay.var(name, "int32") for name in ("n", "step", "count"))
    loop = relay.var("loop")
    inner = relay.If(
        relay.equal(n, relay.const(0)), relay.const(0),
        relay.add(step, relay.Call(loop, [relay.subtract(n, relay.const(1))])),
    )  # fmt: skip
    func = relay.Function([n], inner, relay.TensorType([], "int32"))
    body = relay.Let(loop, func, relay.Call(loop, [count]))
    mod = tvm.IRModule.from_expr(relay.Function([step, count], body))
    lifted = relay.transform.LambdaLift()(mod)
    assert int(relay.create_executor("vm", mod=lifted).evaluate()(3, 4).numpy()) == 12


def test_at_level_0_each_operator_is_a_kernel(func):
    data = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
    kernels = {}
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            lib = relay.build(func, "llvm")
        nodes = json.loads(lib.get_graph_json())["nodes"]
        kernels[level] = [node["name"] for node in nodes if node["op"] != "null"]
        module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        module.run(x=data)
        np.testing.assert_allclose(module.get_output(0).numpy(), np.exp(data) + 1, rtol=1e-6)
    assert (len(kernels[0]), len(kernels[3])) == (2, 1)


def test_executor_and_runtime_of_a_module(func):
    mod = tvm.IRModule.from_expr(func).with_attr("executor", Executor("aot"))
    mod = mod.with_attr("runtime", Runtime("cpp"))
    assert relay.build(mod, "llvm").executor.name == "aot"
    assert relay.build(mod, "llvm", executor="graph").executor.name == "graph"
    again = tvm.ir.load_json(tvm.ir.save_json(mod))
    assert tvm.ir.structural_equal(again.attrs["executor"], Executor("aot"))
    assert not tvm.ir.structural_equal(Executor("graph"), Executor("aot"))
