"""Graphs given as JSON, run whole and node by node."""

import json

import numpy as np
import pytest

import tvm
from tvm import relay, te
from tvm.contrib import graph_executor
from tvm.contrib.cuda_graph import cuda_graph_executor
from tvm.contrib.debugger import debug_executor
from tvm.runtime import load_param_dict_from_file
from tvm.support import FrontendTestModule

_RNG = np.random.default_rng(0)


def _call(name, kernel, inputs, outputs=1):
    attrs = {"func_name": kernel, "flatten_data": "0", "num_inputs": str(len(inputs)),
             "num_outputs": str(outputs)}  # fmt: skip
    return {"op": "tvm_op", "name": name, "attrs": attrs, "inputs": inputs}


def _graph(shapes, nodes, heads, storage=None):
    arguments = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    return {
        "nodes": nodes,
        "arg_nodes": arguments,
        "heads": heads,
        "attrs": {
            "shape": ["list_shape", shapes],
            "dltype": ["list_str", ["float32"] * len(shapes)],
            "storage_id": ["list_int", storage or list(range(len(shapes)))],
        },
    }


def _input(name):
    return {"op": "null", "name": name, "inputs": []}


@pytest.fixture(scope="module")
def library():
    """halves: (x) -> x[:2], x[2:]; add: (a, b) -> a + b, of vectors."""
    library = FrontendTestModule()

    def halves(x, first, second):
        first.copyfrom(x.numpy()[:2])
        second.copyfrom(x.numpy()[2:])

    library["halves"] = halves
    library["add"] = lambda a, b, out: out.copyfrom(a.numpy() + b.numpy())
    return library


@pytest.fixture
def graph():
    """x[4] -> halves -> their sum -> twice it, also as [2, 1]; memory is used again."""
    nodes = [
        _input("x"),
        _call("halves", "halves", [[0, 0, 0]], 2),
        _call("sum", "add", [[1, 0, 0], [1, 1, 0]]),
        _call("twice", "add", [[2, 0, 0], [2, 0, 0]]),
        _call("column", "__nop", [[3, 0, 0]]),
        _call("copied", "__copy", [[4, 0, 0]]),
    ]
    shapes = [[4], [2], [2], [2], [2], [2, 1], [2, 1]]
    return _graph(shapes, nodes, [[3, 0, 0], [5, 0, 0], [0, 0, 0]], [0, 1, 2, 3, 1, 1, 4])


@pytest.mark.parametrize("make", [graph_executor.create, debug_executor.create])
def test_a_graph_written_by_hand_runs(make, library, graph, capsys):
    x = _RNG.random(4).astype("float32")
    module = make(json.dumps(graph), library, tvm.cpu())
    module.run(x=x)
    twice = 2 * (x[:2] + x[2:])
    np.testing.assert_allclose(module.get_output(0).numpy(), twice)
    np.testing.assert_allclose(module.get_output(1).numpy(), twice[:, None])
    np.testing.assert_array_equal(module.get_output(2).numpy(), x)
    assert module.get_num_inputs() == 1 and module.get_num_outputs() == 3
    assert json.loads(module["get_graph_json"]())["heads"] == graph["heads"]
    if make is debug_executor.create:
        module.exit()


def test_every_node_can_be_looked_at(library, graph, tmp_path, capsys):
    x = _RNG.random(4).astype("float32")
    module = debug_executor.create(json.dumps(graph), library, tvm.cpu(), tmp_path / "dump")
    module.run(number=1, x=x)
    # The sum's memory is not used again here, though the graph says so.
    [folder] = (tmp_path / "dump").iterdir()
    assert {file.name for file in folder.iterdir()} == {
        "_tvmdbg_graph_dump.json", "_tvmdbg_execution_trace.json", "output_tensors.params"
    }  # fmt: skip
    values = load_param_dict_from_file(folder / "output_tensors.params")
    np.testing.assert_array_equal(values["x____topo-index:0____output-num:0"].numpy(), x)
    np.testing.assert_array_equal(values["halves____topo-index:1____output-num:0"].numpy(), x[:2])
    np.testing.assert_array_equal(values["halves____topo-index:1____output-num:1"].numpy(), x[2:])
    np.testing.assert_allclose(values["sum____topo-index:2____output-num:0"].numpy(), x[:2] + x[2:])
    events = json.loads((folder / "_tvmdbg_execution_trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events[::2]] == [n["name"] for n in graph["nodes"]]
    assert all(b["ts"] <= e["ts"] for b, e in zip(events[::2], events[1::2]))
    table = capsys.readouterr().out
    assert table.splitlines()[0].split()[:2] == ["Node", "Name"]
    assert table.count("halves") == 4  # a line for each result, with name and function

    np.testing.assert_allclose(module.debug_get_output("sum").numpy(), x[:2] + x[2:])
    out = tvm.nd.empty((2,))
    module.debug_get_output(2, out)
    np.testing.assert_allclose(out.numpy(), x[:2] + x[2:])
    module.set_input("x", 10 * x)
    assert module.execute_node(0)[0].numpy() == pytest.approx(10 * x)
    assert module.execute_node("halves")[1].numpy() == pytest.approx(10 * x[2:])
    module.exit()
    assert not (tmp_path / "dump").exists()


def test_nodes_are_timed(library, graph):
    module = debug_executor.create(json.dumps(graph), library, tvm.cpu())
    module.set_input("x", np.zeros(4, "float32"))
    times = module.run_individual(number=1, repeat=3)
    assert [len(of_node) for of_node in times] == [3] * 6
    assert times[0] == times[4] == [0, 0, 0] and min(times[2]) > 0
    assert module.run_individual_node(0, repeat=2).results == (0, 0)
    assert module.run_individual_node(3, number=1).mean > 0
    report = module.profile()
    assert [str(call["Name"]) for call in report.calls] == ["halves", "add", "add", "__copy"]
    for wrong in (module.run_individual_node, module.debug_get_output):
        with pytest.raises(IndexError, match="node 6 of 6"):
            wrong(6)
    with pytest.raises(KeyError, match="no node 'nothing'; it has x, halves"):
        module.debug_get_output("nothing")
    module.exit()


def test_a_network_says_its_graph_and_runs_from_it(capsys):
    x = relay.var("x", shape=(1, 8))
    weight = _RNG.random((4, 8)).astype("float32")
    parts = relay.split(relay.nn.dense(x, relay.const(weight)), 2, axis=1)
    body = relay.Tuple([relay.nn.softmax(parts[0]), relay.reshape(parts[1], (2,))])
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
    data = _RNG.random((1, 8)).astype("float32")
    expected = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    expected.run(x=data)
    debugged = debug_executor.GraphModuleDebug(
        lib["debug_create"]("default", tvm.cpu()), [tvm.cpu()], lib.get_graph_json(), None
    )
    debugged.run(number=1, x=data)
    # The kernels alone, without what else the library has.
    kernels = lib.get_lib().imported_modules[0]
    rebuilt = graph_executor.create(lib.get_graph_json(), kernels, tvm.cpu())
    rebuilt.set_input(**lib.params)
    rebuilt.run(x=data)
    for i in range(2):
        value = expected.get_output(i).numpy()
        np.testing.assert_array_equal(debugged.get_output(i).numpy(), value)
        np.testing.assert_array_equal(rebuilt.get_output(i).numpy(), value)
    np.testing.assert_allclose(expected.get_output(1).numpy(), (data @ weight.T)[0, 2:], rtol=1e-5)
    debugged.exit()


def test_kernels_that_want_one_axis_get_it():
    n = 6
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1, name="b")
    kernel = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="add_one")
    nodes = [_input("x"), _call("y", "add_one", [[0, 0, 0]])]
    nodes[1]["attrs"]["flatten_data"] = "1"
    module = graph_executor.create(
        json.dumps(_graph([[2, 3], [2, 3]], nodes, [[1, 0, 0]])), kernel, tvm.cpu()
    )
    module.run(x=np.zeros((2, 3), "float32"))
    np.testing.assert_array_equal(module.get_output(0).numpy(), np.ones((2, 3)))


def test_a_library_without_parameters_gets_them_later(tmp_path):
    x = relay.var("x", shape=(1, 8))
    weight = _RNG.random((4, 8)).astype("float32")
    body = relay.nn.dense(x, relay.const(weight))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
    lib["remove_params"]().export_library(tmp_path / "bare.so")
    data = _RNG.random((1, 8)).astype("float32")
    loaded = tvm.runtime.load_module(tmp_path / "bare.so")
    assert not loaded["get_graph_params"]()
    module = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
    module.load_params(tvm.runtime.save_param_dict(lib.get_params()))
    module.run(x=data)
    np.testing.assert_allclose(module.get_output(0).numpy(), data @ weight.T, rtol=1e-5)


def _changed(graph, change):
    copy = json.loads(json.dumps(graph))
    change(copy)
    return json.dumps(copy)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda g: g.pop("heads"), "heads"),
        (lambda g: g["heads"].append([9, 0, 0]), "heads names number 9 of 6"),
        (lambda g: g["nodes"][1]["inputs"].append([3, 0, 0]), "names number 3 of 1"),
        (lambda g: g["nodes"][1].update(op="call"), "known are null and tvm_op"),
        (lambda g: g["nodes"][1]["attrs"].update(num_outputs="many"), "no number"),
        (lambda g: g["nodes"][1]["attrs"].update(num_outputs="99999999"), "impossible"),
        (lambda g: g["nodes"][2]["attrs"].update(func_name="sub"), "'sub'"),
        (lambda g: g["nodes"][4]["attrs"].update(num_inputs="2"), "number of its inputs"),
        (lambda g: g["attrs"]["shape"][1].pop(), "6 items for 7 values"),
        (lambda g: g["attrs"]["shape"][1].__setitem__(5, [3, 1]), "changes the size"),
        (lambda g: g["attrs"]["shape"][1].__setitem__(1, [-1]), "impossible shape"),
        (lambda g: g["attrs"]["shape"][1].__setitem__(1, [2**62, 2**62]), "impossible shape"),
        (lambda g: g["attrs"]["dltype"][1].__setitem__(1, "real8"), "real8"),
        (lambda g: g["arg_nodes"].clear(), "not among arg_nodes"),
        (
            lambda g: g["attrs"].update(device_index=["list_int", [1, 1, 1, 2, 2, 2, 2]]),
            "several devices",
        ),
    ],
)
def test_damaged_graphs_are_refused(library, graph, change, message):
    with pytest.raises(ValueError, match=message):
        graph_executor.create(_changed(graph, change), library, tvm.cpu())


def test_other_bad_input(library, graph):
    with pytest.raises(TypeError, match="JSON text, got dict"):
        graph_executor.create(graph, library, tvm.cpu())
    with pytest.raises(ValueError, match="CUDA devices"):
        cuda_graph_executor.create(json.dumps(graph), library, tvm.cpu())
    module = debug_executor.create(json.dumps(graph), library, tvm.cpu())
    with pytest.raises(ValueError, match='node "sum" has not been executed'):
        module["get_node_output"](2, 0)
    module.exit()
