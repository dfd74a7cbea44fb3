"""Losses."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from ...expr import Call
from ...struct_info import TensorStructInfo
from ..base import make_call
from ..registry import register_rule
from ..rules import (
    UNKNOWN,
    common_dtype,
    common_vdevice,
    differ,
    is_integer,
    known_shape,
    opaque_tensor,
    setting,
    tensor,
    with_shape,
)

__all__ = ["cross_entropy_with_logits", "nll_loss"]


def cross_entropy_with_logits(predictions: RelayExpr, labels: RelayExpr) -> Call:
    """Minus the sum of predictions * labels, divided by the batch: tensors of one shape."""
    return make_call("nn.cross_entropy_with_logits", predictions, labels)


def _cross_entropy(call: Call) -> TensorStructInfo:
    infos = [tensor(call, 0), tensor(call, 1)]
    dtype, vdevice = common_dtype(call, infos), common_vdevice(call, infos)
    ranks = [info.ndim for info in infos]
    if -1 not in ranks and ranks[0] != ranks[1]:
        raise error.ValueError(f"{call.op.name}: tensors of {ranks[0]} and {ranks[1]} dimensions")
    shapes = [known_shape(info) for info in infos]
    if None not in shapes and any(differ(a, b) for a, b in zip(*shapes)):
        raise error.ValueError(f"{call.op.name}: tensors of shapes {shapes[0]} and {shapes[1]}")
    return with_shape([], dtype, vdevice)


def nll_loss(
    predictions: RelayExpr,
    targets: RelayExpr,
    weights: RelayExpr | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Call:
    """Negative log likelihood.

    Parameters
    ----------
    predictions : (N, C, d1, ..., dk), or (C,).
    targets : classes, (N, d1, ..., dk), or without dimensions.
    weights : (C,), ones by default.
    reduction : "mean" (by weight), "sum" or "none".
    ignore_index : the class of targets that do not count.
    """
    operands = [predictions, targets, *([] if weights is None else [weights])]
    return make_call("nn.nll_loss", *operands, reduction=reduction, ignore_index=ignore_index)


def _nll_loss(call: Call) -> TensorStructInfo:
    infos = [tensor(call, k) for k in range(len(call.args))]
    predictions, targets = infos[:2]
    weights = infos[2] if len(infos) > 2 else None
    reduction = setting(call, "reduction", "mean")
    if reduction not in ("none", "sum", "mean"):
        raise error.ValueError(
            f"relax.nn.nll_loss: reduction is none, sum or mean, got '{reduction}'"
        )
    if not is_integer(targets.dtype):
        raise error.TypeError(f"relax.nn.nll_loss: targets are integers, got {targets.dtype}")
    dtype = common_dtype(call, [predictions, *([] if weights is None else [weights])])
    if weights is None and str(predictions.dtype) == UNKNOWN:
        dtype = UNKNOWN
    vdevice = common_vdevice(call, infos)
    if predictions.ndim == 0:
        raise error.ValueError("relax.nn.nll_loss: predictions need a dimension of classes")
    if weights is not None and weights.ndim not in (-1, 1):
        raise error.ValueError(
            f"relax.nn.nll_loss: weights have {weights.ndim} dimensions instead of 1"
        )
    if -1 not in (predictions.ndim, targets.ndim) and predictions.ndim != targets.ndim + 1:
        raise error.ValueError(
            f"relax.nn.nll_loss: predictions of {predictions.ndim} dimensions, targets of "
            f"{targets.ndim}"
        )
    shape = _loss_shape(predictions, targets, weights)
    if reduction != "none":
        return with_shape([], dtype, vdevice)
    if shape is not None:
        return with_shape(shape, dtype, vdevice)
    if targets.shape is not None and predictions.shape is None:
        return with_shape(targets.shape, dtype, vdevice)
    rank = targets.ndim if targets.ndim != -1 else max(predictions.ndim - 1, -1)
    return opaque_tensor(dtype, rank, vdevice)


def _loss_shape(
    predictions: TensorStructInfo, targets: TensorStructInfo, weights: TensorStructInfo | None
) -> list[Any] | None:
    """The shape of the losses one by one, None if it is unknown."""
    p, t = known_shape(predictions), known_shape(targets)
    w = None if weights is None else known_shape(weights)
    classes, rest = None, None
    if p is not None:
        classes, rest = (p[0], []) if len(p) == 1 else (p[1], [p[0], *p[2:]])
    if rest is not None and t is not None and any(differ(a, b) for a, b in zip(rest, t)):
        raise error.ValueError(f"relax.nn.nll_loss: predictions of shape {p}, targets of shape {t}")
    if classes is not None and w is not None and differ(classes, w[0]):
        raise error.ValueError(f"relax.nn.nll_loss: {classes} classes, {w[0]} weights")
    return rest if rest is not None else t


register_rule("nn.cross_entropy_with_logits", _cross_entropy)
register_rule("nn.nll_loss", _nll_loss)
