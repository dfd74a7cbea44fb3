"""Convolutions against PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import te, topi


def random_array(rng, *shape):
    """Standard normal float32."""
    return rng.standard_normal(shape).astype("float32")


def placeholders(*shapes):
    """A float32 placeholder for each shape."""
    return [te.placeholder(shape, name=f"x{i}") for i, shape in enumerate(shapes)]


# Sums of up to a few hundred products of standard normals in float32.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


@st.composite
def convolutions(draw):
    """Sizes of a convolution that fits."""
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    dilation = draw(st.integers(1, 2))
    return {
        "batch": draw(st.integers(1, 2)),
        "channels": groups * draw(st.integers(1, 4)),
        "filters": groups * draw(st.integers(1, 4)),
        "size": (draw(st.integers(5, 8)), draw(st.integers(5, 8))),
        "kernel": kernel,
        "stride": draw(st.sampled_from([1, 2, (1, 2)])),
        "padding": tuple(draw(st.integers(0, 2)) for _ in range(4)),
        "dilation": dilation,
        "groups": groups,
    }


def reference(data, weight, case):
    """NCHW convolution by PyTorch."""
    top, left, bottom, right = case["padding"]
    padded = torch.nn.functional.pad(torch.from_numpy(data), (left, right, top, bottom))
    return torch.nn.functional.conv2d(
        padded,
        torch.from_numpy(weight),
        stride=case["stride"],
        dilation=case["dilation"],
        groups=case["groups"],
    ).numpy()


@given(case=convolutions(), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_conv2d_equals_torch_in_both_layouts(evaluate, case, seed):
    rng = np.random.default_rng(seed)
    data = random_array(rng, case["batch"], case["channels"], *case["size"])
    weight = random_array(rng, case["filters"], case["channels"] // case["groups"], *case["kernel"])
    options = [case[k] for k in ("stride", "padding", "dilation", "groups")]
    expected = reference(data, weight, case)
    nchw = evaluate(lambda d, w: topi.nn.conv2d_nchw(d, w, *options), data, weight)
    np.testing.assert_allclose(nchw, expected, **TOLERANCE)
    nhwc = evaluate(
        lambda d, w: topi.nn.conv2d_nhwc(d, w, *options),
        np.ascontiguousarray(data.transpose(0, 2, 3, 1)),
        np.ascontiguousarray(weight.transpose(2, 3, 1, 0)),
    )
    np.testing.assert_allclose(nhwc.transpose(0, 3, 1, 2), expected, **TOLERANCE)


@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_conv2d_orders_filters_of_a_channel_as_torch_does(evaluate, multiplier):
    rng = np.random.default_rng(0)
    channels = 4
    data = random_array(rng, 1, channels, 6, 7)
    weight = random_array(rng, channels * multiplier, 1, 3, 3)
    case = {"stride": 2, "padding": (1, 1, 1, 1), "dilation": 1, "groups": channels}
    hwoi = weight.transpose(2, 3, 1, 0).reshape(3, 3, channels, multiplier)
    out = evaluate(
        lambda d, w: topi.nn.depthwise_conv2d_nhwc(d, w, 2, 1),
        np.ascontiguousarray(data.transpose(0, 2, 3, 1)),
        np.ascontiguousarray(hwoi),
    )
    np.testing.assert_allclose(
        out.transpose(0, 3, 1, 2), reference(data, weight, case), **TOLERANCE
    )


def test_convolution_without_padding_has_no_pad_stage():
    data, weight = placeholders((1, 5, 5, 3), (3, 3, 3, 4))
    out = topi.nn.conv2d_nhwc(data, weight)
    assert data in list(out.op.input_tensors)
    padded = topi.nn.conv2d_nhwc(data, weight, padding=1)
    assert data not in list(padded.op.input_tensors)


def test_convolution_says_which_input_has_a_free_layout():
    data, weight = placeholders((1, 5, 5, 3), (3, 3, 3, 4))
    out = topi.nn.conv2d_nhwc(data, weight)
    assert list(out.op.attrs["layout_free_placeholders"]) == [weight]
    assert out.op.tag == topi.tag.CONV2D_NHWC


def test_convolution_refuses_channels_that_do_not_fit():
    data, weight = placeholders((1, 5, 5, 3), (3, 3, 2, 4))
    with pytest.raises(ValueError, match="1 groups of 2 input channels.*input of 3 channels"):
        topi.nn.conv2d_nhwc(data, weight)


def test_convolution_refuses_a_kernel_larger_than_its_input():
    data, weight = placeholders((1, 2, 2, 3), (3, 3, 3, 4))
    with pytest.raises(ValueError, match=r"kernel of \(3, 3\).*does not fit an input of \(2, 2\)"):
        topi.nn.conv2d_nhwc(data, weight)
