"""The vision transformer."""

from __future__ import annotations

import torch
from torch import nn

from .encoder import Encoder

__all__ = ["VisionTransformer", "vit_b_32"]


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
            Encoder(width, heads, 4 * width, norm_first=True) for _ in range(layers)
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
