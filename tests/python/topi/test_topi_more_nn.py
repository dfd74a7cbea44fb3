"""Sparse products, packed signs, correlation, gradients and windows against NumPy and PyTorch."""

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from testing_topi import evaluate, random_array
from tvm import te, topi

RNG = np.random.default_rng(0)


def sparse_matrix(rows, columns, block):
    dense = random_array(RNG, rows * block[0], columns * block[1])
    blocks = dense.reshape(rows, block[0], columns, block[1])
    blocks *= (RNG.random((rows, 1, columns, 1)) < 0.4).astype("float32")
    if block == (1, 1):
        return dense, scipy.sparse.csr_matrix(dense)
    return dense, scipy.sparse.bsr_matrix(dense, blocksize=block)


@pytest.mark.parametrize("lhs", [False, True])
@pytest.mark.parametrize("block", [(1, 1), (2, 3)])
@given(rows=st.integers(1, 6), columns=st.integers(1, 6), m=st.integers(1, 5))
@settings(max_examples=5, deadline=None)
def test_sparse_products_equal_dense_ones(block, lhs, rows, columns, m):
    dense, matrix = sparse_matrix(rows, columns, block)
    if not matrix.nnz:
        return
    other = random_array(RNG, m, dense.shape[1])
    parts = [matrix.data, matrix.indices.astype("int32"), matrix.indptr.astype("int32")]
    got = evaluate(
        lambda x, data, indices, indptr: topi.nn.sparse_dense(x, data, indices, indptr, lhs),
        other,
        *parts,
    )
    expected = dense @ other.T if lhs else other @ dense.T
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_what_is_no_sparse_matrix_is_refused():
    x = te.placeholder((2, 4), name="x")
    with pytest.raises(ValueError, match="sparse matrix is data of one dimension .CSR. or three"):
        topi.nn.sparse_dense(x, x, te.placeholder((3,), "int32"), te.placeholder((3,), "int32"))


@pytest.mark.parametrize("words", [1, 3])
def test_products_of_signs_count_bits(words):
    x, w = random_array(RNG, 4, 32 * words), random_array(RNG, 5, 32 * words)
    got = evaluate(
        lambda a, b: topi.nn.binary_dense(topi.nn.binarize_pack(a), topi.nn.binarize_pack(b)), x, w
    )
    np.testing.assert_array_equal(got, np.where(x >= 0, 1, -1) @ np.where(w >= 0, 1, -1).T)
    with pytest.raises(ValueError, match="32 does not divide 33"):
        topi.nn.binarize_pack(te.placeholder((2, 33)))
    with pytest.raises(ValueError, match="are uint32"):
        topi.nn.binary_dense(te.placeholder((2, 1)), te.placeholder((2, 1)))


def test_the_first_sign_is_the_highest_bit():
    x = -np.ones((1, 64), "float32")
    x[0, 0] = x[0, 63] = 1
    np.testing.assert_array_equal(evaluate(topi.nn.binarize_pack, x), [[1 << 31, 1]])


def correlation(a, b, kernel, reach, stride1, stride2, pad, multiply):
    a, b = (np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in (a, b))
    border, steps = reach + kernel // 2, range(-(reach // stride2), reach // stride2 + 1)
    rows = range(0, a.shape[2] - 2 * border, stride1)
    columns = range(0, a.shape[3] - 2 * border, stride1)
    out = np.zeros((a.shape[0], len(steps) ** 2, len(rows), len(columns)), "float32")
    for q, (dy, dx) in enumerate((y, x) for y in steps for x in steps):
        for i, y in enumerate(rows):
            for j, x in enumerate(columns):
                y1, x1 = y + reach, x + reach
                y2, x2 = y1 + dy * stride2, x1 + dx * stride2
                one = a[:, :, y1 : y1 + kernel, x1 : x1 + kernel]
                two = b[:, :, y2 : y2 + kernel, x2 : x2 + kernel]
                out[:, q, i, j] = (one * two if multiply else abs(one - two)).mean((1, 2, 3))
    return out


@pytest.mark.parametrize("case", [(1, 2, 1, 1, 2), (3, 2, 2, 2, 3), (3, 3, 1, 2, 4)])
@pytest.mark.parametrize("multiply", [True, False])
def test_correlation_compares_patches(case, multiply):
    a, b = random_array(RNG, 2, 3, 8, 9), random_array(RNG, 2, 3, 8, 9)
    got = evaluate(lambda x, y: topi.nn.correlation_nchw(x, y, *case, multiply), a, b)
    np.testing.assert_allclose(got, correlation(a, b, *case, multiply), rtol=1e-4, atol=1e-5)


def test_patches_that_do_not_fit_are_refused():
    a = te.placeholder((1, 1, 4, 4), name="a")
    with pytest.raises(ValueError, match="kernel_size is odd"):
        topi.nn.correlation_nchw(a, a, 2, 1, 1, 1, 0)
    with pytest.raises(ValueError, match="do not fit into 4 x 4"):
        topi.nn.correlation_nchw(a, a, 3, 4, 1, 1, 0)


@given(
    size=st.tuples(st.integers(4, 8), st.integers(4, 8)),
    stride=st.integers(1, 3),
    pad=st.integers(0, 2),
    multiplier=st.integers(1, 2),
)
@settings(max_examples=6, deadline=None)
def test_depthwise_gradients_equal_those_of_autograd(size, stride, pad, multiplier):
    x = torch.from_numpy(random_array(RNG, 2, 3, *size)).requires_grad_()
    w = torch.from_numpy(random_array(RNG, 3 * multiplier, 1, 3, 2)).requires_grad_()
    y = F.conv2d(x, w, stride=stride, padding=pad, groups=3)
    grad = torch.from_numpy(random_array(RNG, *y.shape))
    dx, dw = torch.autograd.grad(y, [x, w], grad)

    def nhwc(tensor):
        return np.ascontiguousarray(tensor.detach().numpy().transpose(0, 2, 3, 1))

    def hwcm(weight):
        array = weight.detach().numpy().reshape(3, multiplier, 3, 2)
        return np.ascontiguousarray(array.transpose(2, 3, 0, 1))

    oshape, ishape, fshape = nhwc(grad).shape, nhwc(x).shape, hwcm(w).shape
    got = evaluate(
        lambda f, g: topi.nn.depthwise_conv2d_backward_input_nhwc(
            f, g, oshape, ishape, stride, pad
        ),
        hwcm(w),
        nhwc(grad),
    )
    np.testing.assert_allclose(got, nhwc(dx), rtol=1e-4, atol=1e-5)
    got = evaluate(
        lambda d, g: topi.nn.depthwise_conv2d_backward_weight_nhwc(
            d, g, oshape, fshape, [stride, stride], [pad, pad]
        ),
        nhwc(x),
        nhwc(grad),
    )
    np.testing.assert_allclose(got, hwcm(dw), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("added", [1, 3, 5, 7])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_window_moves_along(added, axis):
    held = random_array(RNG, 5, 5, 5)
    shape = [5, 5, 5]
    shape[axis] = added
    new = random_array(RNG, *shape)
    got = evaluate(lambda d, b: topi.nn.fifo_buffer(d, b, axis), new, held)
    whole = np.concatenate([held, new], axis=axis)
    np.testing.assert_array_equal(got, whole.take(range(added, added + 5), axis=axis))
    with pytest.raises(ValueError, match="differ elsewhere than along axis 0"):
        topi.nn.fifo_buffer(te.placeholder((2, 4)), te.placeholder((3, 5)), 0)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(("stride", "padding", "step"), [(1, 0, 1), (2, 1, 1), ((1, 2), 2, (2, 1))])
def test_dilation_takes_the_largest_sum(layout, stride, padding, step):
    x, w = random_array(RNG, 2, 3, 7, 8), random_array(RNG, 3, 3, 2)
    (sy, sx), (dy, dx) = ((v, v) if isinstance(v, int) else v for v in (stride, step))
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    rows, columns = padded.shape[2] - 2 * dy, padded.shape[3] - dx
    sums = [
        padded[:, :, r * dy : r * dy + rows : sy, s * dx : s * dx + columns : sx]
        + w[None, :, r, s, None, None]
        for r in range(3)
        for s in range(2)
    ]
    expected = np.max(sums, axis=0)
    function = getattr(topi.image, f"dilation2d_{layout}")
    if layout == "nhwc":
        x, w, expected = (
            x.transpose(0, 2, 3, 1),
            w.transpose(1, 2, 0),
            expected.transpose(0, 2, 3, 1),
        )
    got = evaluate(
        lambda a, b: function(a, b, stride, padding, step),
        np.ascontiguousarray(x),
        np.ascontiguousarray(w),
    )
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="3 channels with a filter of 4"):
        topi.image.dilation2d_nchw(te.placeholder((1, 3, 5, 5)), te.placeholder((4, 2, 2)), 1, 0, 1)
