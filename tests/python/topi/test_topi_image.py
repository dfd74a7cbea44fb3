"""Resizing and sampling of images against PyTorch and NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from testing_topi import evaluate, random_array
from tvm import te, topi

RNG = np.random.default_rng(0)
RESIZE = {1: topi.image.resize1d, 2: topi.image.resize2d, 3: topi.image.resize3d}
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
TORCH_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def image(rank, *extents):
    """Two images of three channels."""
    return random_array(RNG, 2, 3, *extents[:rank])


@st.composite
def sizes(draw, rank):
    """Extents before and after."""
    return [[draw(st.integers(2, 7)) for _ in range(rank)] for _ in range(2)]


@pytest.mark.parametrize("rank", [1, 2, 3])
@given(data=st.data(), align_corners=st.booleans())
@settings(max_examples=6, deadline=None)
def test_linear_resize_equals_torch_in_both_layouts(rank, data, align_corners):
    before, after = data.draw(sizes(rank))
    x = image(rank, *before)
    expected = F.interpolate(
        torch.from_numpy(x), after, mode=TORCH_LINEAR[rank], align_corners=align_corners
    ).numpy()
    mode = "align_corners" if align_corners else "half_pixel"
    s = SPATIAL[rank]
    out = evaluate(lambda t: RESIZE[rank](t, None, after, f"NC{s}", "linear", mode), x)
    np.testing.assert_allclose(out, expected, **TOLERANCE)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    out = evaluate(lambda t: RESIZE[rank](t, None, after, f"N{s}C", "linear", mode), last)
    np.testing.assert_allclose(np.moveaxis(out, -1, 1), expected, **TOLERANCE)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("exact", [False, True])
def test_nearest_resize_equals_torch(rank, exact):
    x = image(rank, 5, 4, 3)
    size = (8, 3, 6)[:rank]
    mode, transformation, rounding = (
        ("nearest-exact", "half_pixel", "round_prefer_ceil")
        if exact
        else ("nearest", "asymmetric", "floor")
    )
    expected = F.interpolate(torch.from_numpy(x), size, mode=mode).numpy()
    s = SPATIAL[rank]
    out = evaluate(
        lambda t: RESIZE[rank](
            t, None, size, f"NC{s}", "nearest_neighbor", transformation, rounding
        ),
        x,
    )
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(9, 5), (3, 8)])
def test_cubic_resize_equals_torch(size, align_corners):
    x = image(2, 6, 7)
    expected = F.interpolate(
        torch.from_numpy(x), size, mode="bicubic", align_corners=align_corners
    ).numpy()
    mode = "align_corners" if align_corners else "half_pixel"
    out = evaluate(
        lambda t: topi.image.resize2d(t, None, size, "NCHW", "cubic", mode, bicubic_alpha=-0.75), x
    )
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-4)


def nearest_reference(n_in, n_out, transformation, rounding):
    """Indices by ONNX's formulas, in exact arithmetic of quarters of a cell."""
    x = np.arange(n_out, dtype="float64")
    position = {
        "half_pixel": (x + 0.5) * n_in / n_out - 0.5,
        "asymmetric": x * n_in / n_out,
        "align_corners": x * (n_in - 1) / (n_out - 1),
        "tf_half_pixel_for_nn": (x + 0.5) * n_in / n_out,
        "pytorch_half_pixel": (x + 0.5) * n_in / n_out - 0.5,
    }[transformation]
    index = {
        "round_prefer_floor": np.ceil(position - 0.5),
        "round_prefer_ceil": np.floor(position + 0.5),
        "round": np.floor(position + 0.5),
        "floor": np.floor(position),
        "ceil": np.ceil(position),
    }[rounding]
    return np.clip(index, 0, n_in - 1).astype(int)


@pytest.mark.parametrize(
    "rounding", ["round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
)
@pytest.mark.parametrize(
    "transformation",
    ["half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn", "pytorch_half_pixel"],
)
def test_nearest_resize_follows_onnx(transformation, rounding):
    # Powers of two: the references' positions are exact.
    x = image(1, 4)
    for n_out in (8, 2):
        if transformation == "align_corners" and n_out == 8:
            n_out = 7
        index = nearest_reference(4, n_out, transformation, rounding)
        out = evaluate(
            lambda t, n=n_out: topi.image.resize1d(
                t, None, (n,), "NCW", "nearest_neighbor", transformation, rounding
            ),
            x,
        )
        np.testing.assert_array_equal(out, x[:, :, index])


def test_cubic_resize_may_leave_out_what_is_outside():
    x = np.ones((1, 1, 4, 4), "float32")
    out = evaluate(
        lambda t: topi.image.resize2d(t, None, (8, 8), "NCHW", "cubic", bicubic_exclude=1), x
    )
    np.testing.assert_allclose(out, 1, rtol=1e-5)


def test_resize_of_whole_numbers_rounds():
    x = np.array([[[0, 1, 3]]], "int32")
    mode = {"method": "linear", "coordinate_transformation_mode": "align_corners"}
    out = evaluate(lambda t: topi.image.resize1d(t, None, (5,), **mode), x)
    np.testing.assert_array_equal(out, [[[0, 0, 1, 2, 3]]])


def test_resize_crops_the_region_of_interest():
    x = image(2, 5, 5)
    roi = (0.25, 0.0, 0.75, 1.5)
    out = evaluate(
        lambda t: topi.image.resize2d(
            t, roi, (3, 7), "NCHW", "linear", "tf_crop_and_resize", extrapolation_value=9.0
        ),
        x,
    )
    np.testing.assert_allclose(out[..., :5], x[:, :, 1:4], **TOLERANCE)
    np.testing.assert_array_equal(out[..., 5:], 9.0)


def test_resize_takes_a_symbolic_size():
    x = image(2, 5, 7)
    for method in ("linear", "nearest_neighbor"):

        def fn(t):
            return topi.nn.upsampling(t, 2, 3, "NCHW", method)  # noqa: B023

        np.testing.assert_allclose(
            evaluate(fn, x, symbolic=(2, 5, 7)), evaluate(fn, x), rtol=1e-5, atol=1e-5
        )


def test_upsampling_repeats_elements():
    x = image(2, 3, 4)
    out = evaluate(lambda t: topi.nn.upsampling(t, 2, 3), x)
    np.testing.assert_array_equal(out, x.repeat(2, 2).repeat(3, 3))
    x = image(3, 3, 4, 2)
    out = evaluate(
        lambda t: topi.nn.upsampling3d(t, 2, 2, 1, coordinate_transformation_mode="asymmetric"), x
    )
    np.testing.assert_array_equal(out, x.repeat(2, 2).repeat(2, 3))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_crop_and_resize_takes_boxes_of_images(layout):
    x = image(2, 5, 5)
    boxes = np.array(
        [[0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], [1, 1, 0, 0], [0, 0, 1, 2]], "float32"
    )
    which = np.array([0, 1, 1, 0], "int32")
    data = x if layout == "NCHW" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    out = evaluate(
        lambda *t: topi.image.crop_and_resize(*t, (3, 3), layout, extrapolation_value=7.0),
        data, boxes, which,
    )  # fmt: skip
    out = out if layout == "NCHW" else out.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(out[0], x[0, :, ::2, ::2], **TOLERANCE)
    np.testing.assert_allclose(out[1], x[1, :, 1:4, 1:4], **TOLERANCE)
    np.testing.assert_allclose(out[2], x[1, :, ::-2, ::-2], **TOLERANCE)
    np.testing.assert_array_equal(out[3, :, :, 2], 7.0)
    nearest = evaluate(
        lambda *t: topi.image.crop_and_resize(*t, (3, 3), layout, "nearest_neighbor"),
        data, boxes, which,
    )  # fmt: skip
    nearest = nearest if layout == "NCHW" else nearest.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(nearest[1], x[1, :, 1:4, 1:4])


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic", "3d"])
def test_grid_sample_equals_torch(method, padding_mode, align_corners):
    rank = 3 if method == "3d" else 2
    method = "bilinear" if method == "3d" else method
    x = image(rank, 5, 4, 3)
    grid = (RNG.random((2, *(4, 3, 6)[:rank], rank)) * 4 - 2).astype("float32")
    expected = F.grid_sample(
        torch.from_numpy(x), torch.from_numpy(grid), method, padding_mode, align_corners
    ).numpy()
    layout = "NCHW" if rank == 2 else "NCDHW"
    out = evaluate(
        lambda t, g: topi.image.grid_sample(t, g, method, layout, padding_mode, align_corners),
        x, np.ascontiguousarray(np.moveaxis(grid, -1, 1)),
    )  # fmt: skip
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-4)


def test_affine_grid_equals_torch():
    maps = random_array(RNG, 2, 2, 3)
    expected = F.affine_grid(torch.from_numpy(maps), [2, 1, 4, 5], align_corners=True).numpy()
    out = evaluate(lambda t: topi.image.affine_grid(t, (4, 5)), maps)
    np.testing.assert_allclose(np.moveaxis(out, 1, -1), expected, **TOLERANCE)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: topi.image.resize2d(x, None, 3, method="area"), "method is one of nearest"),
        (lambda x: topi.image.resize2d(x, None, 3, rounding_method="up"), "rounding_method is one"),
        (lambda x: topi.image.resize2d(x, None, 3, layout="NCHD"), "layout has N, C and HW"),
        (
            lambda x: topi.image.resize2d(
                x, None, 3, coordinate_transformation_mode="tf_crop_and_resize"
            ),
            "needs a roi of 2 starts",
        ),
        (lambda x: topi.image.grid_sample(x, x, "area"), "knows NCHW with nearest"),
        (lambda x: topi.image.grid_sample(x, x, padding_mode="wrap"), "padding_mode is"),
        (lambda x: topi.image.affine_grid(topi.squeeze(x, 0), (1, 1)), r"data is \(batch, 2, 3\)"),
    ],
)
def test_image_operator_refuses_arguments_that_do_not_fit(fn, message):
    x = te.placeholder((1, 2, 4, 4), name="x")
    with pytest.raises(ValueError, match=message):
        fn(x)
