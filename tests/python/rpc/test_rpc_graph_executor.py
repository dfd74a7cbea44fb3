"""Graphs of ``relay.build``, deployed to another process as TVM's tutorials do it."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay, rpc
from tvm.contrib import graph_executor


@pytest.fixture(scope="module")
def remote():
    server = rpc.Server(port=0, silent=True)
    with rpc.connect(server.host, server.port) as session:
        yield session
    server.terminate()


@pytest.fixture(scope="module")
def network():
    x, w = relay.var("x", shape=(2, 16)), relay.var("w", shape=(8, 16))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((8, 16), "float32")
    values = rng.standard_normal((2, 16), "float32")
    return mod, {"w": tvm.nd.array(weights)}, values, np.maximum(values @ weights.T, 0)


@pytest.mark.parametrize("suffix", ["tar", "so"])
def test_graph_takes_inputs_of_this_process(remote, network, tmp_path, suffix):
    mod, params, values, expected = network
    path = tmp_path / f"network.{suffix}"
    relay.build(mod, "llvm", params=params).export_library(str(path))
    remote.upload(path)
    device = remote.cpu(0)
    graph = graph_executor.GraphModule(remote.load_module(path.name)["default"](device))
    for given in (tvm.nd.array(values), values, tvm.nd.array(values, device)):
        graph.set_input("x", tvm.nd.array(np.zeros_like(values)))
        graph.set_input("x", given)
        graph.run()
        np.testing.assert_allclose(graph.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-5)
    here = tvm.nd.empty((2, 8), "float32")
    assert graph.get_output(0, here) is here
    np.testing.assert_allclose(here.numpy(), expected, rtol=1e-5, atol=1e-5)
    assert (graph.get_input("x", tvm.nd.empty((2, 16), "float32")).numpy() == values).all()
    shapes, dtypes = graph.get_input_info()
    assert {name: tuple(shape) for name, shape in shapes.items()} == {"x": (2, 16)}
    assert dtypes == {"x": "float32"}
    assert graph.benchmark(device, repeat=2, number=2, end_to_end=True).mean > 0
    with pytest.raises(ValueError, match='there is no input "y"'):
        graph.set_input("y", values)
    with pytest.raises(ValueError, match="set_input"):
        graph.set_input("x", values[:1])


def test_parameters_of_one_graph_are_not_those_of_another(remote, network, tmp_path):
    mod, params, values, expected = network
    path = tmp_path / "network.so"
    relay.build(mod, "llvm", params=params).export_library(str(path))
    remote.upload(path)
    library = remote.load_module(path.name)
    first, second = (
        graph_executor.GraphModule(library["default"](remote.cpu(0))) for _ in range(2)
    )
    first.set_input("p0", np.zeros(first.get_input("p0").shape, "float32"))
    for graph, wanted in ((first, np.zeros_like(expected)), (second, expected)):
        graph.run(x=values)
        np.testing.assert_allclose(graph.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-5)
