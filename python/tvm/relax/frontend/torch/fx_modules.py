"""Modules of ``torch.nn`` in graphs of ``torch.fx``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from tvm.ir import RelayExpr
from tvm.relax import TupleGetItem, op

from .fx_node import FxNode

__all__ = ["CONVERTERS"]

Converter = Callable[[FxNode], Any]
CONVERTERS: dict[type, Converter] = {}


def _module(*kinds: type) -> Callable[[Converter], Converter]:
    def register(converter: Converter) -> Converter:
        for kind in kinds:
            CONVERTERS[kind] = converter
        return converter

    return register


def _with_bias(a: FxNode, out: RelayExpr, bias: torch.Tensor | None, rank: int) -> RelayExpr:
    out = a.emit(out)
    if bias is None:
        return out
    spread = a.emit(op.reshape(a.parameter(bias), [1, bias.shape[0], *[1] * rank]))
    return a.emit(op.add(out, spread))


def _padding(a: FxNode, rank: int) -> Sequence[int]:
    padding = a.module.padding
    if padding == "valid":
        return [0] * rank
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(a.module.dilation, a.module.kernel_size)]
        return [t // 2 for t in totals] + [t - t // 2 for t in totals]
    return padding


@_module(nn.Conv1d, nn.Conv2d, nn.Conv3d)
def _conv(a: FxNode) -> RelayExpr:
    m = a.module
    rank = m.weight.dim() - 2
    convolution = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}[rank]
    if m.padding_mode != "zeros":
        raise a.refuse(f"a convolution with a border of {m.padding_mode}")
    out = convolution(
        a.data, a.parameter(m.weight), strides=m.stride, padding=_padding(a, rank),
        dilation=m.dilation, groups=m.groups, out_dtype="float32",
    )  # fmt: skip
    return _with_bias(a, out, m.bias, rank)


@_module(nn.ConvTranspose1d, nn.ConvTranspose2d)
def _conv_transpose(a: FxNode) -> RelayExpr:
    m = a.module
    rank = m.weight.dim() - 2
    convolution = {1: op.nn.conv1d_transpose, 2: op.nn.conv2d_transpose}[rank]
    out = convolution(
        a.data, a.parameter(m.weight), strides=m.stride, padding=m.padding,
        output_padding=m.output_padding, dilation=m.dilation, groups=m.groups,
        out_dtype="float32",
    )  # fmt: skip
    return _with_bias(a, out, m.bias, rank)


@_module(nn.Linear)
def _linear(a: FxNode) -> RelayExpr:
    m = a.module
    return linear(a, a.data, a.parameter(m.weight), a.parameter(m.bias))


def linear(a: FxNode, data: RelayExpr, weight: RelayExpr, bias: RelayExpr | None) -> RelayExpr:
    """data times the transpose of weight, plus bias."""
    turned = a.emit(op.permute_dims(weight))
    out = a.emit(op.matmul(data, turned, out_dtype="float32"))
    return out if bias is None else a.emit(op.add(out, bias))


@_module(nn.MaxPool2d)
def _max_pool(a: FxNode) -> RelayExpr:
    m = a.module
    return a.emit(
        op.nn.max_pool2d(a.data, m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode)
    )


@_module(nn.AvgPool2d)
def _avg_pool(a: FxNode) -> RelayExpr:
    m = a.module
    return a.emit(
        op.nn.avg_pool2d(a.data, m.kernel_size, m.stride, m.padding, ceil_mode=m.ceil_mode)
    )


@_module(nn.AdaptiveAvgPool2d)
def _adaptive_pool(a: FxNode) -> RelayExpr:
    return a.emit(op.nn.adaptive_avg_pool2d(a.data, a.module.output_size))


@_module(nn.BatchNorm2d)
def _batch_norm(a: FxNode) -> RelayExpr:
    m = a.module
    weight, bias, mean, var = (
        a.parameter(p) for p in (m.weight, m.bias, m.running_mean, m.running_var)
    )
    whole = a.emit(op.nn.batch_norm(a.data, weight, bias, mean, var, axis=1, epsilon=m.eps))
    return a.emit(TupleGetItem(whole, 0))


@_module(nn.LayerNorm)
def _layer_norm(a: FxNode) -> RelayExpr:
    m = a.module
    return layer_norm(
        a, a.data, m.normalized_shape, a.parameter(m.weight), a.parameter(m.bias), m.eps
    )


def layer_norm(
    a: FxNode,
    data: RelayExpr,
    shape: Sequence[int] | int,
    gamma: RelayExpr | None,
    beta: RelayExpr | None,
    epsilon: float,
) -> RelayExpr:
    """Layer normalisation over the last dimensions."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    gamma = a.parameter(torch.ones(sizes)) if gamma is None else gamma
    beta = a.parameter(torch.zeros(sizes)) if beta is None else beta
    axes = list(range(-len(sizes), 0))
    return a.emit(op.nn.layer_norm(data, gamma, beta, axes, epsilon))


@_module(nn.GroupNorm)
def _group_norm(a: FxNode) -> RelayExpr:
    m = a.module
    rank = len(a.shape(a.data))
    gamma = m.weight if m.affine else torch.ones(m.num_channels)
    beta = m.bias if m.affine else torch.zeros(m.num_channels)
    return a.emit(
        op.nn.group_norm(
            a.data, a.parameter(gamma), a.parameter(beta), num_groups=m.num_groups,
            channel_axis=1, axes=list(range(2, rank)), epsilon=m.eps,
        )
    )  # fmt: skip


@_module(nn.Embedding)
def _embedding(a: FxNode) -> RelayExpr:
    return embedding(a, a.data, a.parameter(a.module.weight))


def embedding(a: FxNode, places: RelayExpr, weight: RelayExpr | None) -> RelayExpr:
    """Rows of a matrix, one for each place."""
    assert weight is not None
    index = a.emit(op.astype(places, "int32"))
    shape = a.shape(index)
    if len(shape) == 1:
        return a.emit(op.take(weight, index, axis=0))
    flat = a.emit(op.reshape(index, [-1]))
    rows = a.emit(op.take(weight, flat, axis=0))
    return a.emit(op.reshape(rows, [*shape, a.shape(weight)[1]]))


@_module(nn.CrossEntropyLoss)
def _cross_entropy(a: FxNode) -> RelayExpr:
    m = a.module
    return cross_entropy(
        a, a.args[0], a.args[1], a.parameter(m.weight), m.reduction, m.ignore_index
    )


def cross_entropy(
    a: FxNode,
    predictions: RelayExpr,
    targets: RelayExpr,
    weights: RelayExpr | None,
    reduction: str,
    ignore_index: int,
) -> RelayExpr:
    """Negative log likelihood of the softmax of predictions."""
    logs = a.emit(op.nn.log_softmax(predictions))
    return a.emit(op.nn.nll_loss(logs, targets, weights, reduction, ignore_index))


@_module(nn.Dropout, nn.Identity)
def _identity(a: FxNode) -> RelayExpr:
    return a.data


@_module(nn.Flatten)
def _flatten(a: FxNode) -> RelayExpr:
    return flatten(a, a.data, a.module.start_dim, a.module.end_dim)


def flatten(a: FxNode, data: RelayExpr, first: int, last: int) -> RelayExpr:
    """Dimensions first to last as one."""
    shape = a.shape(data)
    first, last = first % len(shape), last % len(shape)
    return a.emit(op.reshape(data, [*shape[:first], -1, *shape[last + 1 :]]))


@_module(nn.LeakyReLU)
def _leaky_relu(a: FxNode) -> RelayExpr:
    return a.emit(op.nn.leakyrelu(a.data, a.module.negative_slope))


@_module(nn.GELU)
def _gelu(a: FxNode) -> RelayExpr:
    tanh = a.module.approximate == "tanh"
    return a.emit(op.nn.gelu_tanh(a.data) if tanh else op.nn.gelu(a.data))


@_module(nn.ReLU6)
def _relu6(a: FxNode) -> RelayExpr:
    return a.emit(op.clip(a.data, 0, 6))


@_module(nn.Softmax)
def _softmax(a: FxNode) -> RelayExpr:
    return a.emit(op.nn.softmax(a.data, _axis(a)))


@_module(nn.LogSoftmax)
def _log_softmax(a: FxNode) -> RelayExpr:
    return a.emit(op.nn.log_softmax(a.data, _axis(a)))


def _axis(a: FxNode) -> int:
    return -1 if a.module.dim is None else a.module.dim


@_module(nn.Upsample)
def _upsample(a: FxNode) -> RelayExpr:
    m = a.module
    return resized(a, a.data, m.size, m.scale_factor, m.mode, m.align_corners)


def resized(
    a: FxNode,
    data: RelayExpr,
    size: Any,
    scale: Any,
    mode: str,
    align_corners: bool | None,
) -> RelayExpr:
    """An image of another size, or of a multiple of its own."""
    shape = a.shape(data)
    if size is None:
        factors = scale if isinstance(scale, (tuple, list)) else [scale] * (len(shape) - 2)
        size = [int(extent * factor) for extent, factor in zip(shape[2:], factors)]
    methods = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}
    if mode not in methods:
        raise a.refuse(f"interpolation of mode '{mode}'")
    how = "align_corners" if align_corners else "half_pixel"
    if mode == "nearest":
        how = "asymmetric"
    return a.emit(
        op.image.resize2d(
            data, size, layout="NCHW", method=methods[mode], coordinate_transformation_mode=how
        )
    )


def _plain(make: Callable[[RelayExpr], RelayExpr]) -> Converter:
    return lambda a: a.emit(make(a.data))


CONVERTERS |= {
    nn.ReLU: _plain(op.nn.relu),
    nn.SiLU: _plain(op.nn.silu),
    nn.Sigmoid: _plain(op.sigmoid),
    nn.Tanh: _plain(op.tanh),
    nn.Hardswish: _plain(op.nn.hardswish),
    nn.Hardsigmoid: _plain(op.nn.hardsigmoid),
}
