"""DCGAN's generator, which makes images from noise."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Generator", "dcgan"]


class Generator(nn.Module):
    """DCGAN's generator, after Radford et al., ICLR 2016: 64x64 images from noise."""

    def __init__(self, noise: int = 100, width: int = 64, channels: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        sizes = [noise, 8 * width, 4 * width, 2 * width, width]
        for i, (before, after) in enumerate(zip(sizes[:-1], sizes[1:])):
            stride, padding = (1, 0) if i == 0 else (2, 1)
            layers += [
                nn.ConvTranspose2d(before, after, 4, stride, padding, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(inplace=True),
            ]
        layers += [nn.ConvTranspose2d(width, channels, 4, 2, 1, bias=False), nn.Tanh()]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32 (batch, noise, 1, 1) to float32 (batch, channels, 64, 64)."""
        return self.layers(x)


def dcgan() -> Generator:
    """The generator for 64x64 colour images."""
    return Generator()
