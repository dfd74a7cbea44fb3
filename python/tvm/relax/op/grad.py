"""Operators that gradients of others are made of."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import RelayExpr

from ..expr import Call
from ..struct_info import TensorStructInfo
from .base import make_call
from .nn.pooling import pool_settings
from .registry import register_rule
from .rules import tensor

__all__ = [
    "avg_pool2d_backward",
    "end_checkpoint",
    "max_pool2d_backward",
    "nll_loss_backward",
    "no_grad",
    "start_checkpoint",
    "take_backward",
]

Size = int | Sequence[int]


def no_grad(input: RelayExpr) -> Call:
    """The value, through which no gradient flows."""
    return make_call("grad.no_grad", input)


def start_checkpoint(input: RelayExpr) -> Call:
    """The value, from which on results are computed again for the gradient instead of kept."""
    return make_call("grad.start_checkpoint", input)


def end_checkpoint(input: RelayExpr) -> Call:
    """The value, up to which results are computed again for the gradient instead of kept."""
    return make_call("grad.end_checkpoint", input)


def nll_loss_backward(
    output_grad: RelayExpr,
    predictions: RelayExpr,
    targets: RelayExpr,
    weights: RelayExpr | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Call:
    """The gradient of ``nn.nll_loss`` for its predictions."""
    operands = [output_grad, predictions, targets, *([] if weights is None else [weights])]
    return make_call(
        "grad.nll_loss_backward", *operands, reduction=reduction, ignore_index=ignore_index
    )


def max_pool2d_backward(
    output_grad: RelayExpr,
    data: RelayExpr,
    pool_size: Size = (1, 1),
    strides: Size | None = (1, 1),
    padding: Size = (0, 0, 0, 0),
    dilation: Size = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> Call:
    """The gradient of ``nn.max_pool2d`` for its data."""
    settings = pool_settings(
        2, pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout
    )
    return make_call("grad.max_pool2d_backward", output_grad, data, **settings)


def avg_pool2d_backward(
    output_grad: RelayExpr,
    data: RelayExpr,
    pool_size: Size = (1, 1),
    strides: Size | None = (1, 1),
    padding: Size = (0, 0, 0, 0),
    dilation: Size = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> Call:
    """The gradient of ``nn.avg_pool2d`` for its data."""
    settings = pool_settings(
        2, pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout
    )
    return make_call("grad.avg_pool2d_backward", output_grad, data, **settings)


def take_backward(
    output_grad: RelayExpr, x: RelayExpr, indices: RelayExpr, axis: int | None = None
) -> Call:
    """The gradient of ``take`` for its data."""
    return make_call("grad.take_backward", output_grad, x, indices, axis=axis)


def _as_value(call: Call) -> object:
    return call.args[0].struct_info


def _as_data(call: Call) -> TensorStructInfo:
    tensor(call, 0, "the gradient")
    return tensor(call, 1)


for _op in ("no_grad", "start_checkpoint", "end_checkpoint"):
    register_rule(f"grad.{_op}", _as_value)
for _op in ("nll_loss_backward", "max_pool2d_backward", "avg_pool2d_backward", "take_backward"):
    register_rule(f"grad.{_op}", _as_data)
