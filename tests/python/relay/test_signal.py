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
