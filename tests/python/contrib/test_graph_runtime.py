"""Programs of TVM 0.6 and 0.7 run graphs under the older name."""

import numpy as np

import tvm
from tvm import relay
from tvm.contrib import graph_runtime


def test_a_graph_runs_under_the_older_name():
    x = relay.var("x", shape=(2, 3))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + relay.const(1.0))), "llvm")
    values = np.arange(6, dtype="float32").reshape(2, 3)
    for module in (
        graph_runtime.GraphModule(lib["default"](tvm.cpu())),
        graph_runtime.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu()),
    ):
        module.run(x=tvm.nd.array(values))
        np.testing.assert_array_equal(module.get_output(0).numpy(), values + 1)
