"""Attention, after Vaswani et al., arXiv:1706.03762."""

from __future__ import annotations

import math
from typing import Any

from tvm import te, tir

from .. import tag
from ..broadcast import add, multiply
from ..linalg import einsum
from ..utils import as_int, get_const_tuple
from .softmax import softmax

__all__ = ["attention"]


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
