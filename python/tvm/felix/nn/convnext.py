"""ConvNeXt, after Liu et al., "A ConvNet for the 2020s", CVPR 2022."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["ConvNeXt", "convnext_tiny"]


class _ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of NCHW data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _Block(nn.Module):
    """Depthwise 7x7 and two pointwise layers around a shortcut, scaled per channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, 1e-6)
        self.expand = nn.Linear(channels, 4 * channels)
        self.contract = nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.full((channels, 1, 1), 1e-6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.depthwise(x).permute(0, 2, 3, 1)
        y = self.contract(F.gelu(self.expand(self.norm(y))))
        return x + self.scale * y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Four stages of blocks, with halved sizes between them."""

    def __init__(
        self,
        depths: Sequence[int] = (3, 3, 9, 3),
        widths: Sequence[int] = (96, 192, 384, 768),
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        before = 3
        for i, (depth, width) in enumerate(zip(depths, widths)):
            if i == 0:
                stages += [nn.Conv2d(before, width, 4, stride=4), _ChannelNorm(width, 1e-6)]
            else:
                stages += [_ChannelNorm(before, 1e-6), nn.Conv2d(before, width, 2, stride=2)]
            stages += [_Block(width) for _ in range(depth)]
            before = width
        self.stages = nn.Sequential(*stages)
        self.norm = nn.LayerNorm(before, 1e-6)
        self.head = nn.Linear(before, num_classes)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)):
                nn.init.trunc_normal_(module.weight, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32 (batch, 3, height, width) to float32 (batch, num_classes)."""
        return self.head(self.norm(self.stages(x).mean((2, 3))))


def convnext_tiny() -> ConvNeXt:
    """ConvNeXt-T for 224x224 images."""
    return ConvNeXt()
