"""Transformers: BERT, Llama and the vision transformer."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["Bert", "Llama", "VisionTransformer", "bert_base", "llama_small", "vit_b_32"]


class _SelfAttention(nn.Module):
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


class _Encoder(nn.Module):
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
        self.attention = _SelfAttention(width, heads)
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


class Bert(nn.Module):
    """BERT's encoder with pooler, after Devlin et al., NAACL 2019."""

    def __init__(
        self,
        vocabulary: int = 30522,
        width: int = 768,
        layers: int = 12,
        heads: int = 12,
        longest: int = 512,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(longest, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(
            _Encoder(width, heads, 4 * width, norm_first=False) for _ in range(layers)
        )
        self.pooler = nn.Linear(width, width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0, 0.02)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Map int64 (batch, length) to states (batch, length, width) and a summary (batch, width).

        Parameters
        ----------
        mask : int64 or bool (batch, length), zero for positions that nobody is to look at.
        """
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.words(ids) + self.positions(places) + self.segments.weight[0]
        x = self.norm(x)
        seen = None if mask is None else (mask != 0)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, seen)
        return x, torch.tanh(self.pooler(x[:, 0]))


def bert_base() -> Bert:
    """BERT-base, uncased: 12 layers of width 768."""
    return Bert()


class VisionTransformer(nn.Module):
    """Vision transformer, after Dosovitskiy et al., ICLR 2021."""

    def __init__(
        self,
        image: int = 224,
        patch: int = 32,
        width: int = 768,
        layers: int = 12,
        heads: int = 12,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.layers = nn.ModuleList(
            _Encoder(width, heads, 4 * width, norm_first=True) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width, 1e-6)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32 (batch, 3, image, image) to float32 (batch, num_classes)."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


def vit_b_32() -> VisionTransformer:
    """ViT-B/32 for 224x224 images."""
    return VisionTransformer()


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
