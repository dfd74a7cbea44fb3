"""Convolutions in numpy, of any number of spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

__all__ = [
    "conv1d_ncw_python",
    "conv1d_transpose_ncw_python",
    "conv2d_hwcn_python",
    "conv2d_nchw_python",
    "conv2d_nhwc_python",
    "conv2d_transpose_nchw_python",
    "conv2d_transpose_nhwc_python",
    "conv3d_ncdhw_python",
    "conv3d_ndhwc_python",
    "conv3d_transpose_ncdhw_python",
    "correlation_nchw_python",
    "depthwise_conv2d_python_nchw",
    "depthwise_conv2d_python_nhwc",
    "dilate_python",
]


def _each(value: Any, rank: int) -> list[int]:
    return (
        [int(v) for v in np.broadcast_to(value, rank)]
        if np.ndim(value) == 0
        else [*map(int, value)]
    )


def _pads(
    padding: Any, kernel: Sequence[int], stride: Sequence[int], size: Sequence[int]
) -> list[tuple[int, int]]:
    """Before and after each spatial axis; "VALID" and "SAME" are as in TensorFlow."""
    rank = len(kernel)
    if isinstance(padding, str):
        if padding == "VALID":
            return [(0, 0)] * rank
        if padding != "SAME":
            raise ValueError(f'padding must be numbers, "VALID" or "SAME", got "{padding}"')
        total = [
            max((-(-n // s) - 1) * s + k - n, 0)
            for n, s, k in zip(size, stride, kernel, strict=True)
        ]
        return [(t // 2, t - t // 2) for t in total]
    numbers = _each(padding, rank)
    if len(numbers) == rank:
        return [(p, p) for p in numbers]
    return list(zip(numbers[:rank], numbers[rank:], strict=True))


def dilate_python(
    input_np: np.ndarray,
    strides: Any,
    dilation_value: float = 0.0,
    out_dtype: str | None = None,
) -> np.ndarray:
    """Elements `strides` apart, with `dilation_value` between them."""
    steps = _each(strides, input_np.ndim)
    shape = [(n - 1) * s + 1 for n, s in zip(input_np.shape, steps, strict=True)]
    out = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    out[tuple(slice(None, None, s) for s in steps)] = input_np
    return out


def _conv(
    data: np.ndarray,
    weight: np.ndarray,
    stride: Any,
    padding: Any,
    groups: int = 1,
    dilation: Any = 1,
) -> np.ndarray:
    """Data (N, C, ...) and weights (O, C / groups, ...) to (N, O, ...), in the type of the data."""
    rank = data.ndim - 2
    steps = _each(stride, rank)
    weight = dilate_python(weight, [1, 1, *_each(dilation, rank)])
    kernel = weight.shape[2:]
    pads = _pads(padding, kernel, steps, data.shape[2:])
    kind = np.result_type(data.dtype, np.float64 if data.dtype.kind == "f" else data.dtype)
    padded = np.pad(data.astype(kind), [(0, 0), (0, 0), *pads])
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, kernel, axis=tuple(range(2, 2 + rank))
    )
    picked = (slice(None), slice(None), *(slice(None, None, s) for s in steps))
    windows = windows[picked]
    parts = []
    for part, own in zip(
        np.split(windows, groups, axis=1),
        np.split(weight.astype(kind), groups, axis=0),
        strict=True,
    ):
        axes = [1, *range(2 + rank, 2 + 2 * rank)]
        out = np.tensordot(part, own, axes=(axes, list(range(1, 2 + rank))))
        parts.append(np.moveaxis(out, -1, 1))
    return np.concatenate(parts, axis=1).astype(data.dtype)


def _transposed(
    data: np.ndarray,
    weight: np.ndarray,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int = 1,
) -> np.ndarray:
    """Data (N, C, ...) and weights (C, O / groups, ...) to (N, O, ...)."""
    rank = data.ndim - 2
    steps, more = _each(stride, rank), _each(output_padding, rank)
    kernel = weight.shape[2:]
    pads = _pads(padding, kernel, steps, data.shape[2:])
    spread = dilate_python(data, [1, 1, *steps])
    around = [
        (k - 1 - low, k - 1 - high + extra)
        for k, (low, high), extra in zip(kernel, pads, more, strict=True)
    ]
    spread = np.pad(spread, [(0, 0), (0, 0), *[(max(a, 0), max(b, 0)) for a, b in around]])
    cut = [slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(around, spread.shape[2:])]
    whole = (slice(None), slice(None))
    spread = spread[whole + tuple(cut)]
    flipped = np.flip(weight, axis=tuple(range(2, 2 + rank)))
    turned = [np.swapaxes(part, 0, 1) for part in np.split(flipped, groups, axis=0)]
    return _conv(spread, np.concatenate(turned, axis=0), 1, 0, groups)


def _first(data: np.ndarray) -> np.ndarray:
    return np.moveaxis(data, -1, 1)


def _last(data: np.ndarray) -> np.ndarray:
    return np.moveaxis(data, 1, -1)


def _weights_first(weight: np.ndarray) -> np.ndarray:
    """Weights (..., I, O) as (O, I, ...)."""
    return np.moveaxis(np.moveaxis(weight, -1, 0), -1, 1)


def conv1d_ncw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, dilation: Any, groups: int = 1
) -> np.ndarray:
    """Data (N, C, W), weights (O, I, W)."""
    return _conv(a_np, w_np, stride, padding, groups, dilation)


def conv2d_nchw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, groups: int = 1
) -> np.ndarray:
    """Data (N, C, H, W), weights (O, I, H, W)."""
    return _conv(a_np, w_np, stride, padding, groups)


def conv2d_nhwc_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, groups: int = 1
) -> np.ndarray:
    """Data (N, H, W, C), weights (H, W, I, O)."""
    return _last(_conv(_first(a_np), _weights_first(w_np), stride, padding, groups))


def conv2d_hwcn_python(a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any) -> np.ndarray:
    """Data (H, W, C, N), weights (H, W, I, O)."""
    data = a_np.transpose(3, 2, 0, 1)
    return _conv(data, _weights_first(w_np), stride, padding).transpose(2, 3, 1, 0)


def conv3d_ncdhw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, groups: int = 1
) -> np.ndarray:
    """Data (N, C, D, H, W), weights (O, I, D, H, W)."""
    return _conv(a_np, w_np, stride, padding, groups)


def conv3d_ndhwc_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, groups: int = 1
) -> np.ndarray:
    """Data (N, D, H, W, C), weights (D, H, W, I, O)."""
    return _last(_conv(_first(a_np), _weights_first(w_np), stride, padding, groups))


def depthwise_conv2d_python_nchw(
    input_np: np.ndarray, filter_np: np.ndarray, stride: Any, padding: Any
) -> np.ndarray:
    """Data (N, C, H, W), weights (C, multiplier, H, W)."""
    weight = filter_np.reshape(-1, 1, *filter_np.shape[2:])
    return _conv(input_np, weight, stride, padding, groups=input_np.shape[1])


def depthwise_conv2d_python_nhwc(
    input_np: np.ndarray, filter_np: np.ndarray, stride: Any, padding: Any
) -> np.ndarray:
    """Data (N, H, W, C), weights (H, W, C, multiplier)."""
    weight = filter_np.transpose(2, 3, 0, 1)
    return _last(depthwise_conv2d_python_nchw(_first(input_np), weight, stride, padding))


def conv1d_transpose_ncw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, output_padding: Any
) -> np.ndarray:
    """Data (N, C, W), weights (I, O, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nchw_python(
    a_np: np.ndarray,
    w_np: np.ndarray,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int = 1,
) -> np.ndarray:
    """Data (N, C, H, W), weights (I, O, H, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(
    a_nhwc: np.ndarray,
    weight: np.ndarray,
    weight_format: str,
    stride: Any,
    padding: Any,
    output_padding: Any = (0, 0),
) -> np.ndarray:
    """Data (N, H, W, C); `weight_format` names the axes of the weights, such as "HWIO"."""
    order = [weight_format.index(axis) for axis in "IOHW"]
    weight = weight.transpose(order)
    return _last(_transposed(_first(a_nhwc), weight, stride, padding, output_padding))


def conv3d_transpose_ncdhw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, output_padding: Any
) -> np.ndarray:
    """Data (N, C, D, H, W), weights (I, O, D, H, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding)


def correlation_nchw_python(
    data1: np.ndarray,
    data2: np.ndarray,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: int,
    is_multiply: bool,
) -> np.ndarray:
    """Mean products, or differences, of patches of two feature maps (N, C, H, W), by displacement.

    The operator of FlowNet (Dosovitskiy et al., 2015).
    """
    pads = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    one, two = np.pad(data1, pads), np.pad(data2, pads)
    n, channels, height, width = one.shape
    half = (kernel_size - 1) // 2
    border = max_displacement + half
    rows = range(border, height - border, stride1)
    columns = range(border, width - border, stride1)
    reach = max_displacement // stride2
    shifts = [i * stride2 for i in range(-reach, reach + 1)]
    out = np.zeros((n, len(shifts) ** 2, len(rows), len(columns)), data1.dtype)

    def patch(data: np.ndarray, y: int, x: int) -> np.ndarray:
        return data[:, :, y - half : y - half + kernel_size, x - half : x - half + kernel_size]

    for at, (dy, dx) in enumerate(product(shifts, shifts)):
        for (i, y), (j, x) in product(enumerate(rows), enumerate(columns)):
            a, b = patch(one, y, x), patch(two, y + dy, x + dx)
            value = a * b if is_multiply else np.abs(a - b)
            out[:, at, i, j] = value.sum(axis=(1, 2, 3))
    return out / (kernel_size * kernel_size * channels)
