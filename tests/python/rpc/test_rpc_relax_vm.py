"""Networks for the virtual machine that run in another process."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import tvm
from tvm import relax, rpc
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Network:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 4), "float32")) -> R.Tensor(
        ("n", 4), "float32"
    ):
        with R.dataflow():
            product = R.matmul(x, w)
            result = R.nn.relu(product)
            R.output(result)
        return result

    @R.function
    def either(first: R.Tensor((), "bool"), x: R.Tensor((8, 4), "float32")) -> R.Tensor(
        (8, 4), "float32"
    ):
        if first:
            result = R.add(x, x)
        else:
            result = R.negative(x)
        return result

    @R.function
    def both(x: R.Tensor((8, 4), "float32")):
        doubled = R.add(x, x)
        negative = R.negative(x)
        return (doubled, negative)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "network.so"
    relax.build(Network, "llvm").export_library(str(path))
    return path


@contextlib.contextmanager
def _session(kind):
    if kind == "this process":
        yield rpc.LocalSession()
    elif kind == "program":
        yield rpc.PopenSession(rpc.native_server())
    elif kind == "server":
        server = rpc.Server(port=0, silent=True)
        with rpc.connect(server.host, server.port) as session:
            yield session
        server.terminate()
    else:
        tracker = rpc.Tracker(port=0, silent=True)
        server = rpc.Server(
            port=0, key="board", silent=True, tracker_addr=(tracker.host, tracker.port)
        )
        client = rpc.connect_tracker(tracker.host, tracker.port)
        with client.request("board", request_timeout=20) as session:
            yield session
        server.terminate()
        tracker.terminate()


@pytest.mark.parametrize("kind", ["this process", "program", "server", "tracker"])
def test_network_runs_in_a_session(kind, library):
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((8, 16), (16, 4)))
    expected = np.maximum(x @ w, 0)
    with _session(kind) as session:
        session.upload(library)
        device = session.cpu(0)
        machine = relax.VirtualMachine(session.load_module("network.so"), device)
        there = [tvm.nd.array(value, device) for value in (x, w)]

        result = machine["main"](*there)
        assert str(result.device).startswith("remote[")
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)
        shorter = machine["main"](tvm.nd.array(x[:3], device), there[1])
        np.testing.assert_allclose(shorter.numpy(), expected[:3], rtol=1e-5, atol=1e-5)

        for first in (True, False):
            chosen = machine["either"](tvm.nd.array(np.array(first), device), result)
            np.testing.assert_allclose(
                chosen.numpy(), 2 * expected if first else -expected, rtol=1e-5, atol=1e-5
            )
        doubled, negative = machine["both"](result)
        np.testing.assert_allclose(doubled.numpy(), 2 * expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(negative.numpy(), -expected, rtol=1e-5, atol=1e-5)

        machine.set_input("main", *there)
        machine.invoke_stateful("main")
        kept = machine.get_outputs("main")
        np.testing.assert_allclose(kept.numpy(), expected, rtol=1e-5, atol=1e-5)
        machine.save_function("main", "measured", *there)
        assert machine.time_evaluator("measured", device, number=2)().mean > 0


def test_errors_name_the_function_and_the_input(library):
    with _session("server") as session:
        session.upload(library)
        device = session.cpu(0)
        machine = relax.VirtualMachine(session.load_module("network.so"), device)
        x = tvm.nd.array(np.zeros((8, 4), "float32"), device)
        with pytest.raises(AttributeError, match="'nothing'; the executable has"):
            machine["nothing"]
        with pytest.raises(TypeError, match="main: takes 2 inputs"):
            machine["main"](x)
        with pytest.raises(ValueError, match="both: input 'x'"):
            machine["both"](tvm.nd.array(np.zeros((2, 4), "float32"), device))
        with pytest.raises(ValueError, match="copy it with tvm.nd.array"):
            machine["both"](tvm.nd.array(np.zeros((8, 4), "float32")))
