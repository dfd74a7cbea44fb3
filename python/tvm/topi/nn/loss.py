"""Losses, and the lookup of embeddings."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from .. import reduction as reduce
from .. import tag
from ..broadcast import divide, multiply
from ..indexing import take
from ..math import negative
from ..utils import get_const_tuple

__all__ = ["cross_entropy", "cross_entropy_with_logits", "embedding", "nll_loss"]


def nll_loss(
    predictions: te.Tensor,
    targets: te.Tensor,
    weights: te.Tensor,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> te.Tensor:
    """Negative log likelihood of the target classes.

    Parameters
    ----------
    predictions : log probabilities, (batch, classes, ...) or (classes,).
    targets : integers, the same without the classes.
    weights : (classes,).
    reduction : "none", "sum", or "mean", weighted by the classes.
    ignore_index : target that counts for nothing.
    """
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(
            f"topi.nn.nll_loss: reduction is 'none', 'sum' or 'mean', got {reduction!r}"
        )
    has_batch = len(predictions.shape) > 1
    zero = tir.const(0, predictions.dtype)

    def at_target(value: Any) -> te.Tensor:
        """``value`` of an index and its class, 0 where the target is ignored."""

        def body(*i: Any) -> Any:
            target = targets(*i).astype("int32")
            return tir.if_then_else(target.equal(ignore_index), zero, value(i, target))

        return te.compute(targets.shape, body, name="T_nll_loss", tag=tag.INJECTIVE)

    def loss(i: Any, target: Any) -> Any:
        place = (i[0], target, *i[1:]) if has_batch else (target,)
        return -predictions(*place) * weights(target)

    out = at_target(loss)
    if reduction == "none":
        return out
    total = reduce.sum(out)
    if reduction == "sum":
        return total
    return divide(total, reduce.sum(at_target(lambda i, target: weights(target))))


def cross_entropy(predictions: te.Tensor, targets: te.Tensor) -> te.Tensor:
    """-sum(log(predictions) * targets) / batch for probabilities (batch, classes)."""
    batch = get_const_tuple(predictions.shape)[0]
    logs = te.compute(
        predictions.shape, lambda *i: tir.log(predictions(*i)), name="T_log", tag=tag.ELEMWISE
    )
    return divide(negative(reduce.sum(multiply(logs, targets))), batch)


def cross_entropy_with_logits(predictions: te.Tensor, targets: te.Tensor) -> te.Tensor:
    """-sum(predictions * targets) / batch for log probabilities (batch, classes)."""
    batch = get_const_tuple(predictions.shape)[0]
    return divide(negative(reduce.sum(multiply(predictions, targets))), batch)


def embedding(weight: te.Tensor, indices: te.Tensor) -> te.Tensor:
    """Rows of weight (count, size) that the indices name; those out of range are clamped."""
    return take(weight, indices, 0)
