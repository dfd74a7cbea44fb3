"""Sums, means and maxima along dimensions."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir

from . import tag
from .broadcast import divide
from .utils import const_shape, normalize_axes

__all__ = ["max", "mean", "min", "sum"]

Axis = int | Sequence[int] | None


def _reduce(
    x: te.Tensor, axis: Axis, keepdims: bool, reducer: Callable[..., Any], name: str
) -> te.Tensor:
    shape = const_shape(x.shape)
    axes = normalize_axes(axis, len(shape))
    if not axes:
        return te.compute(shape, lambda *i: x(*i), name=name, tag=tag.ELEMWISE)
    reduced = [te.reduce_axis((0, shape[k]), name=f"k{k}") for k in axes]
    kept = [k for k in range(len(shape)) if keepdims or k not in axes]

    def body(*indices: tir.Var) -> tir.PrimExpr:
        position: list[Any] = [None] * len(shape)
        for k, index in zip(kept, indices):
            position[k] = index
        for k, index in zip(axes, reduced):
            position[k] = index
        return reducer(x(*position), axis=reduced)

    out = [1 if k in axes else shape[k] for k in kept]
    return te.compute(out, body, name=name, tag=tag.COMM_REDUCE)


def sum(x: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Sum over the given dimensions, or over all for None."""
    return _reduce(x, axis, keepdims, te.sum, "sum")


def max(x: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Largest element over the given dimensions, or over all for None."""
    return _reduce(x, axis, keepdims, te.max, "max")


def min(x: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Smallest element over the given dimensions, or over all for None."""
    return _reduce(x, axis, keepdims, te.min, "min")


def mean(x: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Arithmetic mean over the given dimensions, or over all for None."""
    shape = const_shape(x.shape)
    count = math.prod(shape[k] for k in normalize_axes(axis, len(shape)))
    return divide(sum(x, axis, keepdims), builtins.float(count))
