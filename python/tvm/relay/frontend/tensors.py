"""Small computations on tensors that other formats have as operators or settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import error
from tvm.ir import RelayExpr

from .. import op
from ..expr import Tuple, TupleWrapper, const
from ..ty import is_dynamic
from .inference import infer_shape, infer_type

__all__ = ["autopad", "ensure_scalar_shape", "shape_of", "to_int_list", "unbind"]


def to_int_list(np_array: Any) -> list[int]:
    """The elements of an array as Python's integers."""
    return [int(value) for value in np.asarray(np_array).reshape(-1)]


def unbind(data: RelayExpr, axis: int = 0) -> TupleWrapper:
    """The slices of a tensor along an axis, without that axis.

    Raises
    ------
    ValueError : there is no such axis, or its extent is not known.
    """
    shape = infer_shape(data)
    if not -len(shape) <= axis < len(shape):
        raise error.ValueError(f"unbind: axis {axis} of a tensor of {len(shape)} axes")
    count = shape[axis]
    if not isinstance(count, int):
        raise error.ValueError(f"unbind: the extent of axis {axis} must be known")
    parts = op.split(data, count, axis=axis) if count > 1 else [data]
    return TupleWrapper(Tuple([op.squeeze(part, axis=[axis]) for part in parts]), count)


def shape_of(x: RelayExpr, dtype: str = "int64") -> RelayExpr:
    """The shape as a tensor: a constant, unless an extent is known only when the program runs."""
    found = infer_type(x).checked_type
    if is_dynamic(found):
        return op.shape_of(x, dtype)
    return const(np.array([int(extent) for extent in found.shape], dtype), dtype)


def ensure_scalar_shape(x: RelayExpr) -> RelayExpr:
    """A tensor of one element without axes.

    Raises
    ------
    ValueError : it has more elements.
    """
    shape = infer_shape(x)
    if not shape:
        return x
    if any(extent != 1 for extent in shape):
        raise error.ValueError(f"ensure_scalar_shape: a tensor of shape {shape} is no scalar")
    return op.squeeze(x, axis=list(range(len(shape))))


def autopad(
    data: RelayExpr,
    strides: Sequence[int],
    kernel_shape: Sequence[int],
    dilations: Sequence[int] = (1, 1),
    pad_type: str = "constant",
    deconv: bool = False,
    mode: str = "SAME_UPPER",
    pad_value: float = 0.0,
) -> RelayExpr:
    """The data with borders so that a window of the spatial axes, which are the last ones, gives
    ceil(extent / stride) places, as ONNX' `auto_pad` says it.

    Parameters
    ----------
    pad_type : "constant", "edge" or "reflect".
    deconv : whether the window is that of a transposed convolution, which pads what it gives.
    mode : "SAME_UPPER" or "SAME_LOWER": where an odd border has its larger half, behind or before.

    Raises
    ------
    ValueError : another mode.
    """
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise error.ValueError(f"autopad: mode is SAME_UPPER or SAME_LOWER, got {mode}")
    rank = len(infer_shape(data))
    places = len(strides)
    dilations = list(dilations) if len(dilations) == places else [1] * places
    windows = [(k - 1) * d + 1 for k, d in zip(kernel_shape, dilations)]
    extents = infer_shape(data)[rank - places :]
    if all(isinstance(extent, int) for extent in extents):
        total = [_border(e, s, w, deconv) for e, s, w in zip(extents, strides, windows)]
        sides = [(t // 2, t - t // 2) for t in total]
        if mode == "SAME_LOWER":
            sides = [(after, before) for before, after in sides]
        width = [(0, 0)] * (rank - places) + sides
        return op.nn.pad(data, width, const(pad_value, _dtype(data)), pad_type)
    step, window = (const(np.array(v, "int64"), "int64") for v in (strides, windows))
    sizes = op.strided_slice(op.shape_of(data, "int64"), [rank - places], [rank])
    zero = const(np.zeros(places, "int64"), "int64")
    if deconv:
        border = op.subtract(window, step)
    else:
        rest = op.mod(sizes, step)
        border = op.subtract(window, op.where(op.equal(rest, zero), step, rest))
    border = op.maximum(border, zero)
    half = op.floor_divide(border, const(np.full(places, 2, "int64"), "int64"))
    pair = [half, op.subtract(border, half)]
    if mode == "SAME_LOWER":
        pair.reverse()
    sided = op.stack(pair, axis=1)
    outer = const(np.zeros((rank - places, 2), "int64"), "int64")
    return op.nn.pad(
        data, op.concatenate([outer, sided], axis=0), const(pad_value, _dtype(data)), pad_type
    )


def _border(extent: int, stride: int, window: int, deconv: bool) -> int:
    """How much is added to an axis, on both sides together."""
    if deconv:
        return max(window - stride, 0)
    return max(window - (extent % stride or stride), 0)


def _dtype(data: RelayExpr) -> str:
    return str(infer_type(data).checked_type.dtype)
