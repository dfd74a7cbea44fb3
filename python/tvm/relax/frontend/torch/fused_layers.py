"""Layers that PyTorch runs as one operator in evaluation mode, by the operators they consist of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["FUSED_LAYERS"]

# What the type of a mask says: rows by columns, columns of each sequence; else all of its shape.
_SQUARE, _COLUMNS = 0, 1


def _hidden(mask: Tensor, mask_type: int | None) -> Tensor:
    """Where scores (sequence, head, row, column) do not count."""
    hidden = mask.to(torch.bool)
    if mask_type == _COLUMNS:
        return hidden[:, None, None, :]
    return hidden[None, None] if mask_type == _SQUARE and hidden.dim() == 2 else hidden


def _heads(x: Tensor, count: int) -> Tensor:
    return x.reshape(x.shape[0], x.shape[1], count, x.shape[2] // count).transpose(1, 2)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    if query is key and key is value:
        parts = F.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        sides = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3))
        parts = tuple(F.linear(x, w, b) for x, w, b in sides)
    q, k, v = (_heads(part, num_head) for part in parts)
    hidden = None if mask is None else _hidden(mask, mask_type)
    if need_weights:
        scores = (q * (embed_dim // num_head) ** -0.5) @ k.transpose(-2, -1)
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = scores.softmax(-1)
        mixed = weights @ v
        if average_attn_weights:
            weights = weights.mean(1)
    else:
        seen = None if hidden is None else hidden.logical_not()
        mixed, weights = F.scaled_dot_product_attention(q, k, v, seen), query.new_empty(0)
    rows = mixed.transpose(1, 2).reshape(query.shape[0], query.shape[1], embed_dim)
    return F.linear(rows, proj_weight, proj_bias), weights


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    def first_norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return _attention(
            x, x, x, embed_dim, num_heads, *projections, mask, False, True, mask_type
        )[0]

    def feed_forward(x: Tensor) -> Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), ffn_weight_2, ffn_bias_2)

    if norm_first:
        src = src + attend(first_norm(src))
        return src + feed_forward(second_norm(src))
    src = first_norm(src + attend(src))
    return second_norm(src + feed_forward(src))


FUSED_LAYERS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._native_multi_head_attention.default: _attention,
    torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer,
}
"""How operators are defined by others, beside PyTorch's own definitions."""
