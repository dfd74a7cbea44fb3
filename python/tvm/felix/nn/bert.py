"""BERT."""

from __future__ import annotations

import torch
from torch import nn

from .encoder import Encoder

__all__ = ["Bert", "bert_base"]


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
            Encoder(width, heads, 4 * width, norm_first=False) for _ in range(layers)
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
