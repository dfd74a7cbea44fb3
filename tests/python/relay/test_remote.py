"""Programs with control flow on another machine."""

import numpy as np
import pytest

import tvm
from tvm import relay, rpc, runtime


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    x, y = relay.var("x", shape=(relay.Any(), 2)), relay.var("y", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.Tuple([x + y, relay.sum(x)])))
    mod["one"] = relay.Function([x], x * relay.const(3.0))
    path = tmp_path_factory.mktemp("program") / "program.so"
    relay.vm.compile(mod, "llvm").mod.export_library(str(path))
    server = rpc.Server("127.0.0.1", silent=True)
    remote = rpc.connect(server.host, server.port, session_timeout=120)
    remote.upload(str(path))
    yield remote, remote.load_module("program.so")
    server.terminate()


def test_a_machine_of_a_session_computes_what_this_one_does(session):
    remote, program = session
    machine = runtime.vm.VirtualMachine(program, remote.cpu())
    x, y = np.arange(6, dtype="float32").reshape(3, 2), np.float32([1, 2])
    result = machine.invoke("main", tvm.nd.array(x, remote.cpu()), y)
    assert result[0].device.device_type >= 128  # the arrays stay with the session
    np.testing.assert_array_equal(result[0].numpy(), x + y)
    np.testing.assert_array_equal(result[1].numpy(), 15)
    np.testing.assert_array_equal(machine.invoke("one", x).numpy(), 3 * x)


def test_results_are_written_to_arrays_of_the_session(session):
    remote, program = session
    machine = runtime.vm.VirtualMachine(program, remote.cpu())
    x = np.ones((4, 2), "float32")
    out = tvm.nd.array(np.zeros_like(x), remote.cpu())
    machine.invoke_with_outputs("one", input_args={"x": x}, output_args=[out])
    np.testing.assert_array_equal(out.numpy(), 3 * x)
