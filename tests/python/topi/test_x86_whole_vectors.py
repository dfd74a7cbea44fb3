"""Products that end inside of a vector are computed in whole ones where units are wide."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_topi import random_array
from tvm import te, topi
from tvm.target import Target

HERE = Target("llvm")
LANES = HERE.vector_width // 32
INTEL = Target(
    "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=2 -l1-cache-bytes=49152"
    " -l2-cache-bytes=2097152"
)
ZEN4 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4")


def packed_result(fn, *arrays):
    """Value of `fn` with its second input constant, on units as wide as these schedules are for,
    and the shape in which that input is stored."""
    inputs = [te.placeholder(a.shape, "float32", f"x{i}") for i, a in enumerate(arrays)]
    output = fn(*inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Target, "has_wide_units", True)
        known = topi.schedule_args_for([*inputs, output], {1}, HERE)
    stored = [*arrays]
    stored[1] = known.packings[1].pack(arrays[1])
    function = tvm.build(known.schedule, list(known.args), HERE, name="f")["f"]
    result = tvm.nd.array(np.full([int(n) for n in output.shape], 77, "float32"))
    function(*(tvm.nd.array(a) for a in stored), result)
    return result.numpy(), stored[1].shape


@settings(deadline=None, max_examples=7)
@given(
    rows=st.sampled_from([1, 5, 13, 49]),
    depth=st.integers(1, 40),
    vectors=st.sampled_from([1, 2, 3, 6, 25]),
    lead=st.sampled_from([(), (3,)]),
)
def test_dense_layers_match_numpy(rows, depth, vectors, lead):
    columns = vectors * LANES + LANES // 2
    rng = np.random.default_rng(rows + depth + columns)
    data, weight = random_array(rng, *lead, rows, depth), random_array(rng, columns, depth)
    bias = random_array(rng, columns)

    def fn(x, w, b):
        return topi.nn.relu(topi.add(topi.nn.dense(x, w), b))

    result, stored = packed_result(fn, data, weight, bias)
    assert stored[0] * stored[2] == columns + LANES // 2
    expected = np.maximum(data @ weight.T + bias, 0)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def convolution(groups, stride, window, dilation=1):
    def fn(x, w, r):
        pad = window // 2 * dilation
        conv = topi.nn.conv2d(x, w, stride, pad, dilation, "NHWC", "HWIO", groups=groups)
        return topi.nn.relu(topi.add(conv, r))

    return fn


def check_convolution(rng, shape, filters, groups, stride, window, dilation=1):
    """Compare with PyTorch; the shape in which the weights were stored."""
    data = random_array(rng, *shape)
    weight = random_array(rng, window, window, shape[3] // groups, filters)
    pad = window // 2 * dilation
    expected = F.conv2d(
        torch.tensor(data).permute(0, 3, 1, 2),
        torch.tensor(weight).permute(3, 2, 0, 1),
        None,
        stride,
        pad,
        dilation,
        groups,
    )
    expected = expected.permute(0, 2, 3, 1).numpy()
    residual = random_array(rng, *expected.shape)
    fn = convolution(groups, stride, window, dilation)
    result, stored = packed_result(fn, data, weight, residual)
    np.testing.assert_allclose(result, np.maximum(expected + residual, 0), rtol=1e-4, atol=3e-4)
    return stored


@settings(deadline=None, max_examples=7)
@given(
    batch=st.sampled_from([1, 2]),
    height=st.integers(3, 15),
    width=st.integers(3, 15),
    channels=st.sampled_from([3, 24, 40]),
    vectors=st.sampled_from([1, 2, 3, 6, 25]),
    window=st.sampled_from([1, 3]),
    stride=st.sampled_from([1, 2]),
    dilation=st.sampled_from([1, 2]),
)
def test_convolutions_match_torch(
    batch, height, width, channels, vectors, window, stride, dilation
):
    filters = vectors * LANES + LANES // 2
    rng = np.random.default_rng(height * width)
    height, width = height + 2 * dilation, width + 2 * dilation
    shape = (batch, height, width, channels)
    stored = check_convolution(rng, shape, filters, 1, stride, window, dilation)
    assert stored[0] * stored[-1] == filters + LANES // 2


@settings(deadline=None, max_examples=10)
@given(
    batch=st.sampled_from([1, 2]),
    height=st.integers(3, 18),
    width=st.integers(3, 30),
    groups=st.sampled_from([2, 3, 7]),
    per_group=st.sampled_from([3, 8, 24]),
    vectors=st.sampled_from([1, 2, 3]),
    window=st.sampled_from([1, 3, 5]),
    stride=st.sampled_from([1, 2]),
)
def test_grouped_convolutions_match_torch(
    batch, height, width, groups, per_group, vectors, window, stride
):
    filters = vectors * LANES + LANES // 2
    rng = np.random.default_rng(height * width)
    shape = (batch, height, width, groups * per_group)
    stored = check_convolution(rng, shape, groups * filters, groups, stride, window)
    assert stored == (groups, window, window, per_group, filters + LANES // 2)


def stored_columns(target, columns, groups=1):
    data = te.placeholder((1, 14, 14, 48 * groups), name="data")
    weight = te.placeholder((3, 3, 48, columns * groups), name="weight")
    conv = topi.nn.conv2d(data, weight, 1, 1, 1, "NHWC", "HWIO", groups=groups)
    known = topi.schedule_args_for([data, weight, conv], {1}, target)
    shape = [int(size) for size in known.packings[1].packed.shape]
    return shape[0] * shape[-1]


@pytest.mark.parametrize("groups", [1, 4])
def test_only_wide_units_compute_columns_that_nobody_reads(groups):
    assert stored_columns(INTEL, 24, groups) == 32 * groups
    # Two units of 256 bits take as long for three halves as one of 512 for them.
    assert stored_columns(ZEN4, 24, groups) == 24 * groups
    # Whole vectors stay as they are, and half a vector alone is no faster as a whole one.
    assert stored_columns(INTEL, 48, groups) == 48 * groups
    assert stored_columns(INTEL, 8, groups) == 8 * groups


def test_results_are_written_without_a_copy():
    data, weight = te.placeholder((196, 408), name="data"), te.placeholder((408, 408), name="w")
    product = topi.nn.dense(data, weight)
    with INTEL:
        known = topi.schedule_args_for([data, weight, product], {1}, INTEL)
        text = str(tvm.lower(known.schedule, known.args))
    allocations = [line for line in text.splitlines() if "T.allocate" in line]
    assert allocations
    assert all('"local"' in line for line in allocations)
    assert "T.Ramp(0, 1, 16)" in text
