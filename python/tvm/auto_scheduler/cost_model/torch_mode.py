"""The modes of torch that searching and learning need, whatever those of the caller are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["one_torch_thread", "with_gradients"]


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Run torch on one thread: the matrices are so small that waking another costs more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def with_gradients() -> Iterator[None]:
    """Record gradients, also where the caller tunes under `torch.no_grad` or `inference_mode`.

    Tensors that are made under `inference_mode` never take part in a gradient, so what makes
    weights, constants and data sets is wrapped as well as what differentiates.
    """
    with torch.inference_mode(False), torch.enable_grad():
        yield
