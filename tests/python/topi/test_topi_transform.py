"""Orders, sizes, joints and pieces against NumPy and PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from testing_topi import evaluate, random_array
from tvm import te, topi

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
RNG = np.random.default_rng(0)
X = random_array(RNG, 3, 5, 4)
DTYPES = st.sampled_from(["float32", "float16", "int32", "int64", "bool"])


def same(fn, reference, *arrays, symbolic=()):
    """Check that the operator gives exactly the reference's array."""
    out = evaluate(fn, *arrays, symbolic=symbolic)
    expected = np.asarray(reference(*arrays))
    assert out.shape == expected.shape
    np.testing.assert_array_equal(out, expected)


@given(shape=SHAPES, cut=st.integers(0, 3), dtype=DTYPES)
@settings(max_examples=7, deadline=None)
def test_reshape_keeps_row_major_order(shape, cut, dtype):
    x = random_array(RNG, *shape, dtype=dtype)
    target = (int(np.prod(shape[: min(cut, len(shape))])), -1)
    same(lambda t: topi.reshape(t, target), lambda t: t.reshape(target), x)


@given(shape=SHAPES, data=st.data())
@settings(max_examples=7, deadline=None)
def test_transpose_flip_and_expand_dims_equal_numpy(shape, data):
    x = random_array(RNG, *shape)
    order = data.draw(st.permutations(range(len(shape))))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    same(lambda t: topi.transpose(t, order), lambda t: t.transpose(order), x)
    same(lambda t: topi.flip(t, axis), lambda t: np.flip(t, axis), x)
    same(lambda t: topi.expand_dims(t, axis), lambda t: np.expand_dims(t, axis), x)


@given(shape=SHAPES, data=st.data())
@settings(max_examples=7, deadline=None)
def test_repeat_and_tile_equal_numpy(shape, data):
    x = random_array(RNG, *shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = data.draw(st.integers(1, 3))
    reps = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    same(lambda t: topi.repeat(t, count, axis), lambda t: np.repeat(t, count, axis), x)
    same(lambda t: topi.tile(t, reps), lambda t: np.tile(t, reps), x)


def test_transpose_reverses_the_order_by_default():
    same(topi.transpose, np.transpose, X)
    same(topi.flatten, lambda x: x.reshape(3, -1), X)


def test_squeeze_drops_dimensions_of_size_one():
    x = random_array(RNG, 1, 3, 1, 2)
    same(topi.squeeze, np.squeeze, x)
    same(lambda t: topi.squeeze(t, 0), lambda t: np.squeeze(t, 0), x)
    same(lambda t: topi.squeeze(t, (0, -2)), lambda t: np.squeeze(t, (0, 2)), x)


@given(shape=SHAPES, data=st.data())
@settings(max_examples=7, deadline=None)
def test_concatenate_and_stack_equal_numpy(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    others = [list(shape), list(shape), list(shape)]
    for other in others:
        other[axis] = data.draw(st.integers(1, 3))
    arrays = [random_array(RNG, *other) for other in others]
    same(lambda *t: topi.concatenate(t, axis), lambda *t: np.concatenate(t, axis), *arrays)
    alike = [arrays[0], arrays[0] + 1]
    same(lambda *t: topi.stack(t, axis), lambda *t: np.stack(t, axis), *alike)


@pytest.mark.parametrize("axis", [0, 1])
def test_many_tensors_are_joined(axis):
    """As a chain of choices an element would lie deeper than Python recurses."""
    arrays = [random_array(RNG, 2, 1 + k % 2)[:, :: 1 if axis else -1] for k in range(300)]
    if axis == 0:
        arrays = [a[:, :1] for a in arrays]
    same(lambda *t: topi.concatenate(t, axis), lambda *t: np.concatenate(t, axis), *arrays)


@pytest.mark.parametrize(
    ("how", "axis"), [(1, 1), (5, 1), (2, 2), ((1, 4), 1), ((2, 2), 0), ((), 1)]
)
def test_split_equals_numpy(how, axis):
    pieces = evaluate(lambda t: topi.split(t, how, axis), X)
    expected = np.split(X, how if isinstance(how, int) else list(how), axis)
    assert len(pieces) == len(expected)
    for ours, theirs in zip(pieces, expected):
        np.testing.assert_array_equal(ours, theirs)


def test_reverse_sequence_reverses_what_each_batch_says():
    lengths = np.array([0, 2, 4, 1, 3], "int32")
    out = evaluate(lambda t, n: topi.reverse_sequence(t, n, 2, 1), X, lengths)
    for k, length in enumerate(lengths):
        np.testing.assert_array_equal(out[:, k, :length], X[:, k, :length][..., ::-1])
        np.testing.assert_array_equal(out[:, k, length:], X[:, k, length:])


def test_sliding_window_equals_torch():
    def reference(x):
        return torch.from_numpy(x).unfold(1, 2, 2).unfold(2, 3, 1).numpy()

    same(lambda t: topi.sliding_window(t, 1, (2, 3), (2, 1)), reference, X)


@pytest.mark.parametrize(
    "fn",
    [
        lambda t: topi.reshape(t, (-1, 4)),
        lambda t: topi.transpose(t, (2, 0, 1)),
        lambda t: topi.concatenate([t, t], 1),
        lambda t: topi.split(t, (1, 2), 1)[1],
        lambda t: topi.tile(t, (2, 1, 2)),
        lambda t: topi.flip(t, 1),
    ],
)
def test_transform_takes_a_symbolic_shape(fn):
    np.testing.assert_array_equal(evaluate(fn, X, symbolic=(3, 5)), evaluate(fn, X))


def test_layout_transform_orders_dimensions():
    x = random_array(RNG, 2, 3, 4, 5)
    same(lambda t: topi.layout_transform(t, "NCHW", "NHWC"), lambda t: t.transpose(0, 2, 3, 1), x)


@pytest.mark.parametrize("channels", [8, 6])
def test_layout_transform_blocks_channels_and_back(channels):
    x = random_array(RNG, 2, channels, 3, 2)
    blocked = evaluate(lambda t: topi.layout_transform(t, "NCHW", "NCHW4c"), x)
    filled = np.zeros((2, 8, 3, 2), "float32")
    filled[:, :channels] = x
    expected = filled.reshape(2, 2, 4, 3, 2).transpose(0, 1, 3, 4, 2)
    np.testing.assert_array_equal(blocked, expected)
    same(
        lambda t: topi.layout_transform(t, "NCHW4c", "NHWC"),
        lambda _: filled.transpose(0, 2, 3, 1),
        expected,
    )
    same(
        lambda t: topi.layout_transform(t, "NCHW4c", "NCHW2c"),
        lambda _: filled.reshape(2, 4, 2, 3, 2).transpose(0, 1, 3, 4, 2),
        expected,
    )


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: topi.reshape(x, (4, 4)), r"15 elements and does not fill \(4, 4\)"),
        (lambda x: topi.reshape(x, (-1, -1)), "at most one -1"),
        (lambda x: topi.transpose(x, (0, 0)), "do not permute 2 dimensions"),
        (lambda x: topi.squeeze(x, 0), "has size 3, not 1"),
        (lambda x: topi.concatenate([x, topi.transpose(x)], 0), "differ outside dimension 0"),
        (lambda x: topi.concatenate([]), "at least one tensor"),
        (lambda x: topi.split(x, 2), "2 equal pieces do not divide 3"),
        (lambda x: topi.split(x, (2, 1)), "do not rise within 3"),
        (lambda x: topi.sliding_window(x, 0, (4, 1), (1, 1)), "does not fit"),
        (lambda x: topi.layout_transform(x, "NC", "NH"), "their dimensions differ"),
        (lambda x: topi.layout_transform(x, "NC", "NCc"), "lower-case letter needs"),
        (lambda x: topi.layout_transform(x, "NC", "NCC"), "each dimension once"),
    ],
)
def test_transform_refuses_arguments_that_do_not_fit(fn, message):
    with pytest.raises(ValueError, match=message):
        fn(te.placeholder((3, 5), name="x"))
