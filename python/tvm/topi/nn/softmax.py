"""Softmax and its logarithm."""

from __future__ import annotations

from tvm import te, tir

from .. import tag
from ..utils import const_shape, normalize_axis

__all__ = ["log_softmax", "softmax"]


def _without(indices: tuple, axis: int) -> tuple:
    return indices[:axis] + indices[axis + 1 :]


def _maximum_along(x: te.Tensor, axis: int) -> te.Tensor:
    shape = const_shape(x.shape)
    k = te.reduce_axis((0, shape[axis]), name="k")
    return te.compute(
        _without(shape, axis),
        lambda *i: te.max(x(*i[:axis], k, *i[axis:]), axis=[k]),
        name="softmax_max",
    )


def _sum_along(x: te.Tensor, axis: int) -> te.Tensor:
    shape = const_shape(x.shape)
    k = te.reduce_axis((0, shape[axis]), name="k")
    return te.compute(
        _without(shape, axis),
        lambda *i: te.sum(x(*i[:axis], k, *i[axis:]), axis=[k]),
        name="softmax_sum",
    )


def softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """exp(x - max) / sum of the same, along one dimension."""
    axis = normalize_axis(axis, len(x.shape))
    largest = _maximum_along(x, axis)
    power = te.compute(
        x.shape, lambda *i: tir.exp(x(*i) - largest(*_without(i, axis))), name="softmax_exp"
    )
    total = _sum_along(power, axis)
    return te.compute(
        x.shape,
        lambda *i: power(*i) / total(*_without(i, axis)),
        name="softmax",
        tag=tag.SOFTMAX,
    )


def log_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """x - max - log(sum(exp(x - max))), along one dimension."""
    axis = normalize_axis(axis, len(x.shape))
    largest = _maximum_along(x, axis)
    power = te.compute(
        x.shape, lambda *i: tir.exp(x(*i) - largest(*_without(i, axis))), name="softmax_exp"
    )
    total = _sum_along(power, axis)
    return te.compute(
        x.shape,
        lambda *i: x(*i) - largest(*_without(i, axis)) - tir.log(total(*_without(i, axis))),
        name="log_softmax",
        tag=tag.SOFTMAX,
    )
