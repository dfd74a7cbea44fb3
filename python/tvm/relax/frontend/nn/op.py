"""Operators on tensors of networks that are traced.

Each binds the call of a graph operator to a variable, whose name `name` suggests, and returns
tensors. They compute what the operators of :mod:`tvm.relax.op` of the same names do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import error, tir
from tvm.ir import RelayExpr

from ... import op as _op
from ...expr import ShapeExpr, const
from .collectives import ccl_allgather, ccl_allreduce, ccl_broadcast_from_worker0
from .debug import debug_func, print_
from .kernel_ops import extern, tensor_expr_op, tensor_ir_inplace_op, tensor_ir_op
from .sampling import (
    multinomial_from_uniform,
    renormalize_top_p_top_k_prob,
    sample_top_p_top_k_from_sorted_prob,
)
from .tensor import IntExpr, Tensor, get_default_dtype, wrap_nested

__all__ = [
    "add",
    "arange",
    "argsort",
    "astype",
    "broadcast_to",
    "ccl_allgather",
    "ccl_allreduce",
    "ccl_broadcast_from_worker0",
    "chunk",
    "concat",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv3d",
    "cumsum",
    "debug_func",
    "divide",
    "empty",
    "equal",
    "exp",
    "extern",
    "full",
    "gelu",
    "get_timestep_embedding",
    "greater",
    "greater_equal",
    "group_norm",
    "interpolate",
    "layer_norm",
    "less",
    "less_equal",
    "matmul",
    "max",
    "maximum",
    "min",
    "minimum",
    "multinomial_from_uniform",
    "multiply",
    "negative",
    "not_equal",
    "ones",
    "pad",
    "permute",
    "permute_dims",
    "print_",
    "relu",
    "renormalize_top_p_top_k_prob",
    "repeat",
    "reshape",
    "rms_norm",
    "sample_top_p_top_k_from_sorted_prob",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "subtract",
    "sum",
    "take",
    "tanh",
    "tensor_expr_op",
    "tensor_ir_inplace_op",
    "tensor_ir_op",
    "topk",
    "triu",
    "unsqueeze",
    "where",
    "wrap_nested",
    "zeros",
]

Size = int | Sequence[int]
Axes = int | Sequence[int] | None


def add(a: Tensor, b: Tensor, name: str = "add") -> Tensor:
    """a + b, which broadcast as in numpy."""
    return wrap_nested(_op.add(a._expr, b._expr), name)


def subtract(a: Tensor, b: Tensor, name: str = "subtract") -> Tensor:
    """a - b."""
    return wrap_nested(_op.subtract(a._expr, b._expr), name)


def multiply(a: Tensor, b: Tensor, name: str = "mul") -> Tensor:
    """a * b."""
    return wrap_nested(_op.multiply(a._expr, b._expr), name)


def divide(a: Tensor, b: Tensor, name: str = "divide") -> Tensor:
    """a / b."""
    return wrap_nested(_op.divide(a._expr, b._expr), name)


def maximum(x1: Tensor, x2: Tensor, name: str = "maximum") -> Tensor:
    """The greater of both, element by element."""
    return wrap_nested(_op.maximum(x1._expr, x2._expr), name)


def minimum(x1: Tensor, x2: Tensor, name: str = "minimum") -> Tensor:
    """The smaller of both, element by element."""
    return wrap_nested(_op.minimum(x1._expr, x2._expr), name)


def less(a: Tensor, b: Tensor, name: str = "less") -> Tensor:
    """a < b, as bool."""
    return wrap_nested(_op.less(a._expr, b._expr), name)


def less_equal(a: Tensor, b: Tensor, name: str = "less_equal") -> Tensor:
    """a <= b, as bool."""
    return wrap_nested(_op.less_equal(a._expr, b._expr), name)


def greater(a: Tensor, b: Tensor, name: str = "greater") -> Tensor:
    """a > b, as bool."""
    return wrap_nested(_op.greater(a._expr, b._expr), name)


def greater_equal(a: Tensor, b: Tensor, name: str = "greater_equal") -> Tensor:
    """a >= b, as bool."""
    return wrap_nested(_op.greater_equal(a._expr, b._expr), name)


def equal(a: Tensor, b: Tensor, name: str = "equal") -> Tensor:
    """a == b, as bool."""
    return wrap_nested(_op.equal(a._expr, b._expr), name)


def not_equal(a: Tensor, b: Tensor, name: str = "not_equal") -> Tensor:
    """a != b, as bool."""
    return wrap_nested(_op.not_equal(a._expr, b._expr), name)


def where(condition: Tensor, x1: Tensor, x2: Tensor, name: str = "where") -> Tensor:
    """x1 where the condition holds, x2 elsewhere; a condition of numbers holds where not 0."""
    return wrap_nested(_op.where(astype(condition, "bool")._expr, x1._expr, x2._expr), name)


def matmul(a: Tensor, b: Tensor, out_dtype: str | None = None, name: str = "matmul") -> Tensor:
    """Matrix products, with leading dimensions that broadcast."""
    return wrap_nested(_op.matmul(a._expr, b._expr, out_dtype=out_dtype), name)


def _with_bias(product: RelayExpr, bias: Tensor | None, layout: str) -> RelayExpr:
    if bias is None:
        return product
    shape = [-1 if axis == "C" else 1 for axis in layout]
    return _op.add(product, _op.reshape(bias._expr, shape))


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    name: str = "conv1d",
) -> Tensor:
    """Convolution of (batch, channels, width) with (filters, channels / groups, window)."""
    product = _op.nn.conv1d(x._expr, weight._expr, stride, padding, dilation, groups)
    return wrap_nested(_with_bias(product, bias, "NCW"), name)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    name: str = "conv2d",
) -> Tensor:
    """Convolution of images with (filters, channels / groups, height, width) weights."""
    product = _op.nn.conv2d(
        x._expr, weight._expr, stride, padding, dilation, groups, data_layout=data_layout
    )
    return wrap_nested(_with_bias(product, bias, data_layout), name)


def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCDHW",
    name: str = "conv3d",
) -> Tensor:
    """Convolution of volumes with (filters, channels / groups, depth, height, width) weights."""
    product = _op.nn.conv3d(
        x._expr, weight._expr, stride, padding, dilation, groups, data_layout=data_layout
    )
    return wrap_nested(_with_bias(product, bias, data_layout), name)


def conv1d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    name: str = "conv1d_transpose",
) -> Tensor:
    """Transposed convolution of (batch, channels, width) with (channels, filters, window)."""
    product = _op.nn.conv1d_transpose(
        x._expr, weight._expr, stride, padding, output_padding, dilation, groups
    )
    return wrap_nested(_with_bias(product, bias, "NCW"), name)


def relu(x: Tensor, name: str = "relu") -> Tensor:
    """max(x, 0)."""
    return wrap_nested(_op.nn.relu(x._expr), name)


def silu(x: Tensor, name: str = "silu") -> Tensor:
    """x * sigmoid(x)."""
    return wrap_nested(_op.nn.silu(x._expr), name)


def softplus(
    x: Tensor, beta: float = 1.0, threshold: float = 20.0, name: str = "softplus"
) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds a threshold."""
    return wrap_nested(_op.nn.softplus(x._expr, beta, threshold), name)


def gelu(x: Tensor, approximate: str | None = None, name: str = "gelu") -> Tensor:
    """x times the normal distribution function of x; with "tanh" as an approximation."""
    activation = _op.nn.gelu_tanh if approximate == "tanh" else _op.nn.gelu
    return wrap_nested(activation(x._expr), name)


def sigmoid(x: Tensor, name: str = "sigmoid") -> Tensor:
    """1 / (1 + exp(-x))."""
    return wrap_nested(_op.sigmoid(x._expr), name)


def tanh(x: Tensor, name: str = "tanh") -> Tensor:
    """The hyperbolic tangent."""
    return wrap_nested(_op.tanh(x._expr), name)


def exp(x: Tensor, name: str = "exp") -> Tensor:
    """The exponential function."""
    return wrap_nested(_op.exp(x._expr), name)


def negative(x: Tensor, name: str = "neg") -> Tensor:
    """-x."""
    return wrap_nested(_op.negative(x._expr), name)


def square(x: Tensor, name: str = "square") -> Tensor:
    """x * x."""
    return wrap_nested(_op.square(x._expr), name)


def sqrt(x: Tensor, name: str = "sqrt") -> Tensor:
    """The square root."""
    return wrap_nested(_op.sqrt(x._expr), name)


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    """Exponentials along an axis over their sum."""
    return wrap_nested(_op.nn.softmax(x._expr, axis), name)


def sum(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "sum") -> Tensor:
    """Sum over axes, all of them by default."""
    return wrap_nested(_op.sum(x._expr, axis, keepdims), name)


def max(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "max") -> Tensor:
    """Largest element over axes, all of them by default."""
    return wrap_nested(_op.max(x._expr, axis, keepdims), name)


def min(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "min") -> Tensor:
    """Smallest element over axes, all of them by default."""
    return wrap_nested(_op.min(x._expr, axis, keepdims), name)


def cumsum(
    data: Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
    name: str = "cumsum",
) -> Tensor:
    """Sums of all elements up to each one along an axis, without it if exclusive."""
    return wrap_nested(_op.cumsum(data._expr, axis, dtype, exclusive), name)


def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    name: str = "layer_norm",
) -> Tensor:
    """Layer normalisation over the last dimensions, after Ba et al., 2016."""
    extents = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    gamma = const(np.ones(extents), x.dtype) if weight is None else weight._expr
    beta = const(np.zeros(extents), x.dtype) if bias is None else bias._expr
    axes = list(range(-len(extents), 0))
    return wrap_nested(_op.nn.layer_norm(x._expr, gamma, beta, axes, eps), name)


def rms_norm(
    x: Tensor, weight: Tensor, axes: int | Sequence[int], epsilon: float = 1e-5,
    name: str = "rms_norm",
) -> Tensor:  # fmt: skip
    """x over the root of its mean square, times weights, after Zhang and Sennrich, 2019."""
    return wrap_nested(_op.nn.rms_norm(x._expr, weight._expr, axes, epsilon), name)


def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float = 1e-5,
    channel_axis: int = 1,
    axes: Sequence[int] | None = None,
    name: str = "group_norm",
) -> Tensor:
    """Group normalisation, after Wu and He, 2018; over all but two leading axes by default."""
    gamma = const(np.ones(x.shape[channel_axis]), x.dtype) if weight is None else weight._expr
    beta = const(np.zeros(x.shape[channel_axis]), x.dtype) if bias is None else bias._expr
    over = list(range(2, x.ndim)) if axes is None else list(axes)
    return wrap_nested(
        _op.nn.group_norm(x._expr, gamma, beta, num_groups, channel_axis, over, eps), name
    )


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    name: str = "scaled_dot_product_attention",
) -> Tensor:
    """softmax(query @ key * scale) @ value, for tensors of (batch, rows, heads, size of a head).

    Parameters
    ----------
    attn_mask : added to the scores; it broadcasts to (batch, heads, rows, rows of keys).
    scale : one over the root of the size of a head by default.
    """
    mask = None if attn_mask is None else attn_mask._expr
    causal = "TopLeft" if is_causal else None
    return wrap_nested(
        _op.nn.attention(
            query._expr, key._expr, value._expr, mask, scale=scale, causal_mask=causal
        ),
        name,
    )


def unsqueeze(x: Tensor, dim: int, name: str = "unsqueeze") -> Tensor:
    """A dimension of one element more."""
    return wrap_nested(_op.expand_dims(x._expr, dim), name)


def squeeze(x: Tensor, axis: Axes = -1, name: str = "squeeze") -> Tensor:
    """Without dimensions of one element; all of them for None."""
    return wrap_nested(_op.squeeze(x._expr, axis), name)


def concat(x: Sequence[Tensor], dim: int, name: str = "concat") -> Tensor:
    """Tensors one after the other along a dimension."""
    return wrap_nested(_op.concat([tensor._expr for tensor in x], dim), name)


def split(
    ary: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0, name: str = "split"
) -> tuple[Tensor, ...]:
    """Pieces along an axis: as many as said, or cut at the places given."""
    return wrap_nested(_op.split(ary._expr, indices_or_sections, axis), name)


def chunk(x: Tensor, chunks: int, dim: int = 0, name: str = "chunk") -> tuple[Tensor, ...]:
    """As many pieces along a dimension."""
    return wrap_nested(_op.split(x._expr, chunks, dim), name)


def broadcast_to(x: Tensor, shape: Sequence[IntExpr], name: str = "broadcast_to") -> Tensor:
    """The elements repeated up to a shape."""
    return wrap_nested(_op.broadcast_to(x._expr, shape), name)


def permute_dims(x: Tensor, axes: Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """The dimensions in another order, reversed by default."""
    if name is None:
        hint = str(getattr(x._expr, "name_hint", ""))
        name = hint.replace("linear", "matmul") if "linear" in hint else "permute_dims"
    return wrap_nested(_op.permute_dims(x._expr, axes), name)


def permute(x: Tensor, axes: Sequence[int] | None, name: str = "permute") -> Tensor:
    """:func:`permute_dims` under PyTorch's name."""
    return wrap_nested(_op.permute_dims(x._expr, axes), name)


def reshape(x: Tensor, shape: Sequence[IntExpr], name: str = "reshape") -> Tensor:
    """The elements in another shape; -1 once for what is left, 0 for the extent as it was."""
    return wrap_nested(_op.reshape(x._expr, shape), name)


def repeat(x: Tensor, repeats: int, axis: int | None = None, name: str = "repeat") -> Tensor:
    """Each element several times along an axis, or of the flat tensor."""
    return wrap_nested(_op.repeat(x._expr, repeats, axis), name)


def take(x: Tensor, indices: Tensor, axis: int | None = None, name: str = "take") -> Tensor:
    """Elements by index along an axis."""
    return wrap_nested(_op.take(x._expr, indices._expr, axis), name)


def astype(x: Tensor, dtype: str, name: str = "astype") -> Tensor:
    """The elements in another type; the tensor itself where that is theirs."""
    return x if x.dtype == dtype else wrap_nested(_op.astype(x._expr, dtype), name)


def pad(
    x: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0, name: str = "pad"
) -> Tensor:
    """A border around the elements: sizes before and behind each dimension, in a row."""
    return wrap_nested(_op.nn.pad(x._expr, pad_width=pad, pad_mode=mode, pad_value=value), name)


def triu(x: Tensor, diagonal: int = 0, name: str = "triu") -> Tensor:
    """Matrices with zeros below a diagonal."""
    return wrap_nested(_op.triu(x._expr, diagonal), name)


def full(
    shape: Sequence[IntExpr],
    fill_value: Tensor | float | int | tir.PrimExpr,
    dtype: str = "float32",
    name: str = "full",
) -> Tensor:
    """The same value everywhere."""
    if isinstance(fill_value, tir.IntImm | tir.FloatImm):
        fill_value = fill_value.value
    value = fill_value._expr if isinstance(fill_value, Tensor) else const(fill_value, dtype)
    return wrap_nested(_op.full(shape, value, dtype), name)


def zeros(shape: Sequence[IntExpr], dtype: str = "float32", name: str = "zeros") -> Tensor:
    """0 everywhere."""
    return wrap_nested(_op.zeros(shape, dtype), name)


def empty(shape: Sequence[IntExpr], dtype: str = "float32", name: str = "empty") -> Tensor:
    """Memory that nothing was written to."""
    extents = ShapeExpr(list(shape))
    return wrap_nested(_op.builtin.alloc_tensor(extents, dtype, 0), name)


def ones(shape: Sequence[IntExpr], dtype: str = "float32", name: str = "ones") -> Tensor:
    """1 everywhere."""
    return wrap_nested(_op.ones(shape, dtype), name)


def arange(
    start: int,
    end: int | None = None,
    step: int = 1,
    dtype: str | None = "float32",
    name: str = "arange",
) -> Tensor:
    """Numbers from start to end, or from 0 to start, at equal distances."""
    return wrap_nested(_op.arange(start, end, step, dtype), name)


def sort(x: Tensor, axis: int = -1, descending: bool = False, name: str = "sort") -> Tensor:
    """The elements along an axis in order."""
    return wrap_nested(_op.sort(x._expr, axis, descending), name)


def argsort(
    data: Tensor, axis: int = -1, descending: bool = False, dtype: str = "int32",
    name: str = "argsort",
) -> Tensor:  # fmt: skip
    """Indices that put the elements along an axis in order."""
    return wrap_nested(_op.argsort(data._expr, axis, descending, dtype), name)


def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: str = "int32",
    name: str = "topk",
) -> Any:
    """The k largest or smallest elements along an axis: "values", "indices" or "both"."""
    return wrap_nested(_op.topk(data._expr, k, axis, ret_type, largest, dtype), name)


def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    data_layout: str = "NCHW",
    name: str = "interpolate",
) -> Tensor:
    """Images of another size: `size`, or the size times `scale_factor`.

    Parameters
    ----------
    mode : "nearest", "bilinear" or "bicubic".

    Raises
    ------
    ValueError : neither size nor factor is given.
    """
    if size is None:
        if scale_factor is None:
            raise error.ValueError("nn.interpolate: give size or scale_factor")
        places = [i for i, axis in enumerate(data_layout) if axis not in "NC"]
        factors = (
            [scale_factor] * len(places)
            if isinstance(scale_factor, int | float)
            else list(scale_factor)
        )
        size = [int(x.shape[i] * factor) for i, factor in zip(places, factors)]
    nearest = mode.startswith("nearest")
    method = "nearest_neighbor" if nearest else mode.removeprefix("bi")
    transformation = "asymmetric" if nearest else "align_corners" if align_corners else "half_pixel"
    return wrap_nested(
        _op.image.resize2d(
            x._expr,
            size,
            layout=data_layout,
            method=method,
            coordinate_transformation_mode=transformation,
        ),
        name,
    )


def get_timestep_embedding(
    x: Tensor,
    embedding_dim: int,
    flip_sin_to_cos: bool = False,
    downscale_freq_shift: float = 1,
    scale: float = 1,
    max_period: int = 10000,
    name: str = "get_timestep_embedding",
) -> Tensor:
    """Sines and cosines of time steps at falling frequencies (Ho et al., NeurIPS 2020).

    Parameters
    ----------
    x : the steps, of one dimension.
    embedding_dim : columns of the result; an odd last one is 0.
    flip_sin_to_cos : cosines first.
    downscale_freq_shift : makes the frequencies fall faster.
    scale : factor of the angles.
    max_period : one over the least frequency.
    """
    half = embedding_dim // 2
    steps = _op.astype(x._expr, "float32")
    exponent = const(-math.log(max_period), "float32") * _op.arange(0, half, dtype="float32")
    exponent = exponent / const(half - downscale_freq_shift, "float32")
    angles = _op.expand_dims(steps, 1) * _op.expand_dims(_op.exp(exponent), 0)
    if scale != 1:
        angles = const(scale, "float32") * angles
    halves = [_op.sin(angles), _op.cos(angles)]
    result = _op.concat(halves[::-1] if flip_sin_to_cos else halves, axis=-1)
    if embedding_dim % 2 == 1:
        result = _op.nn.pad(result, (0, 0, 0, 1))
    return wrap_nested(_op.astype(result, get_default_dtype()), name)
