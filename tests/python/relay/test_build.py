"""Compiled relay programs."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.testing.init import Constant, create_workload


@pytest.fixture(scope="module")
def built():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w")
    out = relay.nn.relu(relay.nn.conv2d(x, w, channels=4, kernel_size=3))
    func = relay.Function([x, w], relay.Tuple([out, relay.sum(out)]))
    weight = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("float32")
    return relay.build(func, "llvm", params={"w": weight})


@pytest.fixture
def data():
    return np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype("float32")


def outputs(module, data):
    module.run(x=data)
    return [module.get_output(k).numpy() for k in range(module.get_num_outputs())]


def test_inputs_are_set_by_name_number_and_keyword(built, data):
    module = graph_executor.GraphModule(built["default"](tvm.cpu()))
    wanted = outputs(module, data)
    for key in ("x", 0):
        module.set_input("x", np.zeros_like(data))
        module.set_input(key, data)
        module.run()
        np.testing.assert_array_equal(module.get_output(0).numpy(), wanted[0])
    assert module.get_input_index("x") == 0
    assert module.get_input_index("nothing") == -1
    assert module.get_num_inputs() == 1 + len(built.params)
    shapes, dtypes = module.get_input_info()
    assert (tuple(shapes["x"]), dtypes["x"]) == ((1, 3, 8, 8), "float32")
    with pytest.raises(ValueError, match='no input "y"'):
        module.set_input("y", data)
    with pytest.raises(ValueError, match="takes float32 of shape"):
        module.set_input("x", data[:, :2])


def test_arrays_of_other_libraries_are_converted_to_the_type_of_an_input(built, data):
    module = graph_executor.GraphModule(built["default"](tvm.cpu()))
    wanted = outputs(module, data)
    for same in (data.astype("float64"), data.tolist()):
        for given, want in zip(outputs(module, same), wanted, strict=True):
            np.testing.assert_array_equal(given, want)
    with pytest.raises(ValueError, match="takes float32 of shape .* got float64"):
        module.set_input("x", tvm.nd.array(data.astype("float64")))
    x = relay.var("x", shape=(2,), dtype="int32")
    lib = relay.build(relay.Function([x], x + x), "llvm")
    whole = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    whole.run(x=np.array([1, 2], "int8"))
    assert whole.get_output(0).numpy().tolist() == [2, 4]
    with pytest.raises(ValueError, match="takes int32 .* got float64"):
        whole.set_input("x", np.array([1.5, 2.5]))


def test_an_exported_library_gives_the_same(built, data, tmp_path):
    wanted = outputs(graph_executor.GraphModule(built["default"](tvm.cpu())), data)
    built.export_library(tmp_path / "net.so")
    loaded = tvm.runtime.load_module(str(tmp_path / "net.so"))
    found = outputs(graph_executor.GraphModule(loaded["default"](tvm.cpu())), data)
    np.testing.assert_array_equal(found[0], wanted[0])


def test_the_older_triple_is_unpacked(built, data):
    with pytest.warns(DeprecationWarning):
        graph, library, params = built
    module = graph_executor.create(graph, library, tvm.cpu())
    module.set_input(**params)
    wanted = outputs(graph_executor.GraphModule(built["default"](tvm.cpu())), data)
    np.testing.assert_array_equal(outputs(module, data)[0], wanted[0])


def test_an_object_builds_in_steps(data):
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w")
    func = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, channels=4, kernel_size=3)))
    params = {"w": np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("float32")}
    wanted = relay.build(func, "llvm", params=params)
    first = graph_executor.GraphModule(wanted["default"](tvm.cpu()))
    builder = relay.build_module.BuildModule()
    with pytest.raises(ValueError, match="call build first"):
        builder.get_json()
    for target in ("llvm", tvm.target.Target("llvm"), {"cpu": "llvm"}, {1: "llvm"}):
        graph, library, named = builder.build(func, target, params=params)
        module = graph_executor.create(graph, library, tvm.cpu())
        module.set_input(**named)
        np.testing.assert_array_equal(outputs(module, data)[0], outputs(first, data)[0])
        assert named.keys() == wanted.params.keys()
    assert len(builder.optimize(func, "llvm", params)[0]["main"].params) == 1


def test_the_functions_of_a_building_object():
    x = relay.var("x", shape=(2,))
    building = tvm.get_global_func("relay.build_module._BuildModule")()
    building["set_params"]({})
    building["build"](relay.Function([x], x + x), tvm.target.Target("llvm"), None)
    module = graph_executor.create(
        str(building["get_graph_json"]()), building["get_module"](), tvm.cpu()
    )
    module.run(x=np.array([1, 2], "float32"))
    assert module.get_output(0).numpy().tolist() == [2, 4]
    assert dict(building["get_params"]().items()) == {}
    with pytest.raises(TypeError, match="missing 2 required"):
        building["build"](relay.Function([x], x))


def test_a_graph_of_its_input_alone_is_built_and_run(caplog):
    x = relay.var("x", shape=(2,))
    library = relay.build(relay.Function([x], x), "llvm")
    assert "no function was lowered" in caplog.text
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    module.run(x=np.array([1, 2], "float32"))
    assert module.get_output(0).numpy().tolist() == [1, 2]


def test_parameters_are_loaded_and_shared(built, data):
    first, second = (graph_executor.GraphModule(built["default"](tvm.cpu())) for _ in range(2))
    wanted = outputs(first, data)[1]
    doubled = {name: value.numpy() * 2 for name, value in built.params.items()}
    first.load_params(tvm.runtime.save_param_dict(doubled))
    np.testing.assert_allclose(outputs(first, data)[1], 2 * wanted, rtol=1e-5)
    # Another executor of the library keeps its own until it shares them.
    np.testing.assert_allclose(outputs(second, data)[1], wanted, rtol=1e-6)
    second.share_params(first, b"")
    np.testing.assert_allclose(outputs(second, data)[1], 2 * wanted, rtol=1e-5)


def test_parameters_that_are_inputs_are_shared_by_name():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    library = relay.build(relay.Function([x, w], relay.nn.dense(x, w)), "llvm")
    first, second = (graph_executor.GraphModule(library["default"](tvm.cpu())) for _ in range(2))
    weights, values = np.arange(12, dtype="float32").reshape(4, 3), np.eye(2, 3, dtype="float32")
    second.share_params(first, tvm.runtime.save_param_dict({"w": weights, "unknown": values}))
    for module in (first, second):
        module.run(x=values)
        np.testing.assert_array_equal(module.get_output(0).numpy(), values @ weights.T)
    first.set_input("w", weights + 1)
    second.run()
    np.testing.assert_array_equal(second.get_output(0).numpy(), values @ (weights + 1).T)


def test_memory_of_the_caller_is_read_and_written(built, data):
    module = graph_executor.GraphModule(built["default"](tvm.cpu()))
    given, result = tvm.nd.array(data), tvm.nd.empty((1, 4, 6, 6))
    module.set_input_zero_copy("x", given)
    module.set_output_zero_copy(0, result)
    module.run()
    before = result.numpy()
    given.copyfrom(np.zeros_like(data))
    module.run()
    assert before.any()
    assert not result.numpy().any()


def test_outputs_before_a_run_are_refused(built):
    with pytest.raises(ValueError, match="call run"):
        graph_executor.GraphModule(built["default"](tvm.cpu())).get_output(0)


def test_loops_run_on_the_machine_and_are_refused_as_graphs():
    mod = relay.parse("""
        def @sum_to(%i: int32, %acc: int32) -> int32 {
          if (equal(%i, 0)) { %acc } else { @sum_to(subtract(%i, 1), add(%acc, %i)) }
        }
        def @main(%n: int32) { @sum_to(%n, 0) }
    """)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    assert machine.run(np.int32(1000)).numpy() == 500500
    again = relay.vm.Executable.load_exec(*relay.vm.compile(mod, "llvm").save())
    assert again.primitive_ops == ["add", "equal", "subtract"]
    assert again.constants.splitlines()[0] == "VM Const[0]: Tensor[(), int32]"
    assert "Globals (#2): ['main', 'sum_to']" in again.stats
    assert relay.vm.VirtualMachine(again).run(np.int32(4)).numpy() == 10
    with pytest.raises(ValueError, match=r"relay.vm.compile"):
        relay.build(mod, "llvm")


def test_unknown_extents_are_compiled_for_what_comes():
    x = relay.var("x", shape=(relay.Any(), 3))
    run = relay.create_executor("vm").evaluate(relay.Function([x], relay.sum(x + x, axis=1)))
    for rows in (2, 5):
        data = np.ones((rows, 3), "float32")
        np.testing.assert_array_equal(run(data).numpy(), np.full(rows, 6.0))


def test_functions_of_another_compiler_are_linked():
    seen = []

    @tvm.register_func("relay.ext.doubler", override=True)
    def compile_function(func):
        seen.append(func)
        symbol = str(func.attrs["global_symbol"])
        x = tvm.te.placeholder((4,), name="x")
        y = tvm.te.compute((4,), lambda i: x[i] * 2, name="y")
        return tvm.build(tvm.te.create_schedule(y.op), [x, y], "llvm", name=symbol)

    p = relay.var("p", shape=(4,))
    inner = relay.Function([p], p + p, attrs={"Compiler": "doubler", "global_symbol": "twice"})
    x = relay.var("x", shape=(4,))
    lib = relay.build(relay.Function([x], relay.exp(inner(x))), "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=np.arange(4, dtype="float32"))
    wanted = np.exp(2 * np.arange(4, dtype="float32"))
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-5)
    assert len(seen) == 1


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("rows", "depth"), [(16, 32), (20, 33)])
def test_products_of_bytes_are_summed_up_exactly(dtype, rows, depth):
    rng = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, (4, depth), endpoint=True).astype(dtype)
    w = rng.integers(-128, 127, (rows, depth), endpoint=True).astype("int8")
    var = relay.var("x", shape=x.shape, dtype=dtype)
    dense = relay.nn.dense(var, relay.const(w), out_dtype="int32")
    executor = relay.create_executor("graph", target="llvm")
    got = executor.evaluate(relay.Function([var], dense))(x)
    np.testing.assert_array_equal(got.numpy(), x.astype("int32") @ w.astype("int32").T)
    image = rng.integers(limits.min, limits.max, (1, 3, 6, 6), endpoint=True).astype(dtype)
    kernel = rng.integers(-128, 127, (5, 3, 3, 3), endpoint=True).astype("int8")
    var = relay.var("x", shape=image.shape, dtype=dtype)
    conv = relay.nn.conv2d(var, relay.const(kernel), padding=(0, 1, 1, 0), out_dtype="int32")
    got = executor.evaluate(relay.Function([var], conv))(image).numpy()
    padded = np.pad(image.astype("int32"), ((0, 0), (0, 0), (0, 1), (1, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    np.testing.assert_array_equal(got, np.einsum("ncyxij,fcij->nfyx", windows, kernel))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="listings of x86")
def test_the_listing_of_a_library_shows_the_instructions():
    x = relay.var("x", shape=(8, 64), dtype="uint8")
    w = relay.const(np.ones((32, 64), "int8"))
    func = relay.Function([x], relay.nn.dense(x, w, out_dtype="int32"))
    lib = relay.build(func, "llvm -mcpu=cascadelake").lib
    assert "vpdpbusd" in lib.get_source("asm")
    assert "define" in lib.get_source("ll")
    assert lib.get_source("asm") == lib.imported_modules[0].get_source("asm")


def test_workloads_with_constant_weights():
    data, weight = relay.var("data", shape=(1, 4)), relay.var("w_weight", shape=(2, 4))
    gamma = relay.var("bn_gamma", shape=(2,))
    net = relay.Function([data, weight, gamma], relay.nn.dense(data, weight) * gamma)
    _, params = create_workload(net, initializer=Constant(0.25))
    assert (params["w_weight"].numpy() == 0.25).all() and (params["bn_gamma"].numpy() == 1).all()


def test_the_targets_of_tests_are_named_with_relays_helpers(monkeypatch):
    monkeypatch.setenv("TVM_TEST_TARGETS", "llvm")
    assert relay.testing.enabled_targets() == [("llvm", tvm.cpu(0))]


def test_a_machine_writes_results_to_arrays_that_it_is_given():
    x = relay.var("x", shape=(2, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.exp(x), x + x])))
    program = relay.vm.compile(mod, "llvm")
    assert program.virtual_devices == f"VirtualDevice[0]: device type {tvm.cpu().device_type}"
    machine = tvm.runtime.vm.VirtualMachine(program, tvm.cpu(), "naive")
    data = np.random.default_rng(5).standard_normal((2, 3)).astype("float32")
    outs = [tvm.nd.empty((2, 3)) for _ in range(2)]
    machine.set_outputs("main", *outs)
    machine.invoke("main", data)
    np.testing.assert_allclose(outs[0].numpy(), np.exp(data), rtol=1e-5)
    np.testing.assert_allclose(outs[1].numpy(), 2 * data, rtol=1e-6)
    with pytest.raises(KeyError):
        machine.set_outputs("other", outs[0])
    with pytest.raises(ValueError, match='memory_cfg is "naive" or "pooled"'):
        tvm.runtime.vm.VirtualMachine(program, tvm.cpu(), {tvm.cpu(): "huge"})
