"""Computations of neural operators that fusion does not know, for their legalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error, te, tir, topi

from ...op.computations import relaid
from ...op.precision import computed_in_float32

__all__ = ["NEURAL_FUNCTIONS", "conv_transpose"]

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def conv_transpose(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> te.Tensor:
    """A transposed convolution of any layout, without a copy of the weight."""
    out = topi.nn.conv_transpose(
        data, weight, strides, padding, output_padding, groups, data_layout, kernel_layout,
        out_dtype or None, dilation,
    )  # fmt: skip
    return relaid(out, data_layout, out_layout)


def _pool(n: int, kind: str) -> Callable[..., te.Tensor]:
    pool = topi.nn.pool1d if n == 1 else topi.nn.pool3d

    def compute(
        data: te.Tensor,
        pool_size: Any,
        strides: Any,
        padding: Any,
        dilation: Any = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str = "NC" + _SPATIAL[n],
        out_layout: str | None = None,
    ) -> te.Tensor:
        out = pool(
            data, pool_size, strides, dilation, padding, kind, ceil_mode, layout, count_include_pad
        )
        return relaid(out, layout, out_layout)

    return compute


def _adaptive_pool(n: int) -> Callable[..., te.Tensor]:
    pool = topi.nn.adaptive_pool1d if n == 1 else topi.nn.adaptive_pool3d

    def compute(
        data: te.Tensor,
        output_size: Any = None,
        layout: str = "NC" + _SPATIAL[n],
        out_layout: str | None = None,
    ) -> te.Tensor:
        if output_size is None:
            return topi.identity(data)
        return relaid(pool(data, output_size, "avg", layout), layout, out_layout)

    return compute


def _attention(
    query: te.Tensor,
    key: te.Tensor,
    value: te.Tensor,
    bias: te.Tensor | None = None,
    scale: Any = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> te.Tensor:
    """Scores of (batch, rows, heads, size) tensors, their softmax, and its product with values."""
    if window_size is not None:
        raise error.ValueError("relax.nn.attention: legalisation knows no window_size")
    batch, rows, heads, size = query.shape
    columns, width = key.shape[1], value.shape[3]

    def by_heads(x: te.Tensor) -> te.Tensor:
        extents = [batch * heads, x.shape[1], x.shape[3]]
        return topi.reshape(topi.transpose(x, [0, 2, 1, 3]), extents)

    scores = topi.nn.batch_matmul(by_heads(query), by_heads(key))
    dtype = str(query.dtype)
    if scale is None:
        factor = tir.const(1, dtype) / tir.sqrt(tir.convert(size).astype(dtype))
    else:
        factor = tir.convert(scale).astype(dtype)
    scores = topi.multiply(scores, factor)
    if bias is not None:
        whole = topi.reshape(scores, [batch, heads, rows, columns])
        scores = topi.reshape(topi.add(whole, bias), [batch * heads, rows, columns])
    if causal_mask is not None:
        ahead = 0 if causal_mask == "TopLeft" else columns - rows
        least = tir.min_value(dtype)
        plain = scores
        scores = te.compute(
            plain.shape,
            lambda b, i, j: tir.if_then_else(j <= i + ahead, plain[b, i, j], least),
            name="causal",
            tag="broadcast",
        )
    attended = topi.nn.batch_matmul(
        topi.nn.softmax(scores, axis=-1), by_heads(value), transpose_b=False
    )
    apart = topi.reshape(attended, [batch, heads, rows, width])
    return topi.transpose(apart, [0, 2, 1, 3])


def _log_softmax(data: te.Tensor, axis: int = -1) -> te.Tensor:
    """Logarithm of the softmax, without memory for exponentials of single elements."""
    at = topi.utils.normalize_axis(axis, len(data.shape))
    shape = topi.utils.get_const_tuple(data.shape)
    k, j = (te.reduce_axis((0, shape[at]), name=name) for name in ("k", "k"))
    kept = shape[:at] + shape[at + 1 :]

    def others(indices: tuple[Any, ...]) -> tuple[Any, ...]:
        return indices[:at] + indices[at + 1 :]

    largest = te.compute(
        kept, lambda *i: te.max(data(*i[:at], k, *i[at:]), axis=k), name="T_softmax_maxelem"
    )
    total = te.compute(
        kept,
        lambda *i: te.sum(tir.exp(data(*i[:at], j, *i[at:]) - largest(*i)), axis=j),
        name="T_softmax_expsum",
    )
    return te.compute(
        shape,
        lambda *i: data(*i) - largest(*others(i)) - tir.log(total(*others(i))),
        name="T_log_softmax",
        attrs={"axis": at},
    )


def _einsum(operands: Sequence[te.Tensor], subscripts: str) -> te.Tensor:
    return topi.einsum(subscripts, *operands)


NEURAL_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relax.nn.conv1d_transpose": conv_transpose,
    "relax.nn.conv2d_transpose": conv_transpose,
    "relax.nn.max_pool1d": _pool(1, "max"),
    "relax.nn.max_pool3d": _pool(3, "max"),
    "relax.nn.avg_pool1d": _pool(1, "avg"),
    "relax.nn.avg_pool3d": _pool(3, "avg"),
    "relax.nn.adaptive_avg_pool1d": _adaptive_pool(1),
    "relax.nn.adaptive_avg_pool3d": _adaptive_pool(3),
    "relax.nn.log_softmax": computed_in_float32(_log_softmax),
    "relax.nn.attention": _attention,
    "relax.nn.attention_bias": _attention,
    "relax.einsum": _einsum,
}
"""From te tensors and settings to the result, by the operator's full name."""
