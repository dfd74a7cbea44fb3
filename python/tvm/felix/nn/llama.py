"""A decoder in the manner of Llama."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["Llama", "llama_small"]


def _rotated(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding, after Su et al., arXiv:2104.09864: halves as coordinates."""
    one, two = x.chunk(2, -1)
    return torch.cat([one * cosine - two * sine, two * cosine + one * sine], -1)


class _LlamaLayer(nn.Module):
    def __init__(self, width: int, heads: int, groups: int, hidden: int) -> None:
        super().__init__()
        self.size = width // heads
        self.heads, self.groups = heads, groups
        self.attention_norm = nn.RMSNorm(width, 1e-5)
        self.query = nn.Linear(width, heads * self.size, bias=False)
        self.key = nn.Linear(width, groups * self.size, bias=False)
        self.value = nn.Linear(width, groups * self.size, bias=False)
        self.out = nn.Linear(heads * self.size, width, bias=False)
        self.output_norm = nn.RMSNorm(width, 1e-5)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        y = self.attention_norm(x)
        query = self.query(y).view(batch, length, self.heads, self.size).transpose(1, 2)
        key = self.key(y).view(batch, length, self.groups, self.size).transpose(1, 2)
        value = self.value(y).view(batch, length, self.groups, self.size).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(
            _rotated(query, cosine, sine),
            _rotated(key, cosine, sine),
            value,
            is_causal=True,
            enable_gqa=True,
        )
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        y = self.output_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Llama, after Touvron et al., arXiv:2307.09288, with grouped queries."""

    def __init__(
        self,
        vocabulary: int = 32000,
        width: int = 1024,
        layers: int = 8,
        heads: int = 16,
        groups: int = 4,
        hidden: int = 2816,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            _LlamaLayer(width, heads, groups, hidden) for _ in range(layers)
        )
        self.norm = nn.RMSNorm(width, 1e-5)
        self.head = nn.Linear(width, vocabulary, bias=False)
        size = width // heads
        steps = 10000.0 ** (-torch.arange(0, size, 2) / size)
        self.steps: torch.Tensor
        self.register_buffer("steps", steps, persistent=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0, 0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Map int64 (batch, length) to the next token's scores, (batch, length, vocabulary)."""
        x = self.words(ids)
        places = torch.arange(ids.shape[1], device=ids.device)
        angles = places[:, None] * self.steps
        cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return self.head(self.norm(x))


def llama_small() -> Llama:
    """A Llama of 8 layers, 1024 wide."""
    return Llama()
