"""Random numbers of PyTorch's generator: ``torch.manual_seed`` repeats them, no node's seed."""

from __future__ import annotations

import torch

from ..types import dtype_of
from .registry import Node, operator

__all__: list[str] = []


def _dtype(n: Node, default: torch.dtype) -> torch.dtype:
    given = n.attr("dtype")
    return default if given is None else dtype_of(given)


def _normal(n: Node, drawn: torch.Tensor) -> torch.Tensor:
    return drawn * float(n.attr("scale", 1.0)) + float(n.attr("mean", 0.0))


def _uniform(n: Node, drawn: torch.Tensor) -> torch.Tensor:
    low, high = float(n.attr("low", 0.0)), float(n.attr("high", 1.0))
    return drawn * (high - low) + low


@operator("RandomNormal")
def _random_normal(n: Node) -> torch.Tensor:
    return _normal(n, torch.randn(n.attr("shape"), dtype=_dtype(n, torch.float32)))


@operator("RandomNormalLike")
def _random_normal_like(n: Node, x: torch.Tensor) -> torch.Tensor:
    return _normal(n, torch.randn(x.shape, dtype=_dtype(n, x.dtype)))


@operator("RandomUniform")
def _random_uniform(n: Node) -> torch.Tensor:
    return _uniform(n, torch.rand(n.attr("shape"), dtype=_dtype(n, torch.float32)))


@operator("RandomUniformLike")
def _random_uniform_like(n: Node, x: torch.Tensor) -> torch.Tensor:
    return _uniform(n, torch.rand(x.shape, dtype=_dtype(n, x.dtype)))


@operator("Bernoulli")
def _bernoulli(n: Node, x: torch.Tensor) -> torch.Tensor:
    return torch.bernoulli(x).to(_dtype(n, x.dtype))


@operator("Multinomial")
def _multinomial(n: Node, x: torch.Tensor) -> torch.Tensor:
    # The input has logarithms of chances, which need not sum up to 1.
    drawn = torch.multinomial(torch.softmax(x, -1), n.attr("sample_size", 1), replacement=True)
    return drawn.to(_dtype(n, torch.int32))
