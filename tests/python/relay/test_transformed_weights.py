"""Convolutions of images whose weights are transformed beforehand."""

import numpy as np
import pytest
import torch

from tvm import relay
from tvm.relay.op.nn.utils import get_pad_tuple1d, get_pad_tuple2d, get_pad_tuple3d

RNG = np.random.default_rng(11)


def _run(expr, *args):
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor("graph").evaluate(func)(*args).numpy()


def _expected(data, weight, stride, padding):
    return torch.nn.functional.conv2d(
        torch.tensor(data), torch.tensor(weight), stride=stride, padding=padding
    ).numpy()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("tile", "window"), [(2, 3), (4, 3), (2, 5)])
def test_winograd_of_transformed_weights_is_the_convolution(layout, tile, window):
    data = RNG.standard_normal((1, 4, 9, 8)).astype("float32")
    weight = RNG.standard_normal((6, 4, window, window)).astype("float32")
    given = data if layout == "NCHW" else data.transpose(0, 2, 3, 1)
    x, w = relay.var("x", shape=given.shape), relay.var("w", shape=weight.shape)
    form = relay.nn.contrib_conv2d_winograd_weight_transform(w, tile)
    result = relay.nn.contrib_conv2d_winograd_without_weight_transform(
        x, form, tile, padding=(1, 1), channels=6, kernel_size=(window, window), data_layout=layout
    )
    typed = relay.transform.InferTypeLocal(form)
    side = tile + window - 1
    assert typed.concrete_shape == (side, side, 6, 4)
    found = _run(result, np.ascontiguousarray(given), weight)
    wanted = _expected(data, weight, 1, 1)
    wanted = wanted if layout == "NCHW" else wanted.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("channels", "filters", "tiles"), [(4, 8, (4, 16)), (5, 7, (4, 16))])
@pytest.mark.parametrize("stride", [1, 2])
def test_tiles_of_weights_give_the_convolution(channels, filters, tiles, stride):
    data = RNG.standard_normal((2, 7, 6, channels)).astype("float32")
    weight = RNG.standard_normal((3, 3, channels, filters)).astype("float32")
    x, w = relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape)
    form = relay.nn.contrib_conv2d_gemm_weight_transform(w, *tiles)
    result = relay.nn.contrib_conv2d_gemm_without_weight_transform(
        x, form, strides=stride, padding=1, channels=filters, kernel_size=3
    )
    packed = _run(form, weight)
    depth = 9 * channels
    assert packed.shape == (-(-filters // 4), -(-depth // 16), 4, 16)
    plain = packed.transpose(1, 3, 0, 2).reshape(packed.shape[1] * 16, -1)
    np.testing.assert_array_equal(plain[:depth, :filters], weight.reshape(depth, filters))
    assert not plain[depth:].any() and not plain[:, filters:].any()
    wanted = _expected(data.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1), stride, 1)
    np.testing.assert_allclose(
        _run(result, data, weight), wanted.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-4
    )


def test_what_the_forms_do_not_serve_is_refused():
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 4, 4))
    winograd = relay.nn.contrib_conv2d_winograd_without_weight_transform
    with pytest.raises(ValueError, match="strides, dilation and groups are 1"):
        winograd(x, w, 2, strides=2)
    with pytest.raises(ValueError, match="data_layout is one of NCHW, NHWC"):
        winograd(x, w, 2, data_layout="HWCN")
    gemm = relay.nn.contrib_conv2d_gemm_without_weight_transform
    with pytest.raises(ValueError, match="channels and kernel_size are given"):
        gemm(x, w, channels=4)
    with pytest.raises(ValueError, match="data_layout is one of NHWC"):
        gemm(x, w, channels=4, kernel_size=3, data_layout="NCHW")


def test_borders_are_written_out():
    assert get_pad_tuple1d(2) == (2, 2) and get_pad_tuple1d((1, 2)) == (1, 2)
    assert get_pad_tuple2d((1, 2)) == (1, 2, 1, 2) and get_pad_tuple2d(3) == (3, 3, 3, 3)
    assert get_pad_tuple3d((1, 2, 3)) == (1, 2, 3, 1, 2, 3)
    with pytest.raises(ValueError, match="padding of 3 sizes over 2 axes"):
        get_pad_tuple2d((1, 2, 3))
