"""Long short-term memory of Hochreiter and Schmidhuber, unrolled."""

from __future__ import annotations

from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from .init import create_workload

__all__ = ["get_net", "get_workload"]


def get_net(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> Function:
    """A number of steps on the same input, from states of zeros; its result is the last output."""
    data = var("data", shape=(batch_size, num_hidden), dtype=dtype)
    hidden = op.zeros((batch_size, num_hidden), dtype)
    cell = op.zeros((batch_size, num_hidden), dtype)
    names = ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")
    weights = [var(name) for name in names]
    out: Any = hidden
    for _ in range(iterations):
        gates = [
            op.nn.bias_add(op.nn.dense(x, weight, units=4 * num_hidden), bias, axis=1)
            for x, weight, bias in ((data, weights[0], weights[2]), (hidden, weights[1],
                                                                     weights[3]))
        ]  # fmt: skip
        i, f, g, o = op.split(op.add(*gates), 4, axis=1)
        sigmoid, tanh = op.sigmoid, op.tanh
        cell = op.add(op.multiply(sigmoid(f), cell), op.multiply(sigmoid(i), tanh(g)))
        hidden = op.multiply(sigmoid(o), tanh(cell))
        out = hidden
    return Function(free_vars(out), out)


def get_workload(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> tuple[Any, Any]:
    """Module and parameters of `get_net`."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
