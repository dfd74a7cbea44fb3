"""Fourier transforms, fixed-point products, places in sparse tensors."""

import numpy as np
import pytest
import torch

import tvm
from tvm import relay


def run(expr, *inputs, kind="vm"):
    params = [relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(inputs)]
    mod = tvm.IRModule.from_expr(relay.Function(params, expr(*params)))
    out = relay.create_executor(kind, mod=mod, target="llvm").evaluate()(*inputs)
    return out.numpy() if hasattr(out, "numpy") else [part.numpy() for part in out]


@pytest.mark.parametrize("inverse", (True, False))
def test_transforms(inverse):
    rng = np.random.default_rng(0)
    re, im = rng.random((3, 10), "float32"), rng.random((3, 10), "float32")
    expected = (np.fft.ifft if inverse else np.fft.fft)(re + 1j * im)
    real, imaginary = run(lambda a, b: relay.op.dft(a, b, inverse).astuple(), re, im)
    np.testing.assert_allclose(real, expected.real, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(imaginary, expected.imag, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", (True, False))
def test_transforms_of_parts(window):
    rng = np.random.default_rng(0)
    x, w = rng.random((2, 40), "float32"), rng.random(16, "float32")
    given = [x, w] if window else [x]
    found = run(lambda x, w=None: relay.stft(x, 16, 5, 16, w, True, True), *given)
    expected = torch.stft(
        torch.tensor(x), 16, 5, 16, torch.tensor(w) if window else torch.ones(16), center=False,
        normalized=True, onesided=True, return_complex=True,
    )  # fmt: skip
    np.testing.assert_allclose(found, torch.view_as_real(expected).numpy(), rtol=1e-3, atol=1e-4)


def test_fixed_point_products_of_axes():
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**20), 2**20, (2, 3, 4)).astype("int32")
    factor = np.array([2**30, 2**29, 2**30 + 7], "int32")
    left, right = np.array([0, 2, 1], "int32"), np.array([1, 0, 3], "int32")
    found = run(
        lambda x, m, a, b: relay.fixed_point_multiply_per_axis(x, m, a, b, True, True, [1]),
        x, factor, left, right,
    )  # fmt: skip
    scale = factor.astype(float) * 2.0 ** (left - right - 31.0)
    assert np.abs(found - x * scale[None, :, None]).max() <= 1


def test_places_of_another_shape():
    places = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]], "int64")
    before, after = np.array([2, 3, 6], "int64"), np.array([9, -1], "int64")
    moved, shape = run(
        lambda a, b, c: relay.sparse_reshape(a, b, c).astuple(), places, before, after
    )
    assert shape.tolist() == [9, 4]
    dense = np.zeros((2, 3, 6))
    dense[tuple(places.T)] = np.arange(1, 6)
    np.testing.assert_array_equal(dense.reshape(9, 4)[tuple(moved.T)], np.arange(1, 6))
    with pytest.raises(ValueError, match="has other elements than"):
        run(
            lambda a, b, c: relay.sparse_reshape(a, b, c).astuple(),
            places, before, np.array([5, 7], "int64"),
        )  # fmt: skip


def test_rows_without_elements():
    places = np.array([[0, 1], [0, 3], [2, 0], [3, 1]], "int64")
    values, shape = np.array([1, 2, 3, 4], "int64"), np.array([5, 6], "int64")
    all_places, all_values, empty = run(
        lambda a, b, c: relay.sparse_fill_empty_rows(a, b, c, relay.const(9, "int64")).astuple(),
        places, values, shape,
    )  # fmt: skip
    assert all_places.tolist() == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]
    assert all_values.tolist() == [1, 2, 9, 3, 4, 9]
    assert empty.tolist() == [False, True, False, False, True]


def test_lengths_beyond_the_axis_reverse_all_of_it():
    x = np.arange(16, dtype="int32").reshape(4, 4)
    found = run(
        lambda a, n: relay.reverse_sequence(a, n, 1, 0), x, np.array([-1, 0, 3, 9], "int32")
    )
    expected = x.copy()
    for row, length in ((2, 3), (3, 4)):
        expected[row, :length] = x[row, :length][::-1]
    np.testing.assert_array_equal(found, expected)


def test_a_sparse_tensor_has_a_default_that_is_computed():
    at, values = np.array([[0, 1], [2, 0]], "int64"), np.array([3, 4], "float32")
    found = run(
        lambda i, v, d: relay.sparse_to_dense(i, (3, 2), v, d), at, values, np.float32(7.0)[...]
    )
    np.testing.assert_array_equal(found, [[7, 3], [7, 7], [4, 7]])


def test_transforms_of_parts_of_signals_of_any_length():
    data = relay.var("data", relay.TensorType([relay.Any(), relay.Any()], "float32"))
    window = relay.var("window", relay.TensorType([relay.Any()], "float32"))
    func = relay.Function([data, window], relay.stft(data, 16, 5, 16, window))
    rng = np.random.default_rng(0)
    x, w = rng.random((2, 40), "float32"), rng.random(16, "float32")
    found = relay.create_executor("vm", target="llvm").evaluate(func)(x, w).numpy()
    expected = torch.stft(
        torch.tensor(x), 16, 5, 16, torch.tensor(w), center=False, onesided=True,
        return_complex=True,
    )  # fmt: skip
    np.testing.assert_allclose(found, torch.view_as_real(expected).numpy(), rtol=1e-3, atol=1e-4)


def test_places_move_whatever_the_first_extent_is():
    places = np.array([[0, 1], [7, 2]], "int32")
    moved, shape = run(
        lambda a, b, c: relay.sparse_reshape(a, b, c).astuple(),
        places, np.array([4, 3], "int32"), np.array([2, -1], "int32"),
    )  # fmt: skip
    assert shape.tolist() == [2, 6] and moved.tolist() == [[0, 1], [3, 5]]


def test_sequences_have_a_length_each():
    x = relay.var("x", shape=(4, 4))
    with pytest.raises(ValueError, match=r"one length for each of the 4 .* got lengths of shape"):
        relay.transform.InferType()(
            tvm.IRModule.from_expr(
                relay.reverse_sequence(x, relay.const(np.ones(5, "int32")), 1, 0)
            )
        )
