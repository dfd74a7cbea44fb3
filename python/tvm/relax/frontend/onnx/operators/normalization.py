"""Normalisations, softmax and losses."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from ..types import dtype_of
from .registry import Node, operator
from .shapes import normalized

__all__: list[str] = []


@operator("Softmax", "LogSoftmax", "Hardmax")
def _softmax(n: Node, x: torch.Tensor) -> torch.Tensor:
    axis = n.attr("axis", -1 if n.opset >= 13 else 1)
    if n.opset < 13:
        # All dimensions from the axis on counted as one.
        axis = normalized(axis, x.dim())
        flat = x.reshape(math.prod(x.shape[:axis]), -1)
        return _soften(n.op_type, flat, 1).reshape(x.shape)
    return _soften(n.op_type, x, axis)


def _soften(name: str, x: torch.Tensor, axis: int) -> torch.Tensor:
    if name == "Softmax":
        return torch.softmax(x, axis)
    if name == "LogSoftmax":
        return torch.log_softmax(x, axis)
    first = torch.argmax(x, axis, keepdim=True)
    shape = [1] * x.dim()
    shape[axis] = x.shape[axis]
    return (torch.arange(x.shape[axis]).reshape(shape) == first).to(x.dtype)


def _spread(parameter: torch.Tensor, rank: int) -> torch.Tensor:
    """One value a channel, for dimensions (batch, channel, ...)."""
    return parameter.reshape([1, -1] + [1] * (rank - 2))


@operator("BatchNormalization")
def _batch_norm(
    n: Node,
    x: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor,
    mean: torch.Tensor,
    var: torch.Tensor,
) -> list[torch.Tensor]:
    epsilon = n.attr("epsilon", 1e-5)
    if not n.attr("training_mode", 0):
        return [F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)]
    momentum = n.attr("momentum", 0.9)
    axes = [i for i in range(x.dim()) if i != 1]
    now = torch.mean(x, axes)
    spread = torch.mean((x - _spread(now, x.dim())) ** 2, axes)
    root = torch.sqrt(_spread(spread, x.dim()) + epsilon)
    out = _spread(scale, x.dim()) * (x - _spread(now, x.dim())) / root + _spread(bias, x.dim())
    return [
        out.to(x.dtype),
        mean * momentum + now * (1 - momentum),
        var * momentum + spread * (1 - momentum),
    ]


@operator("InstanceNormalization")
def _instance_norm(
    n: Node, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    return F.instance_norm(x, weight=scale, bias=bias, eps=n.attr("epsilon", 1e-5))


@operator("GroupNormalization")
def _group_norm(n: Node, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    groups = n.attr("num_groups")
    if n.opset < 21 and scale.shape[0] == groups != x.shape[1]:
        # Older opsets have one scale a group.
        scale, bias = (torch.repeat_interleave(t, x.shape[1] // groups) for t in (scale, bias))
    return F.group_norm(x, groups, scale, bias, n.attr("epsilon", 1e-5))


@operator("LayerNormalization")
def _layer_norm(
    n: Node, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor | list[torch.Tensor]:
    axis = normalized(n.attr("axis", -1), x.dim())
    shape, epsilon = list(x.shape[axis:]), n.attr("epsilon", 1e-5)
    fits = list(scale.shape) == shape and (bias is None or list(bias.shape) == shape)
    if n.n_outputs == 1 and fits:
        return F.layer_norm(x, shape, scale, bias, epsilon)
    axes = list(range(axis, x.dim()))
    wide = x.to(dtype_of(n.attr("stash_type", 1)))
    mean = torch.mean(wide, axes, keepdim=True)
    inverse = torch.rsqrt(torch.mean((wide - mean) ** 2, axes, keepdim=True) + epsilon)
    out = ((wide - mean) * inverse).to(x.dtype) * scale
    return [out if bias is None else out + bias, mean, inverse]


@operator("RMSNormalization")
def _rms_norm(n: Node, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    axis = normalized(n.attr("axis", -1), x.dim())
    wide = x.to(dtype_of(n.attr("stash_type", 1)))
    square = torch.mean(wide * wide, list(range(axis, x.dim())), keepdim=True)
    return (wide * torch.rsqrt(square + n.attr("epsilon", 1e-5))).to(x.dtype) * scale


@operator("LpNormalization")
def _lp_norm(n: Node, x: torch.Tensor) -> torch.Tensor:
    axis = n.attr("axis", -1)
    if n.attr("p", 2) == 1:
        norm = torch.sum(torch.abs(x), axis, keepdim=True)
    else:
        norm = torch.sqrt(torch.sum(x * x, axis, keepdim=True))
    return torch.where(norm == 0, torch.zeros((), dtype=x.dtype), x / norm)


@operator("MeanVarianceNormalization")
def _mean_variance_norm(n: Node, x: torch.Tensor) -> torch.Tensor:
    axes = n.attr("axes", [0, 2, 3])
    centred = x - torch.mean(x, axes, keepdim=True)
    spread = torch.sqrt(
        torch.mean(x * x, axes, keepdim=True) - torch.mean(x, axes, keepdim=True) ** 2
    )
    return centred / (spread + 1e-9)


@operator("LRN")
def _lrn(n: Node, x: torch.Tensor) -> torch.Tensor:
    size = n.attr("size")
    before = (size - 1) // 2
    padding = [0, 0] * (x.dim() - 2) + [before, size - 1 - before]
    squares = F.pad(x * x, padding)
    total = squares[:, : x.shape[1]]
    for i in range(1, size):
        total = total + squares[:, i : i + x.shape[1]]
    scale = n.attr("bias", 1.0) + n.attr("alpha", 1e-4) / size * total
    return x / scale ** n.attr("beta", 0.75)


@operator("NegativeLogLikelihoodLoss")
def _nll_loss(
    n: Node, x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None
) -> torch.Tensor:
    return _negative_log_likelihood(n, x, target, weight)


@operator("SoftmaxCrossEntropyLoss")
def _cross_entropy(
    n: Node, x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None
) -> list[torch.Tensor]:
    logarithms = torch.log_softmax(x, 1)
    return [_negative_log_likelihood(n, logarithms, target, weight), logarithms]


def _negative_log_likelihood(
    n: Node, x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None
) -> torch.Tensor:
    ignored = n.attr("ignore_index")
    whole = target.to(torch.int64)
    counted = torch.ones_like(whole, dtype=torch.bool) if ignored is None else whole != ignored
    safe = torch.where(counted, whole, torch.zeros_like(whole))
    loss = -torch.gather(x, 1, safe.unsqueeze(1)).squeeze(1)
    factor = counted.to(x.dtype)
    if weight is not None:
        factor = factor * torch.index_select(weight, 0, safe.reshape(-1)).reshape(safe.shape)
    loss = loss * factor
    reduction = n.attr("reduction", "mean")
    if reduction == "none":
        return loss
    total = torch.sum(loss)
    return total if reduction == "sum" else total / torch.sum(factor)
