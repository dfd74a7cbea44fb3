"""Operators other than convolutions in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

__all__ = [
    "adaptive_pool",
    "batch_matmul",
    "dense",
    "l2_normalize_python",
    "log_softmax_python",
    "lrn_python",
    "matrix_set_diag",
    "nll_loss",
    "one_hot",
    "poolnd_python",
    "sequence_mask",
    "softmax_python",
]


def softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """Exponentials in parts of their sum along `axis`."""
    powers = np.exp(a_np - a_np.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def log_softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """Logarithms of `softmax_python`."""
    moved = a_np - a_np.max(axis=axis, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))


def l2_normalize_python(a_np: np.ndarray, eps: float, axis: Any = None) -> np.ndarray:
    """Values over the root of the sum of squares along `axis`, which is at least `eps`."""
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else axis
    squares = (a_np * a_np).sum(axis=axes, keepdims=True)
    return a_np / np.sqrt(np.maximum(squares, eps))


def lrn_python(
    a_np: np.ndarray, size: int, axis: int, bias: float, alpha: float, beta: float
) -> np.ndarray:
    """Local response normalisation over `size` neighbours along `axis`."""
    half = (size - 1) // 2
    pads = [(half, half) if k == axis else (0, 0) for k in range(a_np.ndim)]
    squares = np.pad(a_np * a_np, pads)
    total = np.lib.stride_tricks.sliding_window_view(squares, size, axis=axis).sum(axis=-1)
    return a_np / np.power(bias + alpha * total / size, beta)


def dense(
    x: np.ndarray,
    y: np.ndarray,
    bias: np.ndarray,
    use_bias: bool = False,
    use_relu: bool = False,
    out_dtype: str | None = None,
) -> np.ndarray:
    """Rows of x times rows of y, with a bias and a rectifier on request."""
    kind = out_dtype or x.dtype
    out = x.astype(kind) @ y.astype(kind).T
    if use_bias:
        out = out + bias
    return np.maximum(out, 0) if use_relu else out


def batch_matmul(
    x: np.ndarray,
    y: np.ndarray,
    out_dtype: str | None = None,
    trans_x: bool = False,
    trans_y: bool = True,
) -> np.ndarray:
    """Products of matrices (batch, M, K) and (batch, N, K); a batch of one goes with any."""
    left = x.swapaxes(1, 2) if trans_x else x
    right = y.swapaxes(1, 2) if trans_y else y
    kind = out_dtype or x.dtype
    return np.matmul(left.astype(kind), right.astype(kind))


def sequence_mask(
    data: np.ndarray, valid_length: np.ndarray, mask_value: float, axis: int
) -> np.ndarray:
    """`mask_value` behind the length of each sequence; `axis` (0 or 1) is that of time."""
    steps = np.arange(data.shape[axis])
    behind = steps[:, None] >= valid_length[None, :]
    behind = behind if axis == 0 else behind.T
    behind = behind.reshape(behind.shape + (1,) * (data.ndim - 2))
    return np.where(behind, np.asarray(mask_value, data.dtype), data)


def one_hot(
    indices: np.ndarray, on_value: float, off_value: float, depth: int, axis: int, dtype: str
) -> np.ndarray:
    """`on_value` at the place of each index along a new axis, `off_value` elsewhere."""
    hit = indices[..., None] == np.arange(depth)
    out = np.where(hit, on_value, off_value).astype(dtype)
    return np.moveaxis(out, -1, axis)


def nll_loss(
    predictions: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> np.ndarray:
    """Negative log likelihood of the classes `targets`; predictions are (N, C, ...)."""
    known = targets != ignore_index
    classes = np.where(known, targets, 0)
    factor = np.where(known, weights[classes], 0).astype(weights.dtype)
    chosen = np.take_along_axis(predictions, np.expand_dims(classes, 1), axis=1)
    loss = -chosen.squeeze(1) * factor
    if reduction == "mean":
        return loss.sum() / factor.sum()
    return loss.sum() if reduction == "sum" else loss


def matrix_set_diag(
    input_np: np.ndarray, diagonal: np.ndarray, k: Any = 0, align: str = "RIGHT_LEFT"
) -> np.ndarray:
    """The matrices with diagonals `k` (one, or the lowest and the highest) replaced.

    `diagonal` holds the highest first; `align` says where short ones above and below the main
    diagonal stand in their rows.
    """
    low, high = (k, k) if isinstance(k, int) else (int(k[0]), int(k[-1]))
    out = np.array(input_np, copy=True)
    rows, columns = out.shape[-2:]
    longest = min(rows + min(high, 0), columns - max(low, 0))
    for at, offset in enumerate(range(high, low - 1, -1)):
        length = min(rows + min(offset, 0), columns - max(offset, 0))
        values = diagonal if low == high else diagonal[..., at, :]
        side = align.split("_")[0 if offset >= 0 else 1]
        start = longest - length if side == "RIGHT" else 0
        for step in range(length):
            row, column = step - min(offset, 0), step + max(offset, 0)
            out[..., row, column] = values[..., start + step]
    return out


def _pool_axes(rank: int, layout: str | None) -> list[int]:
    """Spatial axes: those of D, H and W in the layout, by default all but the first two."""
    if layout is None:
        return list(range(2, rank))
    return [at for at, axis in enumerate(layout) if axis in "DHW"]


def poolnd_python(
    np_data: np.ndarray,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dtype: str = "float32",
    layout: str | None = None,
) -> np.ndarray:
    """Maxima ("max") or means ("avg") over windows of the spatial axes."""
    axes = _pool_axes(np_data.ndim, layout)
    sizes = [
        np_data.shape[a] + p + q - d * (k - 1) - 1
        for a, k, d, p, q in zip(axes, kernel, dilation, padding_before, padding_after, strict=True)
    ]
    counts = [
        (-(-n // s) if ceil_mode else n // s) + 1 for n, s in zip(sizes, strides, strict=True)
    ]
    shape = list(np_data.shape)
    for axis, count in zip(axes, counts, strict=True):
        shape[axis] = count
    out = np.zeros(shape, dtype)
    is_real = np.issubdtype(np_data.dtype, np.floating)
    lowest = (np.finfo if is_real else np.iinfo)(np_data.dtype).min
    for place in product(*(range(count) for count in counts)):
        own: list[Any] = [slice(None)] * np_data.ndim
        read: list[Any] = [slice(None)] * np_data.ndim
        total = 1
        for i, axis in enumerate(axes):
            own[axis] = place[i]
            start = place[i] * strides[i] - padding_before[i]
            end = min(start + kernel[i] * dilation[i], np_data.shape[axis] + padding_after[i])
            steps = range(start, end, dilation[i])
            inside = [p for p in steps if 0 <= p < np_data.shape[axis]]
            total *= len(steps) if count_include_pad else max(len(inside), 1)
            read[axis] = inside
        window = np_data
        for axis in axes:
            window = np.take(window, read[axis], axis=axis)
        if pool_type == "avg":
            value = window.sum(axis=tuple(axes), dtype="float64") / total
        elif window.size:
            value = window.max(axis=tuple(axes))
        else:  # nothing but padding
            value = lowest
        out[tuple(own)] = value
    return out


def adaptive_pool(
    np_data: np.ndarray,
    out_size: int | Sequence[int],
    pool_type: str = "avg",
    layout: str | None = None,
) -> np.ndarray:
    """Means ("avg") or maxima ("max") over windows that cut the spatial axes in parts."""
    axes = _pool_axes(np_data.ndim, layout)
    out_size = [out_size] * len(axes) if isinstance(out_size, int) else out_size
    shape = list(np_data.shape)
    for axis, size in zip(axes, out_size, strict=True):
        shape[axis] = size
    out = np.zeros(shape, np_data.dtype)
    for place in product(*(range(size) for size in out_size)):
        own: list[Any] = [slice(None)] * np_data.ndim
        read: list[Any] = [slice(None)] * np_data.ndim
        for axis, at, size in zip(axes, place, out_size, strict=True):
            length = np_data.shape[axis]
            own[axis] = at
            read[axis] = slice(at * length // size, -(-(at + 1) * length // size))
        window = np_data[tuple(read)]
        reduce = np.mean if pool_type == "avg" else np.max
        out[tuple(own)] = reduce(window, axis=tuple(axes))
    return out
