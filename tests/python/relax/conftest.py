"""Builds and runs graph modules on NumPy arrays."""

import numpy as np
import pytest

import tvm
from tvm import relax


def _run(mod, *arrays):
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = machine["main"](*(tvm.nd.array(np.asarray(a, order="C")) for a in arrays))
    if isinstance(result, tvm.nd.NDArray):
        return result.numpy()
    return [item.numpy() for item in result]


@pytest.fixture(scope="session")
def run():
    """``run(mod, *arrays)``: what ``main`` returns, as an array or a list of arrays."""
    return _run


def _op_names(mod, function="main"):
    calls = [b.value for block in mod[function].body.blocks for b in block.bindings]
    return [
        str(c.op.name).removeprefix("relax.") if relax.op.has_op(c.op) else str(c.op.name_hint)
        for c in calls
        if isinstance(c, relax.Call)
    ]


@pytest.fixture(scope="session")
def op_names():
    """``op_names(mod)``: operators and functions that ``main`` calls, in order."""
    return _op_names


def _make_module(make, *shapes):
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", relax.TensorStructInfo(s)) for i, s in enumerate(shapes)]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(make(builder, *params))
        builder.emit_func_output(out)
    return builder.get()


@pytest.fixture(scope="session")
def make_module():
    """``make_module(make, *shapes)``: ``main`` whose body is ``make(builder, *params)``."""
    return _make_module
