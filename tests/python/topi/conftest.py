"""Runs te computations that nobody scheduled, on NumPy arrays."""

import numpy as np
import pytest

import tvm
from tvm import te


def _evaluate(fn, *arrays):
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    result = fn(*inputs)
    func = tvm.build(te.create_schedule(result.op), [*inputs, result], target="llvm")
    shape = [int(extent) for extent in result.shape]
    out = tvm.nd.array(np.full(shape, 77, dtype=str(result.dtype)))
    func(*(tvm.nd.array(a) for a in arrays), out)
    return out.numpy()


@pytest.fixture(scope="session")
def evaluate():
    """``evaluate(fn, *arrays)``: value of ``fn`` (te tensors to a te tensor) for the arrays."""
    return _evaluate
