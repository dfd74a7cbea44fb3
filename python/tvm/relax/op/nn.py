"""Graph operators of neural networks."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import RelayExpr

from ..expr import Call
from .base import make_call

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool2d",
    "batch_norm",
    "conv2d",
    "dense",
    "gelu",
    "gelu_tanh",
    "hardsigmoid",
    "hardswish",
    "leakyrelu",
    "log_softmax",
    "max_pool2d",
    "pad",
    "relu",
    "relu6",
    "silu",
    "softmax",
    "winograd_input_transform",
    "winograd_output_transform",
    "winograd_product",
]

Size = int | Sequence[int]


def _sizes(value: Size) -> list[int]:
    return [value] if isinstance(value, int) else [int(v) for v in value]


def conv2d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
) -> Call:
    """Two-dimensional convolution.

    Parameters
    ----------
    padding : one size, (height, width) or (top, left, bottom, right).
    data_layout, kernel_layout : NCHW with OIHW, or NHWC with HWIO, or, for depthwise convolution,
        NHWC with HWOI: (kernel height, kernel width, channels, filters of each channel).
    """
    return make_call(
        "nn.conv2d",
        data,
        weight,
        strides=_sizes(strides),
        padding=_sizes(padding),
        dilation=_sizes(dilation),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
    )


def dense(data: RelayExpr, weight: RelayExpr) -> Call:
    """data @ weight.T over the last dimension of data; weight is (out, in)."""
    return make_call("nn.dense", data, weight)


def max_pool2d(
    data: RelayExpr,
    pool_size: Size,
    strides: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    layout: str = "NCHW",
) -> Call:
    """Largest element of each window; the stride defaults to the window."""
    return make_call(
        "nn.max_pool2d",
        data,
        kernel=_sizes(pool_size),
        stride=_sizes(pool_size if strides is None else strides),
        padding=_sizes(padding),
        dilation=_sizes(dilation),
        ceil_mode=ceil_mode,
        layout=layout,
    )


def avg_pool2d(
    data: RelayExpr,
    pool_size: Size,
    strides: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
) -> Call:
    """Mean of each window; the stride defaults to the window."""
    return make_call(
        "nn.avg_pool2d",
        data,
        kernel=_sizes(pool_size),
        stride=_sizes(pool_size if strides is None else strides),
        padding=_sizes(padding),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
    )


def adaptive_avg_pool2d(data: RelayExpr, output_size: Size, layout: str = "NCHW") -> Call:
    """Mean over windows that divide height and width into output_size pieces."""
    return make_call("nn.adaptive_avg_pool2d", data, output_size=_sizes(output_size), layout=layout)


def batch_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    moving_mean: RelayExpr,
    moving_var: RelayExpr,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> Call:
    """Inference form of batch normalisation, after Ioffe and Szegedy, ICML 2015.

    The result is a tuple: the normalised data, then the moving mean and variance as given.
    """
    return make_call(
        "nn.batch_norm", data, gamma, beta, moving_mean, moving_var, axis=axis, epsilon=epsilon
    )


def pad(
    data: RelayExpr,
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0.0,
) -> Call:
    """data with a border of a constant, sizes for each dimension."""
    return make_call(
        "nn.pad",
        data,
        pad_before=list(pad_before),
        pad_after=list(pad_after),
        pad_value=float(pad_value),
    )


def relu(data: RelayExpr) -> Call:
    """max(data, 0)."""
    return make_call("nn.relu", data)


def relu6(data: RelayExpr) -> Call:
    """data limited to [0, 6]."""
    return make_call("clip", data, a_min=0.0, a_max=6.0)


def leakyrelu(data: RelayExpr, alpha: float = 0.01) -> Call:
    """data where positive, alpha * data elsewhere."""
    return make_call("nn.leakyrelu", data, alpha=alpha)


def gelu(data: RelayExpr) -> Call:
    """Gaussian error linear unit in its exact form."""
    return make_call("nn.gelu", data)


def gelu_tanh(data: RelayExpr) -> Call:
    """Gaussian error linear unit in its tanh approximation."""
    return make_call("nn.gelu", data, approximate="tanh")


def silu(data: RelayExpr) -> Call:
    """data * sigmoid(data)."""
    return make_call("nn.silu", data)


def hardsigmoid(data: RelayExpr) -> Call:
    """relu6(data + 3) / 6."""
    return make_call("nn.hardsigmoid", data)


def hardswish(data: RelayExpr) -> Call:
    """data * relu6(data + 3) / 6."""
    return make_call("nn.hardswish", data)


def softmax(data: RelayExpr, axis: int = -1) -> Call:
    """exp(data) divided by its sum along one dimension."""
    return make_call("nn.softmax", data, axis=axis)


def log_softmax(data: RelayExpr, axis: int = -1) -> Call:
    """Logarithm of softmax."""
    return make_call("nn.log_softmax", data, axis=axis)


def winograd_input_transform(
    data: RelayExpr, tile_size: int, kernel_size: int = 3, padding: Size = 0
) -> Call:
    """Tiles of NHWC data in the domain of Winograd's filtering: (n * n, tiles, channels).

    n is tile_size + kernel_size - 1; see ``topi.nn.winograd_input_transform``.
    """
    return make_call(
        "nn.winograd_input_transform",
        data,
        tile_size=tile_size,
        kernel_size=kernel_size,
        padding=_sizes(padding),
    )


def winograd_product(data: RelayExpr, weight: RelayExpr) -> Call:
    """Transformed data times (n * n, channels, filters) weights: (n * n, tiles, filters)."""
    return make_call("nn.winograd_product", data, weight)


def winograd_output_transform(
    product: RelayExpr, out_size: Size, tile_size: int, kernel_size: int = 3
) -> Call:
    """The NHWC image, of height and width `out_size`, that transformed products stand for."""
    return make_call(
        "nn.winograd_output_transform",
        product,
        out_size=_sizes(out_size),
        tile_size=tile_size,
        kernel_size=kernel_size,
    )
