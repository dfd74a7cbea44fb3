"""The layer of encoders that BERT and the vision transformer are made of."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["Encoder", "SelfAttention"]


class SelfAttention(nn.Module):
    """Every position looks at every other, by several heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, seen: torch.Tensor | None = None) -> torch.Tensor:
        batch, length, width = x.shape

        def split(y: torch.Tensor) -> torch.Tensor:
            return y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        mixed = F.scaled_dot_product_attention(
            split(self.query(x)), split(self.key(x)), split(self.value(x)), attn_mask=seen
        )
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Encoder(nn.Module):
    """Attention, then two linear layers, each around a shortcut.

    Parameters
    ----------
    norm_first : normalise in front of each half, as the vision transformer does, or behind the
        shortcut, as BERT does.
    """

    def __init__(self, width: int, heads: int, hidden: int, norm_first: bool) -> None:
        super().__init__()
        epsilon = 1e-6 if norm_first else 1e-12
        self.norm_first = norm_first
        self.attention = SelfAttention(width, heads)
        self.attention_norm = nn.LayerNorm(width, epsilon)
        self.expand = nn.Linear(width, hidden)
        self.contract = nn.Linear(hidden, width)
        self.output_norm = nn.LayerNorm(width, epsilon)

    def _feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.contract(F.gelu(self.expand(x)))

    def forward(self, x: torch.Tensor, seen: torch.Tensor | None = None) -> torch.Tensor:
        if self.norm_first:
            x = x + self.attention(self.attention_norm(x), seen)
            return x + self._feed_forward(self.output_norm(x))
        x = self.attention_norm(x + self.attention(x, seen))
        return self.output_norm(x + self._feed_forward(x))
