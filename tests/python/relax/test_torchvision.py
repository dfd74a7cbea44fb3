"""Operators of torchvision, against it or against slow definitions of the same names."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import testing_torchvision as testing_torchvision
from testing_torch_programs import check, imported
from tvm import felix

few = settings(max_examples=5, deadline=None)
ops = torch.ops.torchvision


def regions(count, extent, seed):
    """Rows of batch index, left, top, right and bottom, some of them outside of the image."""
    generator = torch.Generator().manual_seed(seed)
    corners = torch.rand(count, 2, 2, generator=generator) * (extent + 20) - 10
    images = torch.randint(0, 2, (count, 1), generator=generator).float()
    return torch.cat([images, corners.amin(1), corners.amax(1)], 1)


@few
@given(
    size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    ratio=st.sampled_from([-1, 0, 1, 3]),
    aligned=st.booleans(),
    scale=st.sampled_from([1.0, 0.25, 0.3]),
    seed=st.integers(0, 99),
)
def test_regions_are_sampled_as_by_torchvision(size, ratio, aligned, scale, seed):
    data = torch.randn(2, 3, 7, 9)
    rois = regions(5, 9 / scale, seed)
    rois[0, 3:] = rois[0, 1:3]  # Without extent.

    def align(data, rois):
        return ops.roi_align(data, rois, scale, *size, ratio, aligned)

    check(align, data, rois)


@few
@given(
    channels=st.sampled_from([3, 8, 12, 66, 67, 96, 130]),
    ratio=st.sampled_from([-1, 2]),
    aligned=st.booleans(),
    convolved=st.booleans(),
    seed=st.integers(0, 99),
)
def test_channels_of_a_sample_are_vectors(channels, ratio, aligned, convolved, seed):
    """Images lie by pixels for it, with a convolution before or behind it or none."""
    torch.manual_seed(seed)
    before = torch.nn.Conv2d(4, channels, 3, padding=1).eval().requires_grad_(False)
    behind = torch.nn.Conv2d(channels, 5, 3).eval().requires_grad_(False)

    def align(data, rois):
        data = before(data) if convolved else data
        found = ops.roi_align(data, rois, 0.5, 4, 3, ratio, aligned)
        return found if convolved else (found, behind(found))

    data = torch.randn(2, 4 if convolved else channels, 7, 9)
    check(align, data, regions(5, 18, seed))


@few
@given(
    size=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    ratio=st.sampled_from([-1, 2]),
    scale=st.sampled_from([1.0, 0.25]),
    seed=st.integers(0, 99),
)
def test_channels_of_each_bin_are_sampled_as_by_torchvision(size, ratio, scale, seed):
    data = torch.randn(2, 2 * size[0] * size[1], 7, 9)
    rois = regions(4, 9 / scale, seed)
    check(lambda d, r: ops.ps_roi_align(d, r, scale, *size, ratio)[0], data, rois)
    check(lambda d, r: ops.ps_roi_pool(d, r, scale, *size)[0], data, rois)


@few
@given(
    size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    scale=st.sampled_from([1.0, 0.25]),
    seed=st.integers(0, 99),
)
def test_regions_are_pooled_as_by_torchvision(size, scale, seed):
    data, rois = torch.randn(2, 3, 7, 9), regions(5, 9 / scale, seed)
    check(lambda d, r: ops.roi_pool(d, r, scale, *size)[0], data, rois)


def test_places_of_maxima_are_refused():
    with pytest.raises(ValueError, match=r"torchvision.roi_pool.default whose result 1 is read"):
        imported(
            lambda d, r: ops.roi_pool(d, r, 1.0, 2, 2)[1], torch.randn(1, 3, 7, 9), regions(2, 9, 0)
        )


@few
@given(
    window=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.integers(1, 2),
    padding=st.integers(0, 1),
    dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2]),
    bends=st.sampled_from([1, 2, 4]),
    use_mask=st.booleans(),
)
def test_bent_convolutions_equal_torchvision(
    window, stride, padding, dilation, groups, bends, use_mask
):
    rows, columns = (
        (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for n, k in zip((6, 7), window)
    )
    cells = bends * window[0] * window[1]
    offset = torch.randn(2, 2 * cells, rows, columns) * 2
    mask = torch.rand(2, cells if use_mask else 0, rows, columns)
    weight, bias = torch.randn(6, 4 // groups, *window), torch.randn(6)

    def convolution(data, weight, offset, mask, bias):
        return ops.deform_conv2d(
            data, weight, offset, mask, bias, stride, stride, padding, padding, dilation, dilation,
            groups, bends, use_mask,
        )  # fmt: skip

    check(convolution, torch.randn(2, 4, 6, 7), weight, offset, mask, bias)


class Detector(torch.nn.Module):
    """Boxes and scores of each pixel, the best boxes, and what the image has there."""

    def __init__(self):
        super().__init__()
        self.features = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.scores = torch.nn.Conv2d(8, 1, 1)
        self.boxes = torch.nn.Conv2d(8, 4, 1)

    def forward(self, image):
        found = torch.relu(self.features(image))
        scores = self.scores(found).flatten()
        boxes = self.boxes(found).permute(0, 2, 3, 1).reshape(-1, 4)
        boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs() + 1], 1)
        kept = ops.nms(boxes, scores, 0.3)[:5]
        rois = torch.cat([torch.zeros(kept.shape[0], 1), boxes[kept]], 1)
        return scores[kept], ops.roi_align(found, rois, 1.0, 2, 2, 2, True)


def test_a_detector_is_refused_with_the_operator_whose_size_depends_on_the_data():
    with pytest.raises(ValueError, match=r"torchvision.nms.default \(gives a result whose size"):
        felix.compile(lambda b, s: ops.nms(b, s, 0.5), (torch.rand(4, 4), torch.rand(4)))


def test_a_detector_runs_whole_under_torch_compile():
    torch.manual_seed(3)
    model, image = Detector().eval(), torch.randn(1, 3, 6, 6)
    compiled = torch.compile(model, backend="felix", options={"cache": False})
    with torch.no_grad():
        for value in (image, torch.randn(1, 3, 6, 6)):
            torch.testing.assert_close(compiled(value), model(value), rtol=1e-4, atol=1e-4)
