"""Attention, after Vaswani et al., arXiv:1706.03762."""

from __future__ import annotations

import math
from typing import Any

from tvm import te, tir

from .. import tag
from ..broadcast import add, multiply
from ..linalg import einsum
from ..transform import transpose
from ..utils import as_int, const_shape, get_const_tuple
from .softmax import softmax

__all__ = ["attention", "head_attention"]

# Keys are padded to this many, so that vectors of scores are whole on every processor.
_KEY_BLOCK = 16


def attention(
    query: te.Tensor,
    key: te.Tensor,
    value: te.Tensor,
    bias: te.Tensor | None = None,
    scale: float | None = None,
    causal: bool = False,
) -> te.Tensor:
    """softmax(query @ key * scale + bias) @ value for each head.

    Parameters
    ----------
    query : (batch, queries, heads, size).
    key : (batch, keys, heads, size).
    value : (batch, keys, heads, out size).
    bias : added to the scores; broadcasts to (batch, heads, queries, keys).
    scale : 1 / sqrt(size) by default.
    causal : let query i see the keys up to i only.

    Returns
    -------
    (batch, queries, heads, out size).
    """
    factor = 1.0 / math.sqrt(as_int(get_const_tuple(query.shape)[3])) if scale is None else scale
    scores = multiply(einsum("bqhd,bkhd->bhqk", query, key), factor)
    if bias is not None:
        scores = add(scores, bias)
    if causal:
        scores = _masked(scores)
    return einsum("bhqk,bkhd->bqhd", softmax(scores), value)


def _masked(scores: te.Tensor) -> te.Tensor:
    """Scores of the keys behind the query's position replaced by the lowest number."""

    def body(*i: Any) -> Any:
        return tir.Select(i[3] <= i[2], scores(*i), tir.min_value(scores.dtype))

    return te.compute(scores.shape, body, name="T_causal_mask", tag=tag.ELEMWISE)


def head_attention(
    query: te.Tensor,
    key: te.Tensor,
    value: te.Tensor,
    *biases: te.Tensor,
    scale: float = 1.0,
    causal: bool = False,
    tokens_first: str = "",
) -> te.Tensor:
    """softmax(scale * query @ key.T + biases) @ value as stages that one kernel computes by rows.

    A query that sees no key gives zeros.

    Parameters
    ----------
    query : (batch, heads, queries, size).
    key, value : (batch, groups, keys, size) and (batch, groups, keys, out size); as many heads in a
        row share a group as divide heads evenly.
    biases : added to the scores; each broadcasts to (batch, heads, queries, keys), and the last
        dimension may be longer than keys.
    causal : query i sees the keys up to i only.
    tokens_first : which of query, key, value and out, by their letters "qkvo", have their second
        and third dimension exchanged.

    Returns
    -------
    (batch, heads, queries, out size).
    """
    swapped = (0, 2, 1, 3)
    query, key, value = (
        transpose(x, swapped) if letter in tokens_first else x
        for letter, x in zip("qkv", (query, key, value))
    )
    batch, heads, length, size = const_shape(query.shape)
    _, groups, source, _ = const_shape(key.shape)
    out_size = const_shape(value.shape)[3]
    shared = heads // groups
    padded = -(-source // _KEY_BLOCK) * _KEY_BLOCK
    dtype = query.dtype
    lowest = tir.min_value(dtype)

    def key_element(b: Any, g: Any, d: Any, j: Any) -> Any:
        if padded == source:
            return key[b, g, j, d]
        return tir.if_then_else(j < source, key[b, g, j, d], tir.const(0, dtype))

    keys = te.compute((batch, groups, size, padded), key_element, name="attention_keys")
    d = te.reduce_axis((0, size), name="d")
    scores = te.compute(
        (batch, heads, length, padded),
        lambda b, h, i, j: te.sum(query[b, h, i, d] * keys[b, h // shared, d, j], axis=[d]),
        name="attention_scores",
    )

    def biased(b: Any, h: Any, i: Any, j: Any) -> Any:
        result = scores[b, h, i, j] * tir.const(scale, dtype)
        for bias in biases:
            places = zip((b, h, i, j), const_shape(bias.shape))
            result = result + bias(*(0 if extent == 1 else at for at, extent in places))
        if causal:
            result = tir.Select(j <= i, result, lowest)
        if padded != source:
            result = tir.Select(j < source, result, lowest)
        return result

    seen = te.compute((batch, heads, length, padded), biased, name="attention_seen")
    k = te.reduce_axis((0, padded), name="k")
    largest = te.compute(
        (batch, heads, length),
        lambda b, h, i: te.max(seen[b, h, i, k], axis=[k]),
        name="attention_largest",
    )
    power = te.compute(
        (batch, heads, length, padded),
        # Where everything is minus infinity, so is the largest; exp(-inf - lowest) is 0.
        lambda b, h, i, j: tir.exp(seen[b, h, i, j] - tir.Max(largest[b, h, i], lowest)),
        name="attention_power",
    )
    n = te.reduce_axis((0, padded), name="n")
    total = te.compute(
        (batch, heads, length),
        lambda b, h, i: te.sum(power[b, h, i, n], axis=[n]),
        name="attention_total",
    )
    m = te.reduce_axis((0, source), name="m")
    mixed = te.compute(
        (batch, heads, length, out_size),
        lambda b, h, i, e: te.sum(power[b, h, i, m] * value[b, h // shared, m, e], axis=[m]),
        name="attention_mixed",
    )
    tiny = tir.const(1e-30, dtype)
    last = "o" in tokens_first
    out = (batch, length, heads, out_size) if last else (batch, heads, length, out_size)

    def result(b: Any, x: Any, y: Any, e: Any) -> Any:
        h, i = (y, x) if last else (x, y)
        return mixed[b, h, i, e] / tir.Max(total[b, h, i], tiny)

    return te.compute(
        out, result, name="attention", tag=tag.ATTENTION, attrs={"tokens_first": int(last)}
    )
