"""Softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir

from .. import tag
from ..math import fast_exp
from ..utils import get_const_tuple, normalize_axis

__all__ = ["fast_softmax", "log_softmax", "softmax"]


def _without(indices: tuple, axis: int) -> tuple:
    return indices[:axis] + indices[axis + 1 :]


def _along(x: te.Tensor, axis: int, reducer: Callable[..., Any], name: str) -> te.Tensor:
    shape = get_const_tuple(x.shape)
    k = te.reduce_axis((0, shape[axis]), name="k")
    return te.compute(
        _without(shape, axis),
        lambda *i: reducer(x(*i[:axis], k, *i[axis:]), axis=[k]),
        name=name,
    )


def _exponentials(x: te.Tensor, axis: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Maxima, exp(x - maximum), and sums of those, along one dimension."""
    largest = _along(x, axis, te.max, "T_softmax_maxelem")
    power = te.compute(
        x.shape, lambda *i: tir.exp(x(*i) - largest(*_without(i, axis))), name="T_softmax_exp"
    )
    return largest, power, _along(power, axis, te.sum, "T_softmax_expsum")


def softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """exp(x - max) / sum of the same, along one dimension."""
    axis = normalize_axis(axis, len(x.shape))
    _, power, total = _exponentials(x, axis)
    return te.compute(
        x.shape,
        lambda *i: power(*i) / total(*_without(i, axis)),
        name="T_softmax_norm",
        tag=tag.SOFTMAX,
        attrs={"axis": axis},
    )


def fast_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """As `softmax`, with the exponential of `topi.fast_exp`."""
    axis = normalize_axis(axis, len(x.shape))
    largest = _along(x, axis, te.max, "T_softmax_maxelem")
    delta = te.compute(
        x.shape, lambda *i: x(*i) - largest(*_without(i, axis)), name="T_softmax_delta"
    )
    power = fast_exp(delta)
    total = _along(power, axis, te.sum, "T_softmax_expsum")
    return te.compute(
        x.shape,
        lambda *i: power(*i) / total(*_without(i, axis)),
        name="T_softmax_norm",
        tag=tag.SOFTMAX,
        attrs={"axis": axis},
    )


def log_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """x - max - log(sum(exp(x - max))), along one dimension."""
    axis = normalize_axis(axis, len(x.shape))
    largest, _, total = _exponentials(x, axis)
    return te.compute(
        x.shape,
        lambda *i: x(*i) - largest(*_without(i, axis)) - tir.log(total(*_without(i, axis))),
        name="T_log_softmax",
        tag=tag.SOFTMAX,
        attrs={"axis": axis},
    )
