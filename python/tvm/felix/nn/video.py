"""ResNet over space and time, after Tran et al., CVPR 2018."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["VideoResNet", "r3d_18"]


def _conv(in_channels: int, channels: int, stride: int = 1, kernel: int = 3) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv3d(in_channels, channels, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm3d(channels),
    )


class _Block(nn.Module):
    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv(in_channels, channels, stride)
        self.conv2 = _conv(channels, channels)
        changes = stride != 1 or in_channels != channels
        self.shortcut = _conv(in_channels, channels, stride, 1) if changes else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv2(torch.relu(self.conv1(x)))
        return torch.relu(y + self.shortcut(x))


class VideoResNet(nn.Module):
    """Eighteen layers of 3x3x3 convolutions."""

    def __init__(self, num_classes: int = 400) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False), nn.BatchNorm3d(64)
        )
        blocks: list[nn.Module] = []
        before = 64
        for width in (64, 128, 256, 512):
            blocks += [_Block(before, width, 1 if width == 64 else 2), _Block(width, width, 1)]
            before = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(before, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv3d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32 (batch, 3, frames, height, width) to float32 (batch, num_classes)."""
        x = self.blocks(torch.relu(self.stem(x)))
        return self.head(x.mean((2, 3, 4)))


def r3d_18() -> VideoResNet:
    """R3D-18 for clips of 16 frames of 112x112."""
    return VideoResNet()
