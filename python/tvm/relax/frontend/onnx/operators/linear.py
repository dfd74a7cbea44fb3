"""Matrix products, and attention."""

from __future__ import annotations

import math

import torch

from ..errors import OnnxError
from ..types import dtype_of
from .registry import Node, operator

__all__: list[str] = []


@operator("MatMul")
def _matmul(n: Node, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(a, b)


@operator("Gemm")
def _gemm(n: Node, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> torch.Tensor:
    a = a.t() if n.attr("transA", 0) else a
    b = b.t() if n.attr("transB", 0) else b
    product = torch.matmul(a, b)
    alpha, beta = n.attr("alpha", 1.0), n.attr("beta", 1.0)
    if alpha != 1.0:
        product = (product * alpha).to(product.dtype)
    if c is None:
        return product
    return product + (c if beta == 1.0 else (c * beta).to(c.dtype))


@operator("MatMulInteger")
def _matmul_integer(
    n: Node,
    a: torch.Tensor,
    b: torch.Tensor,
    a_zero: torch.Tensor | None = None,
    b_zero: torch.Tensor | None = None,
) -> torch.Tensor:
    left, right = a.to(torch.int32), b.to(torch.int32)
    if a_zero is not None:
        zero = a_zero.to(torch.int32)
        left = left - (zero.unsqueeze(-1) if zero.dim() else zero)
    if b_zero is not None:
        zero = b_zero.to(torch.int32)
        right = right - (zero.unsqueeze(-2) if zero.dim() else zero)
    return torch.matmul(left, right)


@operator("Einsum")
def _einsum(n: Node, *tensors: torch.Tensor) -> torch.Tensor:
    return torch.einsum(n.attr("equation").replace(" ", ""), *tensors)


@operator("Det")
def _det(n: Node, x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.det(x)


def _heads(x: torch.Tensor, count: int) -> torch.Tensor:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).permute(0, 2, 1, 3)


@operator("Attention")
def _attention(
    n: Node,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    past_k: torch.Tensor | None = None,
    past_v: torch.Tensor | None = None,
    valid: torch.Tensor | None = None,
) -> list[torch.Tensor]:
    flat = q.dim() == 3
    if flat:
        q = _heads(q, n.attr("q_num_heads"))
        k, v = (_heads(x, n.attr("kv_num_heads")) for x in (k, v))
    if past_k is not None and past_v is not None:
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    present = [k, v]
    past = 0 if past_k is None else past_k.shape[2]
    repeats = q.shape[1] // k.shape[1]
    if repeats * k.shape[1] != q.shape[1]:
        raise OnnxError(f"{q.shape[1]} query heads over {k.shape[1]} key heads")
    if repeats > 1:
        k, v = (torch.repeat_interleave(x, repeats, 1) for x in (k, v))
    precision = n.attr("softmax_precision")
    dtype = q.dtype
    scale = n.attr("scale")
    root = math.sqrt(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    products = torch.matmul(q * root, (k * root).transpose(-1, -2))
    softcap = n.attr("softcap", 0.0)
    # The cap is for the products alone: what the mask hides stays hidden.
    capped = softcap * torch.tanh(products / softcap) if softcap else products
    bias = _attention_bias(n, products, mask, valid, past)
    scores = capped if bias is None else capped + bias
    wide = scores if precision is None else scores.to(dtype_of(precision))
    weights = torch.softmax(wide, -1).to(dtype)
    # Where nothing may be looked at, the result is zero.
    weights = torch.where(torch.isnan(weights), torch.zeros((), dtype=dtype), weights)
    result = torch.matmul(weights, v)
    if flat:
        result = result.permute(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)
    stages = (products, capped, scores, weights)
    return [result, *present, stages[n.attr("qk_matmul_output_mode", 0)]]


def _attention_bias(
    n: Node,
    scores: torch.Tensor,
    mask: torch.Tensor | None,
    valid: torch.Tensor | None,
    past: int,
) -> torch.Tensor | None:
    """What is added to the products: -inf for what may not be looked at."""
    minus = torch.full((), -math.inf, dtype=scores.dtype)
    zero = torch.zeros((), dtype=scores.dtype)
    queries, keys = scores.shape[-2:]
    bias: torch.Tensor | None = None
    if mask is not None:
        if mask.shape[-1] < keys:
            # A mask that is too short hides the rest.
            nothing = False if mask.dtype == torch.bool else -math.inf
            mask = torch.nn.functional.pad(mask, (0, keys - mask.shape[-1]), value=nothing)
        bias = torch.where(mask, zero, minus) if mask.dtype == torch.bool else mask
        bias = bias.to(scores.dtype)
    # Position of each query among the keys; with `valid` they are the last of the valid ones.
    if valid is not None and past == 0:
        offset = (valid.to(torch.int64) - queries).reshape(-1, 1, 1, 1)
    else:
        offset = torch.full((1, 1), past, dtype=torch.int64)
    position = torch.arange(queries)[:, None] + offset
    column = torch.arange(keys)[None, :]
    left, right = n.attr("left_window_size", -1), n.attr("right_window_size", -1)
    limits = [column <= position] if n.attr("is_causal", 0) else []
    limits += [column >= position - left] if left >= 0 else []
    limits += [column <= position + right] if right >= 0 else []
    for limit in limits:
        hidden = torch.where(limit, zero, minus)
        bias = hidden if bias is None else bias + hidden
    if valid is not None:
        seen = torch.arange(keys) < valid.to(torch.int64).reshape(-1, 1, 1, 1)
        hidden = torch.where(seen, zero, minus)
        bias = hidden if bias is None else bias + hidden
    return bias


@operator("RotaryEmbedding")
def _rotary_embedding(
    n: Node,
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None = None,
) -> torch.Tensor:
    flat = x.dim() == 3
    whole = x if not flat else _heads(x, n.attr("num_heads"))
    size = n.attr("rotary_embedding_dim", 0) or whole.shape[-1]
    turned, rest = whole[..., :size], whole[..., size:]
    if positions is not None:
        index = positions.to(torch.int64).reshape(-1)
        cos, sin = (
            torch.index_select(t, 0, index).reshape(*positions.shape, -1) for t in (cos, sin)
        )
    cos, sin = (t[..., : size // 2].unsqueeze(1) for t in (cos, sin))
    if n.attr("interleaved", 0):
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., : size // 2], turned[..., size // 2 :]
    real, imaginary = cos * first - sin * second, sin * first + cos * second
    if n.attr("interleaved", 0):
        turned = torch.stack([real, imaginary], -1).reshape(turned.shape)
    else:
        turned = torch.cat([real, imaginary], -1)
    result = torch.cat([turned, rest], -1)
    return result.permute(0, 2, 1, 3).reshape(x.shape) if flat else result
