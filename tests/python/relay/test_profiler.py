"""What the kernels of programs of relay's machine take."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.runtime import profiler_vm
from tvm.runtime.profiling import PerfMetricCollector, Report


def _machine(func):
    program = relay.vm.compile(tvm.IRModule.from_expr(func), "llvm")
    return profiler_vm.VirtualMachineProfiler(program, tvm.cpu())


def _names(report):
    return [str(call["Name"]) for call in report.calls]


def test_each_kernel_of_a_graph_is_a_line_of_the_report():
    assert profiler_vm.enabled()
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(6, 8))
    machine = _machine(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w))))
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype("float32") for s in ((4, 8), (6, 8)))
    report = machine.profile(a, b)
    assert _names(report) == ["dense", "softmax"]
    shares = [float(call["Percent"]) for call in report.calls]
    assert all(share > 0 for share in shares) and sum(shares) <= 100.01
    assert "softmax" in report.table() and Report.from_json(report.json()).calls
    # By name, and of arguments that were set; the machine gives results as ever.
    assert _names(machine.profile(w=b, x=a)) == ["dense", "softmax"]
    machine.set_input("main", a, b)
    assert _names(machine.profile(func_name="main")) == ["dense", "softmax"]
    exact = np.exp(a @ b.T) / np.exp(a @ b.T).sum(-1, keepdims=True)
    np.testing.assert_allclose(machine.run(a, b).numpy(), exact, rtol=1e-4)


def test_only_the_branch_that_runs_is_in_the_report():
    x = relay.var("x", shape=(relay.Any(),))
    big = relay.greater(relay.sum(x), relay.const(0.0))
    machine = _machine(relay.Function([x], relay.If(big, relay.tanh(x), relay.exp(x))))
    for sign, taken, other in ((1, "tanh", "exp"), (-1, "exp", "tanh")):
        names = " ".join(_names(machine.profile(np.full(5, sign, "float32"))))
        assert "sum" in names and taken in names and other not in names


def test_collectors_add_columns():
    x = relay.var("x", shape=(4,))
    machine = _machine(relay.Function([x], relay.exp(x)))
    machine.set_input("main", np.ones(4, "float32"))
    try:
        (call,) = machine.profile(collectors=[PerfMetricCollector(["instructions"])]).calls
    except RuntimeError:
        pytest.skip("the system gives no access to counters of events")
    assert float(call["instructions"]) > 0


def test_functions_that_are_not_there_are_named():
    x = relay.var("x", shape=(4,))
    machine = _machine(relay.Function([x], relay.exp(x)))
    with pytest.raises(KeyError, match="other"):
        machine.profile(np.ones(4, "float32"), func_name="other")
