"""Scaled dot-product attention."""

from __future__ import annotations

from tvm import error
from tvm.ir import RelayExpr

from ...expr import Call
from ...struct_info import TensorStructInfo
from ..base import make_call
from ..registry import register_rule
from ..rules import (
    common_dtype,
    common_vdevice,
    differ,
    known_shape,
    number,
    opaque_tensor,
    tensor,
    with_shape,
)

__all__ = ["attention", "attention_bias", "attention_var_len"]


def attention(
    query: RelayExpr,
    key: RelayExpr,
    value: RelayExpr,
    bias: RelayExpr | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Call:
    """softmax(scale * query @ key + bias) @ value, head by head.

    Parameters
    ----------
    query : (batch, queries, heads, size).
    key, value : (batch, keys, heads, size) and (batch, keys, heads, size of the result).
    bias : broadcasts to (batch, heads, queries, keys).
    scale : one over the root of the size by default.
    causal_mask : "TopLeft" or "BottomRight", the corner that the diagonal of what is seen is at.
    window_size : how many keys back a query sees.
    """
    settings = {"scale": scale, "causal_mask": causal_mask, "window_size": window_size}
    if bias is None:
        return make_call("nn.attention", query, key, value, **settings)
    return make_call("nn.attention_bias", query, key, value, bias, **settings)


def attention_bias(
    query: RelayExpr,
    key: RelayExpr,
    value: RelayExpr,
    bias: RelayExpr,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Call:
    """:func:`attention` with a bias."""
    return attention(query, key, value, bias, scale, causal_mask, window_size)


def attention_var_len(
    queries: RelayExpr,
    keys: RelayExpr,
    values: RelayExpr,
    seqstart_q: RelayExpr,
    max_seqlen_q: RelayExpr,
    seqstart_k: RelayExpr | None = None,
    max_seqlen_k: RelayExpr | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Call:
    """:func:`attention` of sequences of different lengths, laid one behind the other."""
    return make_call(
        "nn.attention_var_len", queries, keys, values, seqstart_q, max_seqlen_q,
        seqstart_q if seqstart_k is None else seqstart_k,
        max_seqlen_q if max_seqlen_k is None else max_seqlen_k,
        scale=scale, causal_mask=causal_mask, window_size=window_size,
    )  # fmt: skip


def _attention(call: Call) -> TensorStructInfo:
    infos = [tensor(call, k) for k in range(3)]
    for info in infos:
        if info.ndim not in (-1, 4):
            raise error.ValueError(f"{call.op.name}: operands have 4 dimensions, got {info.ndim}")
    dtype, vdevice = common_dtype(call, infos), common_vdevice(call, infos)
    q, k, v = (known_shape(info) for info in infos)
    if q is None or k is None or v is None:
        return opaque_tensor(dtype, 4, vdevice)
    for a, b, what in (
        (q[0], k[0], "batches of query and key"), (q[0], v[0], "batches of query and value"),
        (q[2], k[2], "heads of query and key"), (q[2], v[2], "heads of query and value"),
        (k[1], v[1], "lengths of key and value"), (q[3], k[3], "sizes of query and key"),
    ):  # fmt: skip
        if differ(a, b):
            raise error.ValueError(f"{call.op.name}: the {what} differ: {a} and {b}")
    if len(call.args) == 4:
        bias = tensor(call, 3, "bias")
        if bias.ndim not in (-1, 4):
            raise error.ValueError(f"{call.op.name}: the bias has 4 dimensions, got {bias.ndim}")
        shape = known_shape(bias)
        if shape is not None:
            for a, b in zip(shape, (q[0], q[2], q[1], k[1])):
                if number(a) != 1 and differ(a, b):
                    raise error.ValueError(
                        f"{call.op.name}: the bias of shape {shape} does not broadcast"
                    )
    return with_shape([q[0], q[1], q[2], v[3]], dtype, vdevice)


def _attention_var_len(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    values = known_shape(tensor(call, 2))
    shape = known_shape(info)
    if shape is None or values is None:
        return opaque_tensor(info.dtype, info.ndim, info.vdevice)
    return with_shape([*shape[:3], values[3]], info.dtype, info.vdevice)


register_rule("nn.attention", _attention)
register_rule("nn.attention_bias", _attention)
register_rule("nn.attention_var_len", _attention_var_len)
