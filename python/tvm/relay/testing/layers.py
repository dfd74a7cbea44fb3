"""Layers with variables of their own."""

from __future__ import annotations

from typing import Any

from tvm.ir import RelayExpr

from .. import op
from ..expr import var

__all__ = ["batch_norm_infer", "conv2d", "conv2d_transpose", "conv3d", "conv_bn_relu", "dense_bias"]


def batch_norm_infer(data: RelayExpr, name: str, axis: int = 1, **settings: Any) -> RelayExpr:
    """Batch normalisation with variables named after it."""
    names = ("gamma", "beta", "moving_mean", "moving_var")
    gamma, beta, mean, variance = (var(f"{name}_{part}") for part in names)
    return op.nn.batch_norm(data, gamma, beta, mean, variance, axis=axis, **settings)[0]


def conv2d(data: RelayExpr, name: str, **settings: Any) -> RelayExpr:
    """Convolution with a variable for its weights."""
    return op.nn.conv2d(data, var(f"{name}_weight"), **settings)


def conv3d(data: RelayExpr, name: str, **settings: Any) -> RelayExpr:
    """Convolution of volumes with a variable for its weights."""
    return op.nn.conv3d(data, var(f"{name}_weight"), **settings)


def conv2d_transpose(data: RelayExpr, name: str, **settings: Any) -> RelayExpr:
    """Transposed convolution with a variable for its weights."""
    return op.nn.conv2d_transpose(data, var(f"{name}_weight"), **settings)


def dense_bias(data: RelayExpr, name: str, units: int) -> RelayExpr:
    """Dense layer with bias."""
    out = op.nn.dense(data, var(f"{name}_weight"), units=units)
    return op.nn.bias_add(out, var(f"{name}_bias"), axis=-1)


def conv_bn_relu(data: RelayExpr, name: str, **settings: Any) -> RelayExpr:
    """Convolution, batch normalisation and ReLU."""
    out = batch_norm_infer(conv2d(data, f"{name}_conv", **settings), f"{name}_bn")
    return op.nn.relu(out)
