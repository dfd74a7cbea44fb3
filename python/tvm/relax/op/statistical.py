"""Reductions, scans, and positions of extrema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tir
from tvm.ir import RelayExpr

from ..expr import Call
from ..struct_info import TensorStructInfo
from .base import make_call
from .registry import register_rule
from .rules import (
    axes_of,
    axis_of,
    known_shape,
    opaque_tensor,
    product,
    same_as_operand,
    setting,
    tensor,
    with_shape,
)

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "variance",
]

Axis = int | Sequence[int] | None


def _axes(axis: Axis) -> list[int] | None:
    if axis is None:
        return None
    return [int(a) for a in axis] if isinstance(axis, Sequence) else [int(axis)]


def _reduced(call: Call, info: TensorStructInfo, dtype: Any) -> TensorStructInfo:
    axes, keep = setting(call, "axis"), setting(call, "keepdims", False)
    if isinstance(axes, int):
        axes = (axes,)
    if info.ndim == -1:
        rank = 0 if axes is None and not keep else -1
        if rank == 0:
            return with_shape([], dtype, info.vdevice)
        return opaque_tensor(dtype, rank, info.vdevice)
    places = list(range(info.ndim)) if axes is None else axes_of(call, axes, info.ndim)
    if axes is None and not keep:
        return with_shape([], dtype, info.vdevice)
    if not places:
        return same_as_operand(info, str(dtype))
    shape = known_shape(info)
    if shape is None:
        if keep and axes is None:
            return with_shape([1] * info.ndim, dtype, info.vdevice)
        return opaque_tensor(dtype, info.ndim if keep else info.ndim - len(places), info.vdevice)
    one = tir.const(1, "int64")
    rest = [one if k in places else e for k, e in enumerate(shape) if keep or k not in places]
    return with_shape(rest, dtype, info.vdevice)


def _reduction(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    return _reduced(call, info, info.dtype)


def _test(call: Call) -> TensorStructInfo:
    return _reduced(call, tensor(call, 0), "bool")


def _position(call: Call) -> TensorStructInfo:
    return _reduced(call, tensor(call, 0), setting(call, "dtype", "int64"))


def sum(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Sum over the given dimensions, or over all."""
    return make_call("sum", x, axis=_axes(axis), keepdims=keepdims)


def prod(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Product over the given dimensions, or over all."""
    return make_call("prod", x, axis=_axes(axis), keepdims=keepdims)


def mean(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Arithmetic mean over the given dimensions, or over all."""
    return make_call("mean", x, axis=_axes(axis), keepdims=keepdims)


def variance(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Mean of the squared differences from the mean, over the given dimensions or all."""
    return make_call("variance", x, axis=_axes(axis), keepdims=keepdims)


def std(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Square root of the variance."""
    return make_call("std", x, axis=_axes(axis), keepdims=keepdims)


def max(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Largest element over the given dimensions, or over all."""
    return make_call("max", x, axis=_axes(axis), keepdims=keepdims)


def min(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Smallest element over the given dimensions, or over all."""
    return make_call("min", x, axis=_axes(axis), keepdims=keepdims)


def all(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Whether every element is true, over the given dimensions or all."""
    return make_call("all", x, axis=_axes(axis), keepdims=keepdims)


def any(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Whether some element is true, over the given dimensions or all."""
    return make_call("any", x, axis=_axes(axis), keepdims=keepdims)


def argmax(x: RelayExpr, axis: int | None = None, keepdims: bool = False) -> Call:
    """Where the largest element is along a dimension, or in the flat tensor; int64."""
    return make_call("argmax", x, axis=axis, keepdims=keepdims)


def argmin(x: RelayExpr, axis: int | None = None, keepdims: bool = False) -> Call:
    """Where the smallest element is along a dimension, or in the flat tensor; int64."""
    return make_call("argmin", x, axis=axis, keepdims=keepdims)


def cumsum(
    data: RelayExpr,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Call:
    """Sums of the elements up to each place along a dimension; None flattens first.

    Parameters
    ----------
    dtype : element type of the result; that of the data by default.
    exclusive : whether the element at the place itself is left out.
    """
    return make_call("cumsum", data, axis=axis, dtype=dtype, exclusive=exclusive)


def cumprod(
    data: RelayExpr,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Call:
    """Products of the elements up to each place; see :func:`cumsum`."""
    return make_call("cumprod", data, axis=axis, dtype=dtype, exclusive=exclusive)


def cummax(data: RelayExpr, axis: int | None = None) -> Call:
    """The largest element up to each place along a dimension; None flattens first."""
    return make_call("cummax", data, axis=axis)


def cummin(data: RelayExpr, axis: int | None = None) -> Call:
    """The smallest element up to each place; see :func:`cummax`."""
    return make_call("cummin", data, axis=axis)


def logcumsumexp(data: RelayExpr, axis: int | None = None) -> Call:
    """Logarithms of the sums of exponentials up to each place; see :func:`cummax`."""
    return make_call("logcumsumexp", data, axis=axis)


def _scan(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    axis, dtype = setting(call, "axis"), setting(call, "dtype") or str(info.dtype)
    if axis is not None:
        if info.ndim != -1:
            axis_of(call, axis, info.ndim)
        return same_as_operand(info, dtype)
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(dtype, 1, info.vdevice)
    return with_shape([product(shape)], dtype, info.vdevice)


for _op in ("sum", "prod", "mean", "variance", "std", "max", "min"):
    register_rule(_op, _reduction)
for _op in ("all", "any"):
    register_rule(_op, _test)
for _op in ("argmax", "argmin"):
    register_rule(_op, _position)
for _op in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
    register_rule(_op, _scan)
