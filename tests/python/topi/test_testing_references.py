"""The numpy references of tvm.topi.testing, against PyTorch."""

import numpy as np
import pytest

from tvm.topi import testing

torch = pytest.importorskip("torch")
functional = torch.nn.functional


def random(*shape):
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype("float32")


def close(found, expected):
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("groups", "stride", "padding"), [(1, 2, 1), (2, (1, 2), (0, 1))])
def test_convolutions(groups, stride, padding):
    data, weight = random(2, 4, 7, 8), random(6, 4 // groups, 3, 2)
    expected = functional.conv2d(
        torch.tensor(data), torch.tensor(weight), None, stride, padding, 1, groups
    )
    close(testing.conv2d_nchw_python(data, weight, stride, padding, groups), expected)
    found = testing.conv2d_nhwc_python(
        data.transpose(0, 2, 3, 1), weight.transpose(2, 3, 1, 0), stride, padding, groups
    )
    close(found.transpose(0, 3, 1, 2), expected)


def test_convolutions_of_other_ranks():
    data, weight = random(1, 2, 9), random(3, 2, 3)
    expected = functional.conv1d(torch.tensor(data), torch.tensor(weight), None, 2, 2, 2)
    close(testing.conv1d_ncw_python(data, weight, 2, 2, 2), expected)
    data, weight = random(1, 2, 5, 6, 7), random(3, 2, 3, 3, 2)
    expected = functional.conv3d(torch.tensor(data), torch.tensor(weight), None, 1, 1)
    close(testing.conv3d_ncdhw_python(data, weight, 1, 1), expected)
    data, weight = random(1, 4, 6, 6), random(4, 2, 3, 3)
    expected = functional.conv2d(
        torch.tensor(data), torch.tensor(weight.reshape(8, 1, 3, 3)), None, 1, 1, 1, 4
    )
    close(testing.depthwise_conv2d_python_nchw(data, weight, 1, "SAME"), expected)


@pytest.mark.parametrize("padding", [0, 1, (1, 0)])
def test_transposed_convolutions(padding):
    data, weight = random(1, 4, 5, 6), random(4, 3, 3, 4)
    expected = functional.conv_transpose2d(
        torch.tensor(data), torch.tensor(weight), None, 2, padding, 1
    )
    found = testing.conv2d_transpose_nchw_python(data, weight, 2, padding, (1, 1))
    close(found, expected)
    found = testing.conv2d_transpose_nhwc_python(
        data.transpose(0, 2, 3, 1), weight.transpose(2, 3, 0, 1), "HWIO", 2, padding, (1, 1)
    )
    close(found.transpose(0, 3, 1, 2), expected)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("count_pad", [False, True])
def test_pools(ceil, count_pad):
    data = random(1, 2, 7, 8)
    given = (data, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1))
    expected = functional.avg_pool2d(torch.tensor(data), 3, 2, 1, ceil, count_pad)
    close(testing.poolnd_python(*given, "avg", count_pad, ceil), expected)
    expected = functional.max_pool2d(torch.tensor(data), 3, 2, 1, 1, ceil)
    close(testing.poolnd_python(*given, "max", ceil_mode=ceil), expected)
    expected = functional.adaptive_avg_pool2d(torch.tensor(data), (3, 5))
    close(testing.adaptive_pool(data, (3, 5)), expected)


def test_normalisations_and_losses():
    data = random(3, 5, 4)
    tensor = torch.tensor(data)
    close(testing.softmax_python(data, 1), functional.softmax(tensor, 1))
    close(testing.log_softmax_python(data, -1), functional.log_softmax(tensor, -1))
    close(
        testing.lrn_python(data, 3, 1, 1.0, 0.2, 0.5),
        functional.local_response_norm(tensor, 3, 0.2, 0.5, 1.0),
    )
    targets = np.array([[0, 4, 2, -100], [1, 1, 3, 0], [2, -100, 4, 4]])
    weights = np.abs(random(5))
    expected = functional.nll_loss(
        tensor, torch.tensor(targets), torch.tensor(weights), ignore_index=-100
    )
    close(testing.nll_loss(data, targets, weights), expected)


@pytest.mark.parametrize(
    ("method", "mode", "theirs"),
    [
        ("linear", "align_corners", {"mode": "bilinear", "align_corners": True}),
        ("linear", "half_pixel", {"mode": "bilinear", "align_corners": False}),
        ("cubic", "half_pixel", {"mode": "bicubic", "align_corners": False}),
        ("nearest_neighbor", "asymmetric", {"mode": "nearest"}),
    ],
)
def test_resizes(method, mode, theirs):
    data = random(1, 2, 4, 5)
    expected = functional.interpolate(torch.tensor(data), (8, 15), **theirs)
    close(testing.resize2d_python(data, (2, 3), "NCHW", method, mode, alpha=-0.75), expected)


def test_diagonals_of_matrices():
    found = testing.matrix_set_diag(np.zeros((3, 4)), np.array([[1, 2, 3], [4, 5, 0]]), (-1, 0))
    np.testing.assert_array_equal(found, [[1, 0, 0, 0], [4, 2, 0, 0], [0, 5, 3, 0]])
