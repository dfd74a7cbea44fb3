"""Slices, index tensors and conditions against NumPy and PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from testing_topi import evaluate, random_array
from tvm import te, topi

RNG = np.random.default_rng(0)
X = random_array(RNG, 3, 5, 4)
INDEX_TYPES = pytest.mark.parametrize("index_type", ["int32", "int64"])


@st.composite
def slices(draw):
    """A slice for each of some leading dimensions of X."""
    limit = st.one_of(st.none(), st.integers(-7, 7))
    step = st.sampled_from([1, 1, 2, 3, -1, -2])
    return [slice(draw(limit), draw(limit), draw(step)) for _ in range(draw(st.integers(1, 3)))]


@given(parts=slices(), symbolic=st.booleans())
@settings(max_examples=15, deadline=None)
def test_strided_slice_equals_numpy(parts, symbolic):
    expected = X[tuple(parts)]
    if 0 in expected.shape:
        return
    begin, end, strides = zip(*((p.start, p.stop, p.step) for p in parts))
    out = evaluate(
        lambda t: topi.strided_slice(t, begin, end, strides), X, symbolic=(3, 5) if symbolic else ()
    )
    np.testing.assert_array_equal(out, expected)


def test_strided_slice_takes_axes_and_sizes():
    out = evaluate(lambda t: topi.strided_slice(t, (1,), (3,), axes=(-1,)), X)
    np.testing.assert_array_equal(out, X[..., 1:3])
    out = evaluate(lambda t: topi.strided_slice(t, (1, 2), (-1, 2), slice_mode="size"), X)
    np.testing.assert_array_equal(out, X[1:, 2:4])


@given(parts=slices())
@settings(max_examples=10, deadline=None)
def test_strided_set_equals_numpy(parts):
    expected = X.copy()
    region = expected[tuple(parts)].shape
    if 0 in region:
        return
    value = random_array(RNG, *region)
    expected[tuple(parts)] = value
    begin, end, strides = zip(*((p.start, p.stop, p.step) for p in parts))
    out = evaluate(lambda t, v: topi.strided_set(t, v, begin, end, strides), X, value)
    np.testing.assert_array_equal(out, expected)


@INDEX_TYPES
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("mode", ["clip", "wrap", "fast"])
def test_take_equals_numpy(axis, mode, index_type):
    size = X.size if axis is None else X.shape[axis]
    low, high = (0, size) if mode == "fast" else (-7, size + 7)
    indices = RNG.integers(low, high, (2, 3)).astype(index_type)
    out = evaluate(lambda t, i: topi.take(t, i, axis, mode=mode), X, indices)
    expected = np.take(X, indices, axis, mode="wrap" if mode == "fast" else mode)
    np.testing.assert_array_equal(out, expected)


def test_take_shares_batch_dimensions():
    indices = RNG.integers(0, 4, (3, 2)).astype("int32")
    out = evaluate(lambda t, i: topi.take(t, i, 2, batch_dims=1), X, indices)
    expected = np.stack([x[:, i] for x, i in zip(X, indices)])
    np.testing.assert_array_equal(out, expected)


@INDEX_TYPES
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_equals_torch(axis, index_type):
    shape = [2, 4, 3]
    indices = RNG.integers(0, X.shape[axis], shape).astype(index_type)
    out = evaluate(lambda t, i: topi.gather(t, axis, i), X, indices)
    expected = torch.gather(torch.from_numpy(X), axis, torch.from_numpy(indices).long())
    np.testing.assert_array_equal(out, expected.numpy())
    negative = (indices - X.shape[axis]).astype(index_type)
    np.testing.assert_array_equal(evaluate(lambda t, i: topi.gather(t, axis, i), X, negative), out)


@INDEX_TYPES
def test_gather_nd_reads_slices_at_index_tuples(index_type):
    indices = np.stack([RNG.integers(0, n, (2, 6)) for n in X.shape[:2]]).astype(index_type)
    out = evaluate(topi.gather_nd, X, indices)
    np.testing.assert_array_equal(out, X[indices[0], indices[1]])
    batched = RNG.integers(0, 5, (1, 3, 2)).astype(index_type)
    out = evaluate(lambda t, i: topi.gather_nd(t, i, 1), X, batched)
    np.testing.assert_array_equal(out, np.stack([x[i] for x, i in zip(X, batched[0])]))


def test_adv_index_broadcasts_its_indices():
    i, j = np.array([[0], [2]], "int64"), np.array([1, -1, 3], "int64")
    out = evaluate(lambda t, *k: topi.adv_index(t, k), X, i, j)
    np.testing.assert_array_equal(out, X[i, j])


@pytest.mark.parametrize("condition_type", ["bool", "int32"])
def test_where_broadcasts_all_three(condition_type):
    condition = (RNG.random((3, 1)) < 0.5).astype(condition_type)
    x, y = random_array(RNG, 4), random_array(RNG, 3, 4)
    np.testing.assert_array_equal(evaluate(topi.where, condition, x, y), np.where(condition, x, y))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot_equals_torch(axis):
    indices = RNG.integers(-1, 5, (2, 3)).astype("int32")
    out = evaluate(lambda i: topi.one_hot(i, 2.0, -1.0, 4, axis), indices)
    expected = np.where(np.arange(4) == indices[..., None], 2.0, -1.0)
    np.testing.assert_array_equal(out, np.moveaxis(expected, -1, axis))


@pytest.mark.parametrize("axis", [0, 1])
def test_sequence_mask_replaces_what_lies_behind_the_length(axis):
    lengths = np.array([0, 2, 3] if axis == 1 else [0, 1, 2, 3, 3], "int32")
    out = evaluate(lambda t, n: topi.sequence_mask(t, n, 9.0, axis), X, lengths)
    expected = np.moveaxis(X.copy(), axis, 0)
    for k, length in enumerate(lengths):
        expected[length:, k] = 9.0
    np.testing.assert_array_equal(out, np.moveaxis(expected, 0, axis))


def test_invert_permutation_undoes_it():
    order = RNG.permutation(9).astype("int32")
    np.testing.assert_array_equal(evaluate(topi.invert_permutation, order), np.argsort(order))


def test_picking_takes_a_symbolic_shape():
    indices = np.array([[4, 0], [1, 1]], "int32")
    for fn in (lambda t, i: topi.take(t, i, 1), lambda t, i: topi.take(t, i)):
        np.testing.assert_array_equal(
            evaluate(fn, X, indices, symbolic=(3, 5)), evaluate(fn, X, indices)
        )


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: topi.strided_slice(x, (0,), (2,), (0,)), "strides other than 0"),
        (lambda x: topi.strided_slice(x, (0,), (2,), slice_mode="length"), "'end' or 'size'"),
        (lambda x: topi.take(x, x, mode="nearest"), "mode is one of"),
        (lambda x: topi.take(x, x, 0, 1), "batch_dims 1 must be at most axis 0"),
        (lambda x: topi.gather(x, 0, topi.stack([x, x])), "indices have 3 dimensions, data 2"),
        (lambda x: topi.gather_nd(x, x), "tuples of 3 numbers do not fit 2 dimensions"),
        (lambda x: topi.adv_index(x, []), "needs 1 to 2 indices"),
        (lambda x: topi.sequence_mask(x, x, axis=2), "axis is 0 or 1"),
        (lambda x: topi.strided_set(x, x, (0,), (2,)), "do not broadcast"),
    ],
)
def test_picking_refuses_arguments_that_do_not_fit(fn, message):
    x = te.placeholder((3, 5), "int32", name="x")
    with pytest.raises(ValueError, match=message):
        fn(x)
