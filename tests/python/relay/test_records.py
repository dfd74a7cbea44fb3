"""Tasks of relay programs, builds that ask for records, and looks at what programs compute."""

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, relay


class Asked(auto_scheduler.DispatchContext):
    """Notes the workloads that a build asks for."""

    def __init__(self):
        super().__init__()
        self.keys = set()

    def _query_inside(self, target, workload_key, dag, func_name):
        self.keys.add(str(workload_key))


@pytest.fixture
def network():
    x = relay.var("data", shape=(1, 8, 10, 10))
    y = relay.nn.relu(relay.nn.conv2d(x, relay.var("w1"), kernel_size=3, channels=8, padding=1))
    y = relay.nn.relu(relay.nn.conv2d(y, relay.var("w2"), kernel_size=3, channels=8, padding=1))
    y = relay.nn.dense(relay.nn.batch_flatten(y), relay.var("w3"), units=4)
    return relay.testing.create_workload(y)


def test_tasks_are_those_that_a_build_asks_for(network):
    mod, params = network
    tasks, weights = auto_scheduler.extract_tasks(mod["main"], params, "llvm")
    again, _ = auto_scheduler.extract_tasks(mod, params=params, target="llvm")
    keys = {str(task.workload_key) for task in tasks}
    assert keys == {str(task.workload_key) for task in again}
    assert sum(weights) >= 3
    with Asked() as asked:
        relay.build(mod, "llvm", params=params)
    assert keys <= asked.keys
    off = {"relay.backend.use_auto_scheduler": False}
    with Asked() as silent, tvm.transform.PassContext(opt_level=3, config=off):
        relay.build(mod, "llvm", params=params)
    assert not silent.keys


def test_values_are_shown_while_the_program_runs():
    seen = []
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], relay.op.debug(x + x, seen.append) * relay.const(3.0))
    result = relay.create_executor("vm").evaluate(func)(np.array([1, 2], "float32"))
    np.testing.assert_array_equal(result.numpy(), [6, 12])
    np.testing.assert_array_equal(seen[0].numpy(), [2, 4])


def test_shapes_that_follow_from_constants_become_numbers():
    x = relay.var("x", shape=(2, 6))
    like = relay.shape_of(relay.var("y", shape=(3, 4)), "int64")
    shape = like + relay.const(np.array([1, -1]), "int64")
    reshaped = relay.reshape(x, shape - relay.const(np.array([1, -1]), "int64"))
    body = relay.tile(relay.op.broadcast_to(reshaped, like), like)
    func = relay.Function(relay.analysis.free_vars(body), body)
    new = relay.transform.DynamicToStatic()(tvm.IRModule.from_expr(func))
    assert [int(e) for e in new["main"].body.checked_type.shape] == [9, 16]
    assert set(relay.analysis.list_op_freqs(new)) == {"reshape", "broadcast_to", "tile"}
    unknown = relay.reshape(x, relay.var("s", shape=(2,), dtype="int64"))
    same = relay.transform.DynamicToStatic()(tvm.IRModule.from_expr(unknown))
    assert relay.analysis.list_op_freqs(same) == {"dyn.reshape": 1}


def test_spans_are_places_in_the_text():
    x = relay.var("x", shape=(2,))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.exp(relay.tanh(x))))
    new = relay.transform.AnnotateSpans()(mod)
    call = new["main"].body
    line = mod.astext().splitlines()[int(call.span.line) - 1]
    assert "exp(" in line and "tanh(" in mod.astext().splitlines()[int(call.args[0].span.line) - 1]
    tvm.ir.assert_structural_equal(mod, new)
