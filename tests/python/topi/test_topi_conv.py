"""Convolutions of one, two and three dimensions against PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from testing_topi import evaluate, random_array
from tvm import te, topi

# Sums of up to a few hundred products of standard normals in float32.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}
REFERENCE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
REFERENCE_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def relayout(array, source, target):
    """The array with its dimensions in another order."""
    return np.ascontiguousarray(array.transpose([source.index(letter) for letter in target]))


def partial_layouts(fn, options, *layouts):
    """The operator of two tensors with everything else given."""
    return lambda a, b: fn(a, b, *options, *layouts)


@st.composite
def convolutions(draw, rank):
    """Sizes of a convolution that fits."""
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    largest = {1: 8, 2: 7, 3: 5}[rank]
    return {
        "channels": groups * draw(st.integers(1, 3)),
        "filters": groups * draw(st.integers(1, 3)),
        "size": [draw(st.integers(5, largest)) for _ in range(rank)],
        "kernel": [draw(st.integers(1, 3)) for _ in range(rank)],
        "stride": [draw(st.integers(1, 2)) for _ in range(rank)],
        "padding": [draw(st.integers(0, 2)) for _ in range(2 * rank)],
        "dilation": [draw(st.integers(1, 2)) for _ in range(rank)],
        "groups": groups,
    }


def reference(data, weight, case):
    """Convolution by PyTorch, channels in front."""
    rank = data.ndim - 2
    pads = [(0, 0), (0, 0), *zip(case["padding"][:rank], case["padding"][rank:])]
    return REFERENCE[rank](
        torch.from_numpy(np.pad(data, pads)),
        torch.from_numpy(weight),
        stride=case["stride"],
        dilation=case["dilation"],
        groups=case["groups"],
    ).numpy()


@pytest.mark.parametrize("rank", [1, 2, 3])
@given(data=st.data())
@settings(max_examples=7, deadline=None)
def test_conv_equals_torch_with_channels_in_front_and_last(rank, data):
    case = data.draw(convolutions(rank))
    rng = np.random.default_rng(0)
    x = random_array(rng, 2, case["channels"], *case["size"])
    w = random_array(rng, case["filters"], case["channels"] // case["groups"], *case["kernel"])
    expected = reference(x, w, case)
    options = [case[k] for k in ("stride", "padding", "dilation", "groups")]
    s = SPATIAL[rank]
    for data_layout, kernel_layout in ((f"NC{s}", f"OI{s}"), (f"N{s}C", f"{s}IO")):
        out = evaluate(
            partial_layouts(topi.nn.conv, options, data_layout, kernel_layout),
            relayout(x, f"NC{s}", data_layout),
            relayout(w, f"OI{s}", kernel_layout),
        )
        np.testing.assert_allclose(relayout(out, data_layout, f"NC{s}"), expected, **TOLERANCE)


NAMED = {
    "conv1d_ncw": ("NCW", "OIW", 1),
    "conv1d_nwc": ("NWC", "WIO", 1),
    "group_conv1d_ncw": ("NCW", "OIW", 2),
    "group_conv1d_nwc": ("NWC", "WIO", 2),
    "conv2d_nchw": ("NCHW", "OIHW", 1),
    "conv2d_nhwc": ("NHWC", "HWIO", 1),
    "conv2d_hwcn": ("HWCN", "HWIO", 1),
    "group_conv2d_nchw": ("NCHW", "OIHW", 2),
    "group_conv2d_nhwc": ("NHWC", "HWIO", 2),
    "conv3d_ncdhw": ("NCDHW", "OIDHW", 2),
    "conv3d_ndhwc": ("NDHWC", "DHWIO", 2),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_convolution_has_its_layout(name):
    data_layout, kernel_layout, groups = NAMED[name]
    rank = len(data_layout) - 2
    s = SPATIAL[rank]
    rng = np.random.default_rng(1)
    x, w = random_array(rng, 2, 4, *[6] * rank), random_array(rng, 6, 4 // groups, *[3] * rank)
    case = {"stride": 2, "padding": [1] * 2 * rank, "dilation": 1, "groups": groups}
    fn = getattr(topi.nn, name)
    more = (groups,) if groups > 1 else ()
    out = evaluate(
        lambda a, b: fn(a, b, 2, 1, 1, *more),
        relayout(x, f"NC{s}", data_layout),
        relayout(w, f"OI{s}", kernel_layout),
    )
    expected = relayout(reference(x, w, case), f"NC{s}", data_layout)
    np.testing.assert_allclose(out, expected, **TOLERANCE)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_conv2d_orders_filters_of_a_channel_as_torch_does(multiplier, layout):
    rng = np.random.default_rng(0)
    channels = 4
    x = random_array(rng, 1, channels, 6, 7)
    w = random_array(rng, channels * multiplier, 1, 3, 3)
    case = {"stride": 2, "padding": (1, 1, 1, 1), "dilation": 1, "groups": channels}
    oihw = w.reshape(channels, multiplier, 3, 3)
    fn = getattr(topi.nn, f"depthwise_conv2d_{layout.lower()}")
    out = evaluate(
        lambda a, b: fn(a, b, 2, 1),
        relayout(x, "NCHW", layout),
        relayout(oihw, "OIHW", "HWOI" if layout == "NHWC" else "OIHW"),
    )
    np.testing.assert_allclose(out, relayout(reference(x, w, case), "NCHW", layout), **TOLERANCE)


@st.composite
def transposed(draw, rank):
    """Sizes of a transposed convolution that leaves something."""
    groups = draw(st.sampled_from([1, 2]))
    kernel = [draw(st.integers(1, 4)) for _ in range(rank)]
    stride = [draw(st.integers(1, 3)) for _ in range(rank)]
    return {
        "channels": groups * draw(st.integers(1, 3)),
        "filters": draw(st.integers(1, 3)),
        "size": [draw(st.integers(3, 5)) for _ in range(rank)],
        "kernel": kernel,
        "stride": stride,
        "padding": [draw(st.integers(0, (k + 1) // 2)) for k in kernel],
        "output_padding": [draw(st.integers(0, s - 1)) for s in stride],
        "groups": groups,
    }


@pytest.mark.parametrize("rank", [1, 2, 3])
@given(data=st.data())
@settings(max_examples=7, deadline=None)
def test_conv_transpose_equals_torch(rank, data):
    case = data.draw(transposed(rank))
    rng = np.random.default_rng(2)
    x = random_array(rng, 2, case["channels"], *case["size"])
    w = random_array(rng, case["channels"], case["filters"], *case["kernel"])
    expected = REFERENCE_TRANSPOSE[rank](
        torch.from_numpy(x), torch.from_numpy(w), None, case["stride"], case["padding"],
        case["output_padding"], case["groups"],
    ).numpy()  # fmt: skip
    options = [case[k] for k in ("stride", "padding", "output_padding", "groups")]
    s = SPATIAL[rank]
    for data_layout, kernel_layout in ((f"NC{s}", f"IO{s}"), (f"N{s}C", f"{s}IO")):
        out = evaluate(
            partial_layouts(topi.nn.conv_transpose, options, data_layout, kernel_layout),
            relayout(x, f"NC{s}", data_layout),
            relayout(w, f"IO{s}", kernel_layout),
        )
        np.testing.assert_allclose(relayout(out, data_layout, f"NC{s}"), expected, **TOLERANCE)


TRANSPOSED = {
    "conv1d_transpose_ncw": ("NCW", "IOW", 1),
    "conv2d_transpose_nchw": ("NCHW", "IOHW", 1),
    "conv2d_transpose_nhwc": ("NHWC", "HWIO", 1),
    "conv3d_transpose_ncdhw": ("NCDHW", "IODHW", 1),
    "group_conv1d_transpose_ncw": ("NCW", "IOW", 2),
    "group_conv2d_transpose_nchw": ("NCHW", "IOHW", 2),
    "group_conv3d_transpose_ncdhw": ("NCDHW", "IODHW", 2),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_named_transposed_convolution_has_its_layout(name):
    data_layout, kernel_layout, groups = TRANSPOSED[name]
    rank = len(data_layout) - 2
    s = SPATIAL[rank]
    rng = np.random.default_rng(3)
    x, w = random_array(rng, 1, 4, *[4] * rank), random_array(rng, 4, 3, *[3] * rank)
    expected = REFERENCE_TRANSPOSE[rank](
        torch.from_numpy(x), torch.from_numpy(w), None, 2, 1, 1, groups
    ).numpy()
    fn = getattr(topi.nn, name)
    more = (groups,) if groups > 1 else ()
    out = evaluate(
        lambda a, b: fn(a, b, 2, 1, "float32", 1, *more),
        relayout(x, f"NC{s}", data_layout),
        relayout(w, f"IO{s}", kernel_layout),
    )
    np.testing.assert_allclose(out, relayout(expected, f"NC{s}", data_layout), **TOLERANCE)


@pytest.mark.parametrize("name", ["conv2d_nhwc", "conv2d_nchw", "conv2d_transpose_nchw"])
def test_convolution_takes_symbolic_batch_and_size(name):
    layout = "NHWC" if name.endswith("nhwc") else "NCHW"
    kernel_layout = "HWIO" if layout == "NHWC" else "IOHW" if "transpose" in name else "OIHW"
    rng = np.random.default_rng(4)
    x = relayout(random_array(rng, 2, 3, 9, 11), "NCHW", layout)
    w = relayout(random_array(rng, 3, 3, 4, 4), "OIHW", kernel_layout)
    fn = getattr(topi.nn, name)
    expected = evaluate(lambda a, b: fn(a, b, 2, 1), x, w)
    out = evaluate(lambda a, b: fn(a, b, 2, 1), x, w, symbolic=(2, 9, 11))
    np.testing.assert_array_equal(out, expected)


def test_depthwise_convolution_takes_symbolic_channels_and_window():
    rng = np.random.default_rng(5)
    x, w = random_array(rng, 1, 9, 11, 5), random_array(rng, 3, 3, 5, 2)

    def fn(a, b):
        return topi.nn.depthwise_conv2d_nhwc(a, b, 2, 1)

    np.testing.assert_array_equal(evaluate(fn, x, w, symbolic=(9, 11, 5, 3)), evaluate(fn, x, w))


def test_convolution_of_halves_may_add_in_float32():
    rng = np.random.default_rng(6)
    x = random_array(rng, 1, 8, 8, 16, dtype="float16")
    w = random_array(rng, 3, 3, 16, 4, dtype="float16")
    out = evaluate(lambda a, b: topi.nn.conv2d_nhwc(a, b, out_dtype="float32"), x, w)
    case = {"stride": 1, "padding": [0] * 4, "dilation": 1, "groups": 1}
    expected = reference(
        relayout(x, "NHWC", "NCHW").astype("f"), relayout(w, "HWIO", "OIHW").astype("f"), case
    )
    assert out.dtype == np.float32
    np.testing.assert_allclose(relayout(out, "NHWC", "NCHW"), expected, **TOLERANCE)


def test_integer_convolution_is_exact():
    rng = np.random.default_rng(7)
    x, w = random_array(rng, 1, 3, 6, 6, dtype="int8"), random_array(rng, 2, 3, 3, 3, dtype="int8")
    out = evaluate(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, 1, 1, "int32"), x, w)
    case = {"stride": 1, "padding": [1] * 4, "dilation": 1, "groups": 1}
    np.testing.assert_array_equal(out, reference(x.astype("f"), w.astype("f"), case))


def test_transposed_convolution_may_be_dilated():
    rng = np.random.default_rng(9)
    x, w = random_array(rng, 1, 2, 5, 5), random_array(rng, 2, 3, 3, 3)
    out = evaluate(lambda a, b: topi.nn.conv_transpose(a, b, 2, 1, 1, dilation=2), x, w)
    expected = F.conv_transpose2d(torch.from_numpy(x), torch.from_numpy(w), None, 2, 1, 1, 1, 2)
    np.testing.assert_allclose(out, expected.numpy(), **TOLERANCE)


def test_same_padding_keeps_the_size():
    rng = np.random.default_rng(8)
    x, w = random_array(rng, 1, 2, 7, 8), random_array(rng, 3, 2, 3, 4)
    out = evaluate(lambda a, b: topi.nn.conv2d(a, b, 1, "SAME"), x, w)
    expected = F.conv2d(torch.from_numpy(x), torch.from_numpy(w), padding="same")
    np.testing.assert_allclose(out, expected.numpy(), **TOLERANCE)


def placeholders(*shapes):
    """A float32 placeholder for each shape."""
    return [te.placeholder(shape, name=f"x{i}") for i, shape in enumerate(shapes)]


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
    assert out.op.tag == "conv2d_nhwc"


W = (3, 3, 3, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("conv2d_nhwc", (3, 3, 2, 4)), "1 groups of 2 input ch.*input of 3 channels"),
        (("conv2d_nhwc", (6, 3, 3, 4)), r"kernel of \(6, 3\).*input of \(5, 5\)"),
        (("conv2d", W, 1, 0, 1, "NHCC", "HWIO"), "no layout NHCC with HWIO"),
        (("conv2d", W, 1, 0, 1, "NHWC", "HWOI"), "channel count 3; got groups 1"),
        (("conv3d", W), r"layout NCDHW does not fit the shape \(1, 5, 5, 3\)"),
        (("conv2d_nhwc", W, 1, (1, 1, 1)), "padding is one size"),
        (("conv2d_nhwc", W, 1, "LIKE"), "'SAME' or 'VALID', got 'LIKE'"),
        (("conv2d_nhwc", W, (1, 1, 1)), "expected 1 or 2 numbers"),
        (("conv2d_transpose_nhwc", W, 1, 0, None, 1), "output_padding.*smaller than stride"),
        (("conv2d_transpose_nhwc", W, 1, 4), "leaves nothing of dimension H"),
    ],
)
def test_convolution_refuses_arguments_that_do_not_fit(call, message):
    name, weight_shape, *options = call
    data, weight = placeholders((1, 5, 5, 3), weight_shape)
    with pytest.raises(ValueError, match=message):
        getattr(topi.nn, name)(data, weight, *options)


def deformable_reference(data, offset, weight, groups, bends):
    """Stride 1, padding 1: every sample by PyTorch's grid_sample, then a product of matrices."""
    (n, c, h, w), (f, per_group, kh, kw) = data.shape, weight.shape
    offset = offset.reshape(n, bends, kh, kw, 2, h, w)
    columns = np.zeros((n, c, kh, kw, h, w), "float32")
    for b, ky, kx in np.ndindex(bends, kh, kw):
        y = np.arange(h)[:, None] + ky - 1 + offset[:, b, ky, kx, 0]
        x = np.arange(w) + kx - 1 + offset[:, b, ky, kx, 1]
        grid = np.stack([2 * x / (w - 1) - 1, 2 * y / (h - 1) - 1], -1).astype("float32")
        part = slice(b * c // bends, (b + 1) * c // bends)
        columns[:, part, ky, kx] = F.grid_sample(
            torch.from_numpy(data[:, part]), torch.from_numpy(grid), align_corners=True
        ).numpy()
    columns = columns.reshape(n, groups, per_group, kh, kw, h, w)
    weight = weight.reshape(groups, f // groups, per_group, kh, kw)
    return np.einsum("ngcijhw,gfcij->ngfhw", columns, weight).reshape(n, f, h, w)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("groups", "bends"), [(1, 1), (2, 1), (1, 2)])
def test_deformable_conv2d_samples_where_the_offsets_say(layout, groups, bends):
    rng = np.random.default_rng(10)
    x, w = random_array(rng, 2, 4, 5, 6), random_array(rng, 6, 4 // groups, 3, 3)
    offset = random_array(rng, 2, bends * 18, 5, 6)
    expected = deformable_reference(x, offset, w, groups, bends)
    fn = getattr(topi.nn, f"deformable_conv2d_{layout.lower()}")
    kernel_layout = "OIHW" if layout == "NCHW" else "HWIO"
    out = evaluate(
        lambda *t: fn(*t, 1, 1, 1, bends, groups),
        relayout(x, "NCHW", layout),
        relayout(offset, "NCHW", layout),
        relayout(w, "OIHW", kernel_layout),
    )
    np.testing.assert_allclose(relayout(out, layout, "NCHW"), expected, rtol=1e-3, atol=1e-3)


def test_deformable_conv2d_refuses_offsets_that_do_not_fit():
    data, offset, weight = placeholders((1, 4, 5, 6), (1, 9, 5, 6), (6, 4, 3, 3))
    with pytest.raises(ValueError, match="needs 18 offset channels.*got 9"):
        topi.nn.deformable_conv2d_nchw(data, offset, weight, 1, 1)


def test_blocked_convolution_equals_the_plain_one():
    rng = np.random.default_rng(11)
    x, w = random_array(rng, 2, 8, 6, 7), random_array(rng, 6, 8, 3, 3)
    blocked = np.ascontiguousarray(x.reshape(2, 2, 4, 6, 7).transpose(0, 1, 3, 4, 2))
    kernel = w.reshape(2, 3, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    out = evaluate(
        lambda a, b: topi.nn.conv2d_NCHWc(a, b, 2, 1), blocked, np.ascontiguousarray(kernel)
    )
    expected = F.conv2d(torch.from_numpy(x), torch.from_numpy(w), None, 2, 1).numpy()
    np.testing.assert_allclose(
        out.transpose(0, 1, 4, 2, 3).reshape(expected.shape), expected, **TOLERANCE
    )
    each = random_array(rng, 2, 1, 3, 3, 1, 4)
    out = evaluate(lambda a, b: topi.nn.depthwise_conv2d_NCHWc(a, b, 1, 1, 2), blocked, each)
    plain = np.ascontiguousarray(each[:, 0, :, :, 0].transpose(0, 3, 1, 2).reshape(8, 1, 3, 3))
    expected = F.conv2d(torch.from_numpy(x), torch.from_numpy(plain), None, 1, 1, 2, 8).numpy()
    np.testing.assert_allclose(
        out.transpose(0, 1, 4, 2, 3).reshape(expected.shape), expected, **TOLERANCE
    )


def test_blocked_convolution_refuses_blocks_that_differ():
    data, kernel = placeholders((1, 2, 5, 5, 4), (2, 1, 3, 3, 8, 4))
    with pytest.raises(ValueError, match="2 blocks of 4 channels, the kernel 1 of 8"):
        topi.nn.conv2d_NCHWc(data, kernel)
    with pytest.raises(ValueError, match=r"kernel's shape is \(2, 1, 3, 3, 8, 4\)"):
        topi.nn.depthwise_conv2d_NCHWc(data, kernel)
