"""Products with one column and convolutions with one filter are sums over rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, topi

RNG = np.random.default_rng(0)
TARGET = tvm.target.Target("llvm -mcpu=znver4")


def run(fn, *arrays, target="llvm"):
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    output = fn(*inputs)
    function = tvm.build(topi.schedule_for(output, target), [*inputs, output], target)
    result = tvm.nd.empty(tuple(int(n) for n in output.shape), output.dtype)
    function(*map(tvm.nd.array, arrays), result)
    return result.numpy()


@settings(max_examples=10, deadline=None)
@given(rows=st.integers(1, 20), depth=st.integers(1, 300), relu=st.booleans())
def test_one_column(rows, depth, relu):
    left = RNG.standard_normal((rows, depth)).astype("float32")
    right = RNG.standard_normal((depth, 1)).astype("float32")

    def product(a, b):
        result = topi.nn.matmul(a, b)
        return topi.nn.relu(result) if relu else result

    expected = left.astype("float64") @ right
    got = run(product, left, right)
    np.testing.assert_allclose(got, np.maximum(expected, 0) if relu else expected, 1e-4, 1e-4)


@settings(max_examples=10, deadline=None)
@given(
    channels=st.sampled_from([3, 8, 12, 16, 24, 32, 64, 80]),
    window=st.sampled_from([1, 2, 3, 5]),
    stride=st.integers(1, 2),
    size=st.integers(5, 12),
)
def test_one_filter(channels, window, stride, size):
    data = RNG.standard_normal((2, size, size + 1, channels)).astype("float32")
    weight = RNG.standard_normal((window, window, channels, 1)).astype("float32")
    padding = window // 2
    got = run(lambda x, w: topi.nn.conv2d_nhwc(x, w, stride, padding, 1), data, weight)
    expected = torch.nn.functional.conv2d(
        torch.from_numpy(data).permute(0, 3, 1, 2),
        torch.from_numpy(weight).permute(3, 2, 0, 1),
        stride=stride,
        padding=padding,
    )
    np.testing.assert_allclose(got, expected.permute(0, 2, 3, 1), 1e-4, 1e-4)


@pytest.mark.parametrize("kind", ["product", "convolution"])
def test_partial_sums_are_vectors(kind):
    if kind == "product":
        inputs = [te.placeholder((64, 96)), te.placeholder((96, 1))]
        output = topi.nn.matmul(*inputs)
    else:
        inputs = [te.placeholder((1, 14, 14, 32)), te.placeholder((3, 3, 32, 1))]
        output = topi.nn.conv2d_nhwc(*inputs, 1, 1, 1)
    with TARGET:
        text = tvm.lower(topi.schedule_for(output, TARGET), [*inputs, output]).script()
    assert "_lane in" not in text
    assert "T.Ramp(0, 1, 16)] = " in text
