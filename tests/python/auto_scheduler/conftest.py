"""Small workloads, and running a schedule on random inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, te, topi


@auto_scheduler.register_workload("test_matmul")
def matmul(n: int, m: int, k: int) -> list[te.Tensor]:
    a = te.placeholder((n, k), name="A")
    b = te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=[r]), name="C")
    return [a, b, c]


@auto_scheduler.register_workload("test_two_matmuls")
def two_matmuls(n: int) -> list[te.Tensor]:
    a, b, c = matmul(n, n, n)
    d = te.placeholder((n, n), name="D")
    r = te.reduce_axis((0, n), name="r")
    e = te.compute((n, n), lambda i, j: te.sum(c[i, r] * d[r, j], axis=[r]), name="E")
    return [a, b, d, e]


@auto_scheduler.register_workload("test_conv_relu")
def conv_relu(
    h: int, w: int, ci: int, co: int, kernel: int, stride: int, pad: int
) -> list[te.Tensor]:
    data = te.placeholder((1, h, w, ci), name="data")
    weight = te.placeholder((kernel, kernel, ci, co), name="weight")
    bias = te.placeholder((co,), name="bias")
    conv = topi.nn.conv2d_nhwc(data, weight, stride, pad)
    return [data, weight, bias, topi.relu(topi.add(conv, bias))]


@auto_scheduler.register_workload("test_row_min")
def row_min(n: int, m: int) -> list[te.Tensor]:
    a = te.placeholder((n, m), name="A")
    r = te.reduce_axis((0, m), name="k")
    return [a, te.compute((n,), lambda i: te.min(a[i, r], axis=[r]), name="B")]


@auto_scheduler.register_workload("test_softmax")
def softmax(n: int, m: int) -> list[te.Tensor]:
    a = te.placeholder((n, m), name="A")
    return [a, topi.nn.softmax(a)]


@auto_scheduler.register_workload("test_max_pool")
def max_pool(h: int, c: int) -> list[te.Tensor]:
    a = te.placeholder((1, h, h, c), name="A")
    return [a, topi.nn.max_pool2d(a, 2, 2)]


@auto_scheduler.register_workload("test_winograd")
def winograd(size: int, ci: int, co: int) -> list[te.Tensor]:
    data = te.placeholder((1, size, size, ci), name="data")
    weight = te.placeholder((6, 6, co, ci), name="weight")
    return [data, weight, topi.nn.conv2d_winograd_nhwc(data, weight, 1, 1, pre_computed=True)]


def _random_inputs(dag: auto_scheduler.ComputeDAG, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        rng.uniform(-1, 1, [int(s) for s in tensor.shape]).astype("float32")
        for tensor in list(dag.tensors)[:-1]
    ]


def _run(sch: te.Schedule, args: Sequence[te.Tensor], inputs: Sequence[np.ndarray]) -> np.ndarray:
    func = tvm.build(sch, list(args), target="llvm")
    arrays = [tvm.nd.array(np.ascontiguousarray(x)) for x in inputs]
    out = tvm.nd.array(np.full([int(s) for s in args[-1].shape], np.nan, "float32"))
    func(*arrays, out)
    return out.numpy()


@pytest.fixture
def random_inputs() -> Callable[..., list[np.ndarray]]:
    """(dag, seed=0) -> one float32 array for each input, values in [-1, 1)."""
    return _random_inputs


@pytest.fixture
def run_schedule() -> Callable[..., np.ndarray]:
    """(schedule, args, inputs) -> the single output of the compiled program."""
    return _run


@pytest.fixture
def assert_state_is_correct() -> Callable[..., None]:
    """(dag, state) : the state's program gives what the unscheduled one gives."""

    def check(dag: auto_scheduler.ComputeDAG, state: Any) -> None:
        inputs = _random_inputs(dag)
        expected = _run(*dag.apply_steps_from_state(dag.get_init_state()), inputs)
        actual = _run(*dag.apply_steps_from_state(state), inputs)
        # Sums of at most some hundred products of values below 1, in another order.
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4, err_msg=str(state))

    return check
