"""Operators that are written as statements, for the threads of a GPU that is emulated."""

import numpy as np
import pytest
import torch

import tvm
from tvm import relax, te, topi
from tvm.relax.frontend.torch import from_exported_program
from tvm.target import emulated

GPU = emulated("cuda")


def run(operator, *arrays):
    """Results of an operator on the emulated GPU, under the schedule of the library."""
    inputs = [te.placeholder(a.shape, str(a.dtype), name=f"in{k}") for k, a in enumerate(arrays)]
    with GPU:
        made = operator(*inputs)
        outputs = [made] if isinstance(made, te.Tensor) else list(made)
        function = tvm.build(topi.schedule_for(outputs, GPU), [*inputs, *outputs], GPU)
    results = [tvm.nd.empty([int(e) for e in out.shape], out.dtype) for out in outputs]
    function(*map(tvm.nd.array, arrays), *results)
    return [result.numpy() for result in results]


def with_ties(*shape):
    data = np.random.default_rng(1).integers(-9, 9, shape).astype("float32")
    data.reshape(-1)[[3, 40]] = np.nan
    return data


@pytest.mark.parametrize("shape", [(1,), (31,), (33, 2), (3, 700, 2), (2, 64)])
@pytest.mark.parametrize("is_ascend", [True, False])
def test_orders_are_stable_and_nan_is_largest(shape, is_ascend):
    data = np.resize(with_ties(4200), shape)
    axis = min(1, len(shape) - 1)
    values, order = torch.sort(
        torch.from_numpy(data), dim=axis, descending=not is_ascend, stable=True
    )
    (got,) = run(lambda x: topi.argsort(x, axis, is_ascend, "int64"), data)
    np.testing.assert_array_equal(got, order.numpy())
    (got,) = run(lambda x: topi.sort(x, axis, is_ascend), data)
    np.testing.assert_array_equal(got, values.numpy())
    kept, places = run(lambda x: topi.topk(x, 1, axis, is_ascend=is_ascend), data)
    np.testing.assert_array_equal(kept, np.take(values.numpy(), [0], axis))
    np.testing.assert_array_equal(places, np.take(order.numpy(), [0], axis))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16"])
def test_orders_of_all_types(dtype):
    data = np.random.default_rng(2).integers(0, 5, (3, 50)).astype(dtype)
    (order,) = run(lambda x: topi.argsort(x), data)
    np.testing.assert_array_equal(order, np.argsort(data, -1, kind="stable"))


@pytest.mark.parametrize("extent", [5, 40, 3000])
def test_rows_of_any_length_are_sorted_by_one_function(extent):
    n = te.var("n")
    data = te.placeholder((n,), name="data")
    with GPU:
        ordered = topi.sort(data)
        function = tvm.build(topi.cuda.schedule_sort(ordered), [data, ordered], GPU)
    array = np.random.default_rng(3).random(extent, dtype="float32")
    result = tvm.nd.empty((extent,))
    function(tvm.nd.array(array), result)
    np.testing.assert_array_equal(result.numpy(), np.sort(array))


@pytest.mark.parametrize("shape", [(1, 1), (5, 67), (3, 1000), (300, 3), (20, 70)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("exclusive", [False, True])
def test_running_sums(shape, axis, exclusive):
    data = np.random.default_rng(4).integers(-5, 5, shape).astype("int32")
    (got,) = run(lambda x: topi.cumsum(x, axis, "int64", exclusive), data)
    np.testing.assert_array_equal(got, data.cumsum(axis) - (data if exclusive else 0))


@pytest.mark.parametrize("name", ["cummax", "cummin", "cumprod", "logcumsumexp"])
def test_what_runs_along_rows(name):
    data = np.random.default_rng(5).random((3, 333), dtype="float32") + 0.5
    (got,) = run(lambda x: getattr(topi, name)(x, 1), data)
    wanted = getattr(torch, name)(torch.from_numpy(data), 1)
    wanted = wanted if isinstance(wanted, torch.Tensor) else wanted[0]
    np.testing.assert_allclose(got, wanted.numpy(), rtol=2e-5)


def test_what_stands_in_front_and_behind_is_computed():
    data = np.random.default_rng(6).random((4, 90), dtype="float32")
    (got,) = run(lambda x: topi.sum(topi.add(topi.cumsum(topi.exp(x), 1), x), 1), data)
    np.testing.assert_allclose(got, (np.exp(data).cumsum(1) + data).sum(1), rtol=1e-5)


def test_updates_at_indices():
    rng = np.random.default_rng(7)
    data, updates = (rng.random((6, 9), dtype="float32") for _ in range(2))
    places = rng.integers(0, 6, (6, 9))
    (got,) = run(lambda *x: topi.scatter_add(*x, axis=0), data, places, updates)
    wanted = torch.from_numpy(data).scatter_add(
        0, torch.from_numpy(places), torch.from_numpy(updates)
    )
    np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-6)
    places = rng.integers(0, 6, (1, 20))
    updates = rng.random((20, 9), dtype="float32")
    (got,) = run(lambda *x: topi.scatter_nd(*x, mode="add"), data, places, updates)
    np.add.at(data, places[0], updates)
    np.testing.assert_allclose(got, data, rtol=1e-6)


def test_distinct_elements():
    data = np.random.default_rng(8).integers(0, 9, 50).astype("int32")
    elements, _, inverse, count, counts = run(lambda x: topi.unique(x, return_counts=True), data)
    wanted, times = np.unique(data, return_counts=True)
    np.testing.assert_array_equal(elements[: int(count[0])], wanted)
    np.testing.assert_array_equal(wanted[inverse], data)
    np.testing.assert_array_equal(counts[: len(wanted)], times)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("target", [GPU, tvm.target.Target("llvm")])
@pytest.mark.parametrize("extent", [1, 10, 1000])
def test_places_in_a_rising_sequence(right, target, extent):
    rng = np.random.default_rng(9)
    sequence = np.sort(rng.integers(0, 40, extent)).astype("float32")
    values = rng.integers(-1, 42, (3, 70)).astype("float32")
    s, v = te.placeholder((extent,), name="s"), te.placeholder((3, 70), name="v")
    with target:
        found = topi.searchsorted(s, v, right)
        function = tvm.build(topi.schedule_for([found], target), [s, v, found], target)
    result = tvm.nd.empty((3, 70), "int64")
    function(tvm.nd.array(sequence), tvm.nd.array(values), result)
    wanted = np.searchsorted(sequence, values, "right" if right else "left")
    np.testing.assert_array_equal(result.numpy(), wanted)


def test_random_numbers_are_those_of_processors():
    key = te.placeholder((10,), "uint64", name="key")
    state = np.arange(10, dtype="uint64")
    found = []
    for target in (GPU, tvm.target.Target("llvm")):
        with target:
            left, right = topi.random.threefry_split(key)
            _, numbers = topi.random.uniform(right, 0.0, 1.0, (37,), "float32")
            outputs = [left, numbers]
            function = tvm.build(topi.schedule_for(outputs, target), [key, *outputs], target)
        results = [tvm.nd.empty((10,), "uint64"), tvm.nd.empty((37,))]
        function(tvm.nd.array(state), *results)
        found.append([result.numpy() for result in results])
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


class Sorted(torch.nn.Module):
    def forward(self, x):
        values, places = torch.topk(torch.cumsum(x * 2, 1), 4, 1)
        one = torch.ones(5, 4)
        return values, torch.argsort(x, dim=0, stable=True), x.scatter_add(1, places, one)


def test_networks_that_sort_are_built_for_a_gpu():
    x, model = torch.rand(5, 67), Sorted()
    mod = from_exported_program(torch.export.export(model, (x,)))
    machine = relax.VirtualMachine(relax.build(mod, GPU), tvm.cpu())
    for got, wanted in zip(machine["main"](tvm.nd.array(x.numpy())), model(x)):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)


def test_each_matrix_of_a_system_is_a_thread():
    random = np.random.default_rng(2)
    a = random.standard_normal((2, 3, 5, 5)).astype("float32")
    b = random.standard_normal((2, 3, 5, 2)).astype("float32")
    lu, pivots = run(topi.lu_factor, a)
    expected = torch.linalg.lu_factor(torch.from_numpy(a))
    np.testing.assert_allclose(lu, expected.LU.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(pivots, expected.pivots.numpy())
    (x,) = run(topi.lu_solve, lu, pivots, b)
    np.testing.assert_allclose(a @ x, b, rtol=1e-3, atol=1e-4)
    definite = a @ a.swapaxes(-1, -2) + np.eye(5, dtype="float32")
    (factor,) = run(topi.cholesky, definite)
    np.testing.assert_allclose(factor, np.linalg.cholesky(definite), rtol=1e-4, atol=1e-4)
    (x,) = run(lambda l, r: topi.solve_triangular(l, r, upper=False), factor, b)
    np.testing.assert_allclose(factor @ x, b, rtol=1e-4, atol=1e-4)
