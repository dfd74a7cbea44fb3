"""Activations, softmax, dropout and borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import RelayExpr

from ...expr import Call
from ...struct_info import TensorStructInfo, TupleStructInfo
from ..base import make_call
from ..registry import register_rule
from ..rules import (
    axis_of,
    is_float,
    known_shape,
    opaque_tensor,
    setting,
    simplified,
    tensor,
    unary_rule,
    with_shape,
)
from ..unary import clip

__all__ = [
    "dropout",
    "gelu",
    "gelu_tanh",
    "hardsigmoid",
    "hardswish",
    "leakyrelu",
    "log_softmax",
    "pad",
    "relu",
    "relu6",
    "silu",
    "softmax",
]


def relu(data: RelayExpr) -> Call:
    """max(data, 0)."""
    return make_call("nn.relu", data)


def relu6(data: RelayExpr) -> Call:
    """data limited to [0, 6]."""
    return clip(data, 0.0, 6.0)


def leakyrelu(data: RelayExpr, alpha: float = 0.01) -> Call:
    """data where positive, alpha * data elsewhere."""
    return make_call("nn.leakyrelu", data, alpha=float(alpha))


def gelu(data: RelayExpr) -> Call:
    """Gaussian error linear unit in its exact form."""
    return make_call("nn.gelu", data)


def gelu_tanh(data: RelayExpr) -> Call:
    """Gaussian error linear unit in its tanh approximation."""
    return make_call("nn.gelu_tanh", data)


def silu(data: RelayExpr) -> Call:
    """data * sigmoid(data)."""
    return make_call("nn.silu", data)


def hardsigmoid(data: RelayExpr) -> Call:
    """relu6(data + 3) / 6."""
    return make_call("nn.hardsigmoid", data)


def hardswish(data: RelayExpr) -> Call:
    """data * relu6(data + 3) / 6."""
    return make_call("nn.hardswish", data)


def _one_axis(where: str, axis: Any) -> int:
    if isinstance(axis, int):
        return axis
    raise error.TypeError(f"relax.nn.{where}: axis is one integer, got {axis}")


def softmax(data: RelayExpr, axis: int = -1) -> Call:
    """exp(data) divided by its sum along one dimension."""
    return make_call("nn.softmax", data, axis=_one_axis("softmax", axis))


def log_softmax(data: RelayExpr, axis: int = -1) -> Call:
    """Logarithm of softmax."""
    return make_call("nn.log_softmax", data, axis=_one_axis("log_softmax", axis))


def _softmax(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    if not is_float(info.dtype):
        raise error.TypeError(f"{call.op.name}: takes a floating-point tensor, got {info.dtype}")
    if info.ndim != -1:
        axis_of(call, setting(call, "axis", -1), info.ndim)
    return info


def dropout(data: RelayExpr, rate: float = 0.5) -> Call:
    """data with elements set to zero at random, and what they were multiplied with.

    Inference leaves the data as it is; the result is a tuple all the same.
    """
    return make_call("nn.dropout", data, rate=float(rate))


def _dropout(call: Call) -> TupleStructInfo:
    info = tensor(call, 0)
    return TupleStructInfo([info, info])


def pad(
    data: RelayExpr,
    pad_width: Sequence[int] | Sequence[Sequence[int]],
    pad_mode: str = "constant",
    pad_value: float = 0.0,
) -> Call:
    """data with a border.

    Parameters
    ----------
    pad_width : sizes before and behind each dimension, as pairs or one after the other.
    pad_mode : "constant", "reflect", "replicate" or "circular".
    pad_value : what a constant border holds.
    """
    flat = [int(v) for item in pad_width for v in (item if isinstance(item, Sequence) else [item])]
    return make_call("nn.pad", data, pad_width=flat, pad_mode=pad_mode, pad_value=float(pad_value))


def _pad(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    width = setting(call, "pad_width", ())
    if info.ndim not in (-1, len(width) // 2) or len(width) % 2:
        raise error.ValueError(
            f"relax.nn.pad: {len(width)} sizes for {info.ndim} dimensions; each has two"
        )
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, info.ndim, info.vdevice)
    wider = [
        simplified(extent + tir.const(width[2 * k] + width[2 * k + 1], "int64"))
        for k, extent in enumerate(shape)
    ]
    return with_shape(wider, info.dtype, info.vdevice)


for _op in ("relu", "leakyrelu", "hardsigmoid", "hardswish"):
    register_rule(f"nn.{_op}", unary_rule())
for _op in ("gelu", "gelu_tanh", "silu"):
    register_rule(f"nn.{_op}", unary_rule(floats=True))
register_rule("nn.softmax", _softmax)
register_rule("nn.log_softmax", _softmax)
register_rule("nn.dropout", _dropout)
register_rule("nn.pad", _pad)
