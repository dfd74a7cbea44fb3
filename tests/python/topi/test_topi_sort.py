"""Orders, running sums and updates at index tensors against NumPy and PyTorch."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_topi import evaluate, random_array
from tvm import te, topi

RNG = np.random.default_rng(0)
SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
DTYPES = ["float32", "float16", "float64", "int32", "int64", "int8", "uint8"]


def few(shape, dtype):
    """Numbers of which many are equal."""
    return RNG.integers(0, 4, shape).astype(dtype)


@given(shape=SHAPES, data=st.data(), dtype=st.sampled_from(DTYPES), ascending=st.booleans())
@settings(max_examples=12, deadline=None)
def test_sort_and_argsort_equal_torch_and_are_stable(shape, data, dtype, ascending):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = few(shape, dtype)
    values, order = torch.sort(torch.from_numpy(x), dim=axis, descending=not ascending, stable=True)
    np.testing.assert_array_equal(evaluate(lambda t: topi.sort(t, axis, ascending), x), values)
    out = evaluate(lambda t: topi.argsort(t, axis=axis, is_ascend=ascending, dtype="int64"), x)
    np.testing.assert_array_equal(out, order)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("ascending", [True, False])
def test_sort_puts_nan_above_all_numbers(dtype, ascending):
    x = np.array([3, np.nan, -np.inf, 1, np.inf, np.nan, -0.0, 6e-8], dtype)
    values, order = torch.sort(torch.from_numpy(x), descending=not ascending, stable=True)
    np.testing.assert_array_equal(evaluate(lambda t: topi.sort(t, 0, ascending), x), values)
    out = evaluate(lambda t: topi.argsort(t, is_ascend=ascending, dtype="float32"), x)
    np.testing.assert_array_equal(out, order)


@given(shape=SHAPES, data=st.data(), largest=st.booleans())
@settings(max_examples=7, deadline=None)
def test_topk_gives_values_and_positions(shape, data, largest):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    k = data.draw(st.integers(1, shape[axis]))
    x = random_array(RNG, *shape)
    expected = torch.topk(torch.from_numpy(x), k, axis, largest)
    options = {"k": k, "axis": axis, "is_ascend": not largest}
    values, indices = evaluate(lambda t: topi.topk(t, **options), x)
    np.testing.assert_array_equal(values, expected.values)
    np.testing.assert_array_equal(indices, expected.indices)
    for kind, reference in (("values", expected.values), ("indices", expected.indices)):
        out = evaluate(lambda t, kind=kind: topi.topk(t, ret_type=kind, **options), x)
        np.testing.assert_array_equal(out, reference)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("extent", "ascending"), [(70, True), (300, False), (5000, True)])
def test_long_rows_are_sorted_by_digits_and_stay_stable(extent, dtype, ascending):
    x = RNG.integers(0, 100, (2, extent)) if dtype == "uint8" else RNG.normal(0, 30, (2, extent))
    x = x.astype(dtype)
    x[:, ::7] = x[:, 0:1]
    if dtype.startswith("float"):
        x[:, 5], x[:, 11], x[:, 13] = np.nan, -0.0, 0.0
    tensor = torch.from_numpy(x)
    values, order = torch.sort(tensor, dim=1, descending=not ascending, stable=True)
    np.testing.assert_array_equal(evaluate(lambda t: topi.sort(t, 1, ascending), x), values)
    out = evaluate(lambda t: topi.argsort(t, axis=1, is_ascend=ascending, dtype="int32"), x)
    np.testing.assert_array_equal(out, order)
    for k in (1, 7, extent // 3, extent - 1):
        first = evaluate(lambda t, k=k: topi.topk(t, k, 1, "indices", ascending, "int64"), x)
        np.testing.assert_array_equal(first, order[:, :k])


@pytest.mark.parametrize("k", [1, 3, 16, 17, 100, 150])
@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("fill", [np.nan, np.inf, 0.0])
def test_topk_of_long_rows_of_equal_elements(k, ascending, fill):
    x = np.full((2, 200), fill, "float32")
    x[0, 70], x[1, ::3] = 1.0, RNG.standard_normal(67)
    values, places = evaluate(lambda t: topi.topk(t, k, 1, "both", ascending), x)
    order = np.argsort(np.where(np.isnan(x), np.inf, x), 1, kind="stable")
    if not ascending:
        # Equal elements keep their order, and NaN comes before infinity.
        key = np.where(np.isnan(x), np.inf, x)
        order = np.argsort(-key, 1, kind="stable")
    np.testing.assert_array_equal(places, order[:, :k])
    np.testing.assert_array_equal(values, np.take_along_axis(x, order[:, :k], 1))


def test_topk_of_all_is_a_sort():
    x = random_array(RNG, 4, 9)
    values, _ = evaluate(lambda t: topi.topk(t, 0), x)
    np.testing.assert_array_equal(values, -np.sort(-x, 1))


def test_many_rows_are_sorted_in_parallel():
    x = random_array(RNG, 130, 5, 70)
    np.testing.assert_array_equal(evaluate(lambda t: topi.sort(t, 0), x), np.sort(x, 0))
    np.testing.assert_array_equal(evaluate(topi.sort, x, symbolic=(130, 70)), np.sort(x, -1))


def test_sort_reads_and_feeds_other_stages():
    x = random_array(RNG, 3, 8)
    out = evaluate(lambda t: topi.add(topi.sort(topi.exp(t)), 1.0), x)
    np.testing.assert_allclose(out, np.sort(np.exp(x), 1) + 1, rtol=1e-5)


def test_an_exported_library_sorts_where_there_is_only_the_runtime(tmp_path):
    x = te.placeholder((2, 5), name="x")
    out = topi.sort(x)
    path = tmp_path / "sort.so"
    tvm.build(te.create_schedule(out.op), [x, out], "llvm", name="sort").export_library(str(path))
    program = textwrap.dedent(
        f"""
        import numpy as np, tvm
        x = np.array([[3, 1, 2, 5, 4], [9, 8, 7, 6, 5]], "float32")
        out = tvm.nd.array(np.zeros((2, 5), "float32"))
        tvm.runtime.load_module({str(path)!r})["sort"](tvm.nd.array(x), out)
        assert (out.numpy() == np.sort(x, 1)).all()
        """
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@given(shape=SHAPES, data=st.data(), dtype=st.sampled_from(["float32", "int32", "int8"]))
@settings(max_examples=10, deadline=None)
def test_cumsum_and_cumprod_equal_numpy(shape, data, dtype):
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    x = random_array(RNG, *shape, dtype=dtype)
    out_dtype = "int64" if dtype == "int8" else None
    for fn, reference in ((topi.cumsum, np.cumsum), (topi.cumprod, np.cumprod)):
        expected = reference(x, axis, dtype=out_dtype or dtype)
        out = evaluate(lambda t, fn=fn: fn(t, axis, out_dtype), x)
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("symbolic", [(), (3, 130)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_sums_of_many_neighbours(axis, symbolic):
    x = random_array(RNG, 3, 4, 130)
    out = evaluate(lambda t: topi.cumsum(t, axis), x, symbolic=symbolic)
    np.testing.assert_allclose(out, np.cumsum(x, axis), rtol=1e-4, atol=1e-5)


@given(shape=SHAPES, data=st.data(), dtype=st.sampled_from(["float32", "int32"]))
@settings(max_examples=10, deadline=None)
def test_running_extremes_equal_numpy(shape, data, dtype):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = random_array(RNG, *shape, dtype=dtype)
    if dtype == "float32" and data.draw(st.booleans()):
        x[RNG.random(shape) < 0.2] = np.nan
    for fn, reference in ((topi.cummax, np.maximum), (topi.cummin, np.minimum)):
        out = evaluate(lambda t, fn=fn: fn(t, axis), x)
        np.testing.assert_array_equal(out, reference.accumulate(x, axis))


@given(shape=SHAPES, data=st.data())
@settings(max_examples=6, deadline=None)
def test_running_logarithms_of_sums_equal_numpy(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = random_array(RNG, *shape, dtype="float32") * 50
    x[RNG.random(shape) < 0.3] = -np.inf
    out = evaluate(lambda t: topi.logcumsumexp(t, axis), x)
    np.testing.assert_allclose(out, np.logaddexp.accumulate(x, axis), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("symbolic", [(), (4, 5)])
def test_an_exclusive_scan_leaves_out_the_element_itself(symbolic):
    x = random_array(RNG, 4, 5)
    out = evaluate(lambda t: topi.cumsum(t, 1, exclusive=True), x, symbolic=symbolic)
    np.testing.assert_allclose(out, np.cumsum(x, 1) - x, rtol=1e-4, atol=1e-5)


TORCH_REDUCE = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax", "mean": "mean"}


@pytest.mark.parametrize("reduction", TORCH_REDUCE)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements_equals_torch(axis, reduction):
    data, updates = random_array(RNG, 4, 5, 3), random_array(RNG, 3, 4, 3)
    indices = RNG.integers(0, data.shape[axis], (3, 4, 3)).astype("int64")
    expected = torch.from_numpy(data).scatter_reduce(
        axis, torch.from_numpy(indices), torch.from_numpy(updates), TORCH_REDUCE[reduction]
    )
    out = evaluate(lambda *t: topi.scatter_elements(*t, axis, reduction), data, indices, updates)
    np.testing.assert_allclose(out, expected.numpy(), rtol=1e-4, atol=1e-5)
    negative = indices - data.shape[axis]
    out = evaluate(lambda *t: topi.scatter_elements(*t, axis, reduction), data, negative, updates)
    np.testing.assert_allclose(out, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_of_several_updates_of_one_element_the_last_one_stays():
    data = np.zeros(4, "float32")
    indices, updates = np.array([2, 1, 2, 9, 1], "int32"), np.arange(1, 6, dtype="float32")
    # The index out of range is left out.
    np.testing.assert_array_equal(evaluate(topi.scatter, data, indices, updates), [0, 5, 3, 0])
    np.testing.assert_array_equal(evaluate(topi.scatter_add, data, indices, updates), [0, 7, 4, 0])


@pytest.mark.parametrize("mode", ["update", "add", "mul", "min", "max"])
def test_scatter_nd_updates_slices_at_index_tuples(mode):
    data, updates = random_array(RNG, 4, 5, 3), random_array(RNG, 2, 3, 3)
    indices = np.stack([RNG.permutation(4)[:3], RNG.permutation(5)[:3]])[:, None].repeat(2, 1)
    indices = indices.astype("int64")
    apply = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
    expected = data.copy()
    for i in range(2):
        for j in range(3):
            place = tuple(indices[:, i, j])
            new = updates[i, j]
            expected[place] = apply[mode](expected[place], new) if mode in apply else new
    out = evaluate(lambda *t: topi.scatter_nd(*t, mode), data, indices, updates)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_sparse_to_dense_sets_elements():
    indices, values = np.array([[0, 1], [2, 3]], "int32"), np.array([5, 6], "float32")
    out = evaluate(lambda i, v: topi.sparse_to_dense(i, (3, 4), v, -1.0), indices, values)
    expected = np.full((3, 4), -1.0)
    expected[0, 1], expected[2, 3] = 5, 6
    np.testing.assert_array_equal(out, expected)
    row = evaluate(lambda i, v: topi.sparse_to_dense(i, (5,), v), indices[:, 1], values)
    np.testing.assert_array_equal(row, [0, 5, 0, 6, 0])
    one = evaluate(lambda i, v: topi.sparse_to_dense(i, (5,), v), indices[:, 1], values[0])
    np.testing.assert_array_equal(one, [0, 5, 0, 5, 0])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("symbolic", [(), (13,)])
def test_searchsorted_equals_numpy(right, symbolic):
    sequence, values = np.sort(few(13, "float32")), np.linspace(-1, 4, 21, dtype="float32")
    out = evaluate(lambda s, v: topi.searchsorted(s, v, right), sequence, values, symbolic=symbolic)
    np.testing.assert_array_equal(
        out, np.searchsorted(sequence, values, "right" if right else "left")
    )
    rows = np.sort(random_array(RNG, 3, 6), 1)
    wanted = random_array(RNG, 3, 4)
    out = evaluate(lambda s, v: topi.searchsorted(s, v, right, out_dtype="int32"), rows, wanted)
    expected = torch.searchsorted(torch.from_numpy(rows), torch.from_numpy(wanted), right=right)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_unique_finds_distinct_elements(is_sorted, dtype):
    x = RNG.integers(0, 6, 20).astype(dtype)
    values, first, inverse, counts_of = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    if not is_sorted:
        order = np.argsort(first)
        values, first, counts_of = values[order], first[order], counts_of[order]
        inverse = np.argsort(order)[inverse]
    elements, index, back, count, counts = evaluate(
        lambda t: topi.unique(t, is_sorted, return_counts=True), x
    )
    n = len(values)
    assert count.tolist() == [n]
    np.testing.assert_array_equal(elements[:n], values)
    np.testing.assert_array_equal(index[:n], first)
    np.testing.assert_array_equal(back, inverse)
    np.testing.assert_array_equal(counts[:n], counts_of)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: topi.topk(x, 6), "cannot take 6 of 5 elements"),
        (lambda x: topi.topk(x, 2, ret_type="all"), "'both', 'values' or 'indices'"),
        (lambda x: topi.scatter_elements(x, x, x, 0, "sub"), "reduction is one of"),
        (lambda x: topi.scatter_elements(x, topi.stack([x, x]), x), "they must agree"),
        (lambda x: topi.scatter_nd(x, x, x), "tuples of 3 numbers"),
        (lambda x: topi.sparse_to_dense(x, (3, 4), x), r"indices of shape \(3, 5\) do not fit"),
    ],
)
def test_order_refuses_arguments_that_do_not_fit(fn, message):
    x = te.placeholder((3, 5), "int32", name="x")
    with pytest.raises(ValueError, match=message):
        fn(x)
