"""Fourier transforms, against NumPy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tvm
from tvm import te, topi


def run(inputs, outputs, *arrays):
    func = tvm.build(te.create_schedule([o.op for o in outputs]), [*inputs, *outputs], "llvm")
    results = [tvm.nd.array(np.zeros([int(n) for n in o.shape], o.dtype)) for o in outputs]
    func(*map(tvm.nd.array, arrays), *results)
    return [result.numpy() for result in results]


@pytest.mark.parametrize("shape", [(1,), (12,), (3, 7), (2, 3, 16)])
@pytest.mark.parametrize("inverse", [False, True])
def test_dft_is_numpys(shape, inverse):
    rng = np.random.default_rng(0)
    re, im = (rng.standard_normal(shape).astype("float32") for _ in range(2))
    inputs = [te.placeholder(shape, name=name) for name in ("re", "im")]
    found = run(inputs, topi.dft(*inputs, inverse), re, im)
    want = (np.fft.ifft if inverse else np.fft.fft)(re + 1j * im)
    np.testing.assert_allclose(found[0], want.real, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[1], want.imag, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize(
    ("n_fft", "hop", "normalized", "onesided"),
    [(8, 4, False, True), (8, 3, True, False), (5, 2, False, False)],
)
def test_stft_is_pytorchs(batch, n_fft, hop, normalized, onesided):
    rng = np.random.default_rng(1)
    signal = rng.standard_normal((*batch, 40)).astype("float32")
    weights = np.hanning(n_fft).astype("float32")
    data, window = te.placeholder(signal.shape, name="data"), te.placeholder((n_fft,), name="w")
    out = topi.stft(data, n_fft, hop, n_fft, window, normalized, onesided)
    (found,) = run([data, window], [out], signal, weights)
    want = torch.stft(
        torch.from_numpy(signal),
        n_fft,
        hop,
        n_fft,
        torch.from_numpy(weights),
        center=False,
        normalized=normalized,
        onesided=onesided,
        return_complex=True,
    )
    np.testing.assert_allclose(found, torch.view_as_real(want).numpy(), rtol=1e-4, atol=1e-4)


def test_signals_and_windows_fit():
    data, window = te.placeholder((40,)), te.placeholder((8,))
    with pytest.raises(ValueError, match="win_length=6 elements lies in n_fft=8"):
        topi.stft(data, 8, 4, 6, window, False, True)
    with pytest.raises(ValueError, match=r"the result has the shape \[5, 9, 2\]"):
        topi.stft(data, 8, 4, 8, window, False, True, output_shape=[5, 8, 2])
    with pytest.raises(ValueError, match="hop_length is at least 1"):
        topi.stft(data, 8, 0, 8, window, False, True)
    with pytest.raises(ValueError, match="real and imaginary parts have one shape"):
        topi.dft(te.placeholder((4,)), te.placeholder((5,)), False)


def test_limits_of_a_slice_may_come_with_the_program():
    a = te.placeholder((8, 6), name="a")
    begin, end, step = (te.placeholder((2,), "int64", name=name) for name in ("b", "e", "s"))
    out = topi.dynamic_strided_slice(a, begin, end, step, [3, 2])
    values = np.arange(48, dtype="float32").reshape(8, 6)
    limits = [np.array(v, "int64") for v in ([1, 2], [7, 6], [2, 3])]
    (found,) = run([a, begin, step], [out], values, limits[0], limits[2])
    np.testing.assert_array_equal(found, values[1:7:2, 2:6:3])


@pytest.mark.parametrize(
    ("own", "like", "axis"), [((3,), (2, 3), 0), ((4,), (2, 4, 5), (0, 2)), ((2, 3), (2, 3, 4), -1)]
)
def test_expand_like_repeats_along_new_axes(own, like, axis):
    a, other = te.placeholder(own, name="a"), te.placeholder(like, name="other")
    values = np.random.default_rng(2).random(own, "float32")
    (found,) = run([a], [topi.expand_like(a, other, axis)], values)
    np.testing.assert_array_equal(found, np.broadcast_to(np.expand_dims(values, axis), like))
    with pytest.raises(ValueError, match="without axes"):
        topi.expand_like(te.placeholder((9,)), other, axis)
