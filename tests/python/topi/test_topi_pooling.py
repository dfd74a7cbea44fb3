"""Pools against PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from tvm import topi


def random_array(rng, *shape):
    """Standard normal float32."""
    return rng.standard_normal(shape).astype("float32")


@st.composite
def pools(draw):
    """Sizes of a pool; torch wants the padding to be at most half of the window."""
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    return {
        "kernel": kernel,
        "stride": (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        "padding": tuple(draw(st.integers(0, k // 2)) for k in kernel),
        "ceil_mode": draw(st.booleans()),
        "size": (draw(st.integers(4, 8)), draw(st.integers(4, 8))),
    }


def in_both_layouts(evaluate, fn, data):
    """Result of a pool in NCHW, computed in NCHW and in NHWC."""
    yield evaluate(lambda x: fn(x, layout="NCHW"), data)
    nhwc = np.ascontiguousarray(data.transpose(0, 2, 3, 1))
    yield evaluate(lambda x: fn(x, layout="NHWC"), nhwc).transpose(0, 3, 1, 2)


@given(case=pools(), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_max_pool2d_equals_torch(evaluate, case, seed):
    data = random_array(np.random.default_rng(seed), 1, 3, *case["size"])
    expected = F.max_pool2d(
        torch.from_numpy(data), case["kernel"], case["stride"], case["padding"],
        ceil_mode=case["ceil_mode"],
    )  # fmt: skip
    for out in in_both_layouts(
        evaluate,
        lambda x, layout: topi.nn.max_pool2d(
            x, case["kernel"], case["stride"], case["padding"], 1, case["ceil_mode"], layout
        ),
        data,
    ):
        np.testing.assert_array_equal(out, expected.numpy())


@given(case=pools(), count_include_pad=st.booleans(), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_avg_pool2d_equals_torch(evaluate, case, count_include_pad, seed):
    data = random_array(np.random.default_rng(seed), 1, 3, *case["size"])
    expected = F.avg_pool2d(
        torch.from_numpy(data), case["kernel"], case["stride"], case["padding"],
        case["ceil_mode"], count_include_pad,
    )  # fmt: skip
    for out in in_both_layouts(
        evaluate,
        lambda x, layout: topi.nn.avg_pool2d(
            x,
            case["kernel"],
            case["stride"],
            case["padding"],
            case["ceil_mode"],
            count_include_pad,
            layout,
        ),  # fmt: skip
        data,
    ):
        np.testing.assert_allclose(out, expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("output_size", [(1, 1), (2, 3), (4, 5), (6, 7)])
def test_adaptive_avg_pool2d_equals_torch(evaluate, output_size):
    data = random_array(np.random.default_rng(0), 2, 3, 6, 7)
    expected = F.adaptive_avg_pool2d(torch.from_numpy(data), output_size)
    for out in in_both_layouts(
        evaluate, lambda x, layout: topi.nn.adaptive_avg_pool2d(x, output_size, layout), data
    ):
        np.testing.assert_allclose(out, expected.numpy(), rtol=1e-5, atol=1e-6)


def test_pool_refuses_an_unknown_layout(evaluate):
    with pytest.raises(ValueError, match="NHWC and NCHW, got 'CHWN'"):
        evaluate(lambda x: topi.nn.max_pool2d(x, 2, layout="CHWN"), np.zeros((1, 4, 4, 1), "f"))
