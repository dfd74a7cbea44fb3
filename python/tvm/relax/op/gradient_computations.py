"""Rows of the operator table for losses and for what gradients need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir, topi

from .precision import computed_in_float32
from .registry import OpPattern, register

__all__: list[str] = []


def _nll_loss(
    predictions: te.Tensor, targets: te.Tensor, weights: te.Tensor | None = None, **settings: Any
) -> te.Tensor:
    if weights is None:
        classes = predictions.shape[1 if len(predictions.shape) > 1 else 0]
        weights = topi.full((classes,), predictions.dtype, 1.0)
    return topi.nn.nll_loss(predictions, targets, weights, **settings)


def _cross_entropy_with_logits(predictions: te.Tensor, labels: te.Tensor) -> te.Tensor:
    total = topi.negative(topi.sum(topi.multiply(predictions, labels)))
    if len(predictions.shape) == 1:
        return total
    return topi.divide(total, predictions.shape[0].astype(predictions.dtype))


def _nll_loss_backward(
    output_grad: te.Tensor,
    predictions: te.Tensor,
    targets: te.Tensor,
    weights: te.Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> te.Tensor:
    dtype = predictions.dtype
    zero, one = tir.const(0, dtype), tir.const(1, dtype)

    def weight(*index: Any) -> Any:
        target = targets(*index)
        own = one if weights is None else weights(target)
        return tir.if_then_else(target.equal(ignore_index), zero, own)

    all_weights = te.compute(targets.shape, weight, name="all_weights", tag=topi.tag.INJECTIVE)
    total = topi.sum(all_weights) if reduction == "mean" else None
    has_batch = len(predictions.shape) > 1

    def gradient(*index: Any) -> Any:
        place = (index[0], *index[2:]) if has_batch else ()
        outer = output_grad(*place) if reduction == "none" else output_grad()
        share = outer if total is None else tir.div(outer, total())
        chosen = index[1 if has_batch else 0].equal(targets(*place))
        return tir.Select(chosen, -all_weights(*place) * share, zero)

    return te.compute(predictions.shape, gradient, name="pred_grad", tag=topi.tag.INJECTIVE)


def _take_backward(
    output_grad: te.Tensor, x: te.Tensor, indices: te.Tensor, axis: int | None = None
) -> te.Tensor:
    shape = list(x.shape) if axis is not None else [_product(x.shape)]
    axis = 0 if axis is None else axis % len(shape)
    before, behind = _product(shape[:axis]), _product(shape[axis + 1 :])
    count = _product(indices.shape)
    flat = topi.reshape(indices, (count,))
    places = te.compute(
        (before, count, behind), lambda i, j, k: flat[j], name="places", tag=topi.tag.INJECTIVE
    )
    start = topi.full((before, shape[axis], behind), x.dtype, 0.0)
    gradient = topi.reshape(output_grad, (before, count, behind))
    summed = topi.scatter_elements(start, places, gradient, 1, "add")
    return topi.reshape(summed, x.shape)


def _product(extents: Sequence[Any]) -> Any:
    result: Any = 1
    for extent in extents:
        result = extent * result
    return result


def _pool_backward(kind: str) -> Any:
    def compute(
        output_grad: te.Tensor,
        data: te.Tensor,
        pool_size: Sequence[int],
        strides: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        layout: str,
        out_layout: str,
    ) -> te.Tensor:
        if any(step != 1 for step in dilation) or layout != out_layout:
            raise ValueError(
                f"relax.grad.{kind}_pool2d_backward: windows without dilation and one layout are "
                f"differentiated, got dilation {list(dilation)} and {layout} to {out_layout}"
            )
        return topi.nn.pool_grad(
            output_grad, data, pool_size, strides, padding, kind, ceil_mode, count_include_pad,
            layout,
        )  # fmt: skip

    return compute


for _name in ("no_grad", "start_checkpoint", "end_checkpoint"):
    register(f"grad.{_name}", topi.identity, OpPattern.ELEMWISE)
register("nn.nll_loss", computed_in_float32(_nll_loss), OpPattern.OPAQUE, tunable=False)
register(
    "nn.cross_entropy_with_logits", computed_in_float32(_cross_entropy_with_logits),
    OpPattern.OPAQUE, tunable=False,
)  # fmt: skip
register("grad.nll_loss_backward", _nll_loss_backward, OpPattern.OPAQUE, tunable=False)
register("grad.take_backward", _take_backward, OpPattern.OPAQUE, tunable=False)
for _name in ("max", "avg"):
    register(
        f"grad.{_name}_pool2d_backward", _pool_backward(_name), OpPattern.OPAQUE, tunable=False
    )
