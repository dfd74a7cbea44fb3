"""Winograd's convolution, borders, gaps and blocks of space against NumPy and PyTorch."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from testing_topi import evaluate, random_array
from tvm import te, topi

RNG = np.random.default_rng(0)
X = random_array(RNG, 2, 8, 6, 4)


@pytest.mark.parametrize(("tile", "kernel"), [(2, 3), (4, 3), (6, 3), (2, 5), (1, 3), (3, 1)])
def test_cook_toom_matrices_filter_exactly(tile, kernel):
    a, b, g = topi.nn.winograd_util.cook_toom_matrices(tile, kernel)
    n = tile + kernel - 1
    data = [Fraction(7 * k * k - 3 * k + 1, k + 2) for k in range(n)]
    taps = [Fraction(k - 5, 3 * k + 1) for k in range(kernel)]
    transformed = [
        sum(row[k] * taps[k] for k in range(kernel)) * sum(b[j][i] * data[j] for j in range(n))
        for i, row in enumerate(g)
    ]
    for j in range(tile):
        result = sum(a[i][j] * transformed[i] for i in range(n))
        assert result == sum(data[j + k] * taps[k] for k in range(kernel))


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@given(height=st.integers(3, 9), width=st.integers(3, 9), pad=st.integers(0, 1))
@settings(max_examples=6, deadline=None)
def test_winograd_convolution_equals_the_direct_one(layout, tile, height, width, pad):
    shape = (2, height, width, 3) if layout == "NHWC" else (2, 3, height, width)
    x = random_array(RNG, *shape)
    w = random_array(RNG, *((3, 3, 3, 5) if layout == "NHWC" else (5, 3, 3, 3)))
    fn = getattr(topi.nn, f"conv2d_winograd_{layout.lower()}")
    direct = getattr(topi.nn, f"conv2d_{layout.lower()}")
    expected = evaluate(lambda a, b: direct(a, b, 1, pad), x, w)
    out = evaluate(lambda a, b: fn(a, b, 1, pad, tile_size=tile), x, w)
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_winograd_weights_may_be_transformed_before(layout):
    nhwc = layout == "NHWC"
    x = random_array(RNG, *((1, 7, 6, 3) if nhwc else (1, 3, 7, 6)))
    w = random_array(RNG, *((3, 3, 3, 5) if nhwc else (5, 3, 3, 3)))
    name = f"conv2d_winograd_{layout.lower()}"
    pack = evaluate(
        lambda b: topi.nn.conv2d_winograd_weight_transform(b, 2, "HWIO" if nhwc else "OIHW"), w
    )
    assert pack.shape == (4, 4, 5, 3)
    fn = getattr(topi.nn, f"{name}_without_weight_transform")
    out = evaluate(lambda a, b: fn(a, b, 1, 1, tile_size=2), x, pack)
    expected = evaluate(lambda a, b: getattr(topi.nn, name)(a, b, 1, 1, tile_size=2), x, w)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_winograd_takes_symbolic_batch_and_size():
    x, w = random_array(RNG, 2, 7, 5, 3), random_array(RNG, 3, 3, 3, 4)
    expected = evaluate(lambda a, b: topi.nn.conv2d_nhwc(a, b, 1, 1), x, w)
    out = evaluate(lambda a, b: topi.nn.conv2d_winograd_nhwc(a, b, 1, 1), x, w, symbolic=(2, 7, 5))
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)


BORDERS = ((1, 0, 2, 0), (0, 3, 1, 0))
NUMPY_MODE = {"REFLECT": "reflect", "SYMMETRIC": "symmetric", "EDGE": "edge", "WRAP": "wrap"}


@pytest.mark.parametrize("mode", NUMPY_MODE)
def test_mirror_pad_equals_numpy(mode):
    expected = np.pad(X, list(zip(*BORDERS)), NUMPY_MODE[mode])
    for symbolic in ((), (2, 8, 6)):
        out = evaluate(lambda x: topi.nn.mirror_pad(x, *BORDERS, mode), X, symbolic=symbolic)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16"])
def test_pad_surrounds_with_a_value(dtype):
    x = random_array(RNG, 2, 3, 2, 2, dtype=dtype)
    out = evaluate(lambda t: topi.nn.pad(t, *BORDERS, 4), x)
    np.testing.assert_array_equal(out, np.pad(x, list(zip(*BORDERS)), constant_values=4))


@given(strides=st.tuples(*[st.integers(1, 3)] * 4))
@settings(max_examples=6, deadline=None)
def test_dilate_spreads_elements(strides):
    expected = np.full([(n - 1) * s + 1 for n, s in zip(X.shape, strides)], 7, "float32")
    expected[tuple(slice(None, None, s) for s in strides)] = X
    if max(strides) == 1:
        return
    np.testing.assert_array_equal(evaluate(lambda x: topi.nn.dilate(x, strides, 7.0), X), expected)


def test_depth_to_space_equals_torch_in_crd_order():
    out = evaluate(lambda x: topi.nn.depth_to_space(x, 2, mode="CRD"), X)
    np.testing.assert_array_equal(out, F.pixel_shuffle(torch.from_numpy(X), 2).numpy())


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_space_to_depth_puts_the_cells_of_a_block_in_order(layout):
    x = X if layout == "NCHW" else np.ascontiguousarray(X.transpose(0, 2, 3, 1))
    out = evaluate(lambda t: topi.nn.space_to_depth(t, 2, layout), x)
    expected = np.concatenate([X[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)], 1)
    ours = out if layout == "NCHW" else out.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(ours, expected)
    back = evaluate(lambda t: topi.nn.depth_to_space(t, 2, layout), np.ascontiguousarray(out))
    np.testing.assert_array_equal(back, x)


def test_space_to_batch_and_back():
    before, after = (1, 0), (0, 2)
    out = evaluate(lambda x: topi.nn.space_to_batch_nd(x, (3, 2), before, after, 5.0), X)
    padded = np.pad(X, [(0, 0), (1, 0), (0, 2), (0, 0)], constant_values=5.0)
    expected = np.concatenate([padded[:, i::3, j::2] for i in range(3) for j in range(2)])
    np.testing.assert_array_equal(out, expected)
    back = evaluate(lambda x: topi.nn.batch_to_space_nd(x, (3, 2), before, after), out)
    np.testing.assert_array_equal(back, X)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: topi.nn.conv2d_winograd_nchw(x, topi.zeros((5, 8, 3, 3)), 2), "needs stride 1"),
        (lambda x: topi.nn.conv2d_winograd_nchw(x, topi.zeros((5, 7, 3, 3))), "has 7 input chan"),
        (lambda x: topi.nn.conv2d_winograd_weight_transform(x, 4), "must be square, got 6 x 4"),
        (lambda x: topi.nn.winograd_util.cook_toom_matrices(2, 3, [0, 1, 1]), "3 different points"),
        (lambda x: topi.nn.mirror_pad(x, (0, 0, 0, 4), mode="REFLECT"), "more than mode REFLECT"),
        (lambda x: topi.nn.mirror_pad(x, (0, 0, 0, 4), mode="MIRROR"), "mode is one of"),
        (lambda x: topi.nn.pad(x, (1, 1)), "needs 4 sizes before and after"),
        (lambda x: topi.nn.dilate(x, (1, 0, 1, 1)), "4 strides of at least 1"),
        (lambda x: topi.nn.space_to_depth(x, 4), "4 does not divide 6"),
        (lambda x: topi.nn.depth_to_space(x, 3), "9 does not divide 8"),
        (lambda x: topi.nn.depth_to_space(x, 2, mode="RCD"), "'DCR' or 'CRD'"),
        (lambda x: topi.nn.space_to_depth(x, 2, "CHW"), "layout has N, C, H and W"),
    ],
)
def test_spatial_operator_refuses_arguments_that_do_not_fit(fn, message):
    with pytest.raises(ValueError, match=message):
        fn(te.placeholder((2, 8, 6, 4), name="x"))


def test_flatten_keeps_the_batch():
    A = te.placeholder((2, 3, 4))
    for flatten in (topi.nn.flatten, topi.nn.batch_flatten):
        assert [int(n) for n in flatten(A).shape] == [2, 12]
