"""Pools against PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from testing_topi import evaluate, random_array
from tvm import te, topi

POOL = {1: topi.nn.pool1d, 2: topi.nn.pool2d, 3: topi.nn.pool3d}
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


@st.composite
def pools(draw, rank):
    """Sizes of a pool; torch wants the padding to be at most half of the window."""
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    return {
        "kernel": kernel,
        "stride": [draw(st.integers(1, 3)) for _ in range(rank)],
        "padding": [draw(st.integers(0, k // 2)) for k in kernel],
        "ceil_mode": draw(st.booleans()),
        "size": [draw(st.integers(5, {1: 9, 2: 8, 3: 6}[rank])) for _ in range(rank)],
    }


def in_both_layouts(fn, data):
    """Result of a pool with channels in front, computed so and with channels last."""
    spatial = SPATIAL[data.ndim - 2]
    yield evaluate(lambda x: fn(x, f"NC{spatial}"), data)
    last = np.ascontiguousarray(np.moveaxis(data, 1, -1))
    yield np.moveaxis(evaluate(lambda x: fn(x, f"N{spatial}C"), last), -1, 1)


@pytest.mark.parametrize("rank", [1, 2, 3])
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_max_pool_equals_torch(rank, data):
    case, dilation = data.draw(pools(rank)), data.draw(st.integers(1, 2))
    x = random_array(np.random.default_rng(0), 1, 3, *case["size"])
    expected = MAX[rank](
        torch.from_numpy(x), case["kernel"], case["stride"], case["padding"], dilation,
        ceil_mode=case["ceil_mode"],
    )  # fmt: skip
    for out in in_both_layouts(
        lambda t, layout: POOL[rank](
            t, case["kernel"], case["stride"], dilation, case["padding"], "max",
            case["ceil_mode"], layout,
        ),
        x,
    ):  # fmt: skip
        np.testing.assert_array_equal(out, expected.numpy())


@pytest.mark.parametrize("rank", [1, 2, 3])
@given(data=st.data(), count_include_pad=st.booleans())
@settings(max_examples=6, deadline=None)
def test_avg_pool_equals_torch(rank, data, count_include_pad):
    case = data.draw(pools(rank))
    x = random_array(np.random.default_rng(1), 1, 3, *case["size"])
    expected = AVERAGE[rank](
        torch.from_numpy(x), case["kernel"], case["stride"], case["padding"],
        case["ceil_mode"], count_include_pad,
    )  # fmt: skip
    for out in in_both_layouts(
        lambda t, layout: POOL[rank](
            t, case["kernel"], case["stride"], 1, case["padding"], "avg", case["ceil_mode"],
            layout, count_include_pad,
        ),
        x,
    ):  # fmt: skip
        np.testing.assert_allclose(out, expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("padding", [(1, 2), (2, 0)])
def test_dilated_avg_pool_counts_the_cells_of_its_window(padding, count_include_pad):
    x = random_array(np.random.default_rng(2), 1, 2, 9)
    out = evaluate(
        lambda t: topi.nn.pool1d(t, 3, 2, 2, padding, "avg", False, "NCW", count_include_pad),
        x,
    )
    padded = np.pad(x, ((0, 0), (0, 0), padding))
    inside = np.pad(np.ones(9), padding)
    for k in range(out.shape[2]):
        cells = slice(2 * k, 2 * k + 5, 2)
        count = 3 if count_include_pad else inside[cells].sum()
        np.testing.assert_allclose(out[..., k], padded[..., cells].sum(-1) / count, rtol=1e-5)


ADAPTIVE = {
    ("avg", 1): F.adaptive_avg_pool1d,
    ("avg", 2): F.adaptive_avg_pool2d,
    ("avg", 3): F.adaptive_avg_pool3d,
    ("max", 1): F.adaptive_max_pool1d,
    ("max", 2): F.adaptive_max_pool2d,
    ("max", 3): F.adaptive_max_pool3d,
}
OURS = {1: topi.nn.adaptive_pool1d, 2: topi.nn.adaptive_pool, 3: topi.nn.adaptive_pool3d}


@pytest.mark.parametrize("pool_type", ["avg", "max"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("output_size", [(1, 1, 1), (2, 3, 2), (4, 5, 5)])
def test_adaptive_pool_equals_torch(rank, pool_type, output_size):
    x = random_array(np.random.default_rng(3), 2, 3, *(6, 7, 5)[:rank])
    size = output_size[:rank]
    expected = ADAPTIVE[pool_type, rank](torch.from_numpy(x), size if rank > 1 else size[0])
    for out in in_both_layouts(lambda t, layout: OURS[rank](t, size, pool_type, layout), x):
        np.testing.assert_allclose(out, expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pool_type", ["avg", "max"])
def test_global_pool_reduces_height_and_width(pool_type):
    x = random_array(np.random.default_rng(4), 2, 3, 5, 4)
    reference = {"avg": np.mean, "max": np.max}[pool_type]
    out = evaluate(lambda t: topi.nn.global_pool(t, pool_type), x)
    np.testing.assert_allclose(out, reference(x, (2, 3), keepdims=True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "fn",
    [
        lambda t: topi.nn.pool2d(t, 3, 2, 1, 1, "max", True),
        lambda t: topi.nn.pool2d(t, 3, 2, 1, 1, "avg", True, count_include_pad=False),
        lambda t: topi.nn.pool2d(t, 2, 2, 1, 0, "avg"),
        lambda t: topi.nn.global_pool(t, "avg"),
        lambda t: topi.nn.adaptive_pool(t, 1, "avg"),
        lambda t: topi.nn.adaptive_pool(t, (2, 3), "avg"),
        lambda t: topi.nn.adaptive_pool(t, (2, 3), "max"),
    ],
)
def test_pool_takes_a_symbolic_shape(fn):
    x = random_array(np.random.default_rng(5), 1, 3, 9, 11)
    np.testing.assert_allclose(
        evaluate(fn, x, symbolic=(3, 9, 11)), evaluate(fn, x), rtol=1e-6, atol=1e-6
    )


def test_pool_of_integers_and_halves():
    rng = np.random.default_rng(6)
    x = random_array(rng, 1, 2, 6, 6, dtype="int32")
    out = evaluate(lambda t: topi.nn.pool2d(t, 2, 2, 1, 1, "max"), x)
    expected = F.max_pool2d(torch.from_numpy(x).float(), 2, 2, 1).int().numpy()
    np.testing.assert_array_equal(out, expected)
    halves = random_array(rng, 1, 2, 6, 6, dtype="float16")
    out = evaluate(lambda t: topi.nn.pool2d(t, 2, 2, 1, 0, "avg"), halves)
    expected = F.avg_pool2d(torch.from_numpy(halves).float(), 2).numpy()
    np.testing.assert_allclose(out.astype("f"), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: topi.nn.max_pool2d(x, 2, layout="NHW"), "NHWC and NCHW, got 'NHW'"),
        (lambda x: topi.nn.pool2d(x, 2, 2, 1, 0, "median"), "'max' or 'avg', got 'median'"),
        (lambda x: topi.nn.pool2d(x, 9, 2, 1, 0, "max"), r"window of \(9, 9\) does not fit"),
        (lambda x: topi.nn.pool2d(x, (1, 2, 3), 2, 1, 0, "max"), "1 or 2 numbers"),
    ],
)
def test_pool_refuses_arguments_that_do_not_fit(fn, message):
    x = te.placeholder((1, 4, 4, 4), name="x")
    with pytest.raises(ValueError, match=message):
        fn(x)


@pytest.mark.parametrize("pool_type", ["avg", "max"])
@given(case=pools(2), count_include_pad=st.booleans())
@settings(max_examples=6, deadline=None)
def test_pool_grad_equals_torch(pool_type, case, count_include_pad):
    x = random_array(np.random.default_rng(7), 1, 2, *case["size"])
    data = torch.from_numpy(x).requires_grad_()
    options = [case["kernel"], case["stride"], case["padding"]]
    if pool_type == "max":
        pooled = F.max_pool2d(data, *options, ceil_mode=case["ceil_mode"])
    else:
        pooled = F.avg_pool2d(data, *options, case["ceil_mode"], count_include_pad)
    grads = random_array(np.random.default_rng(8), *pooled.shape)
    pooled.backward(torch.from_numpy(grads))
    out = evaluate(
        lambda g, t: topi.nn.pool_grad(
            g, t, *options, pool_type, case["ceil_mode"], count_include_pad
        ),
        grads,
        x,
    )
    np.testing.assert_allclose(out, data.grad.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padding", [(2, 0, 0, 2, 0, 0), (0, 3, 0, 0, 2, 1)])
def test_a_mean_of_windows_within_the_padding_is_zero(padding):
    """Padding as wide as a window has windows without any cell of the input."""
    data = np.random.default_rng(0).normal(size=(1, 2, 6, 6, 6)).astype("float32")
    found = evaluate(
        lambda x: topi.nn.pool3d(
            x, (2, 2, 2), (1, 1, 1), (1, 1, 1), padding, "avg", count_include_pad=False
        ),
        data,
    )
    pads = [(0, 0), (0, 0), *zip(padding[:3], padding[3:])]
    windows = np.lib.stride_tricks.sliding_window_view
    sums, counts = (
        windows(np.pad(a, pads), (2, 2, 2), (2, 3, 4)).sum((-1, -2, -3))
        for a in (data, np.ones_like(data))
    )
    assert (counts == 0).any()
    np.testing.assert_allclose(found, sums / np.maximum(counts, 1), rtol=1e-5, atol=1e-5)
