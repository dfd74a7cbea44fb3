"""ResNet-18 and 50, after He et al., "Deep Residual Learning for Image Recognition", CVPR 2016."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["BasicBlock", "Bottleneck", "ResNet", "resnet18", "resnet50"]


def _conv3x3(in_channels: int, out_channels: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut; the shortcut is projected when shapes change."""

    expansion = 1

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv3x3(in_channels, channels, stride)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv3x3(channels, channels, 1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample: nn.Module | None = None
        if stride != 1 or in_channels != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + shortcut)


class Bottleneck(nn.Module):
    """A 3x3 convolution between two of 1x1 that narrow and widen; the stride is at the 3x3."""

    expansion = 4

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        wide = channels * self.expansion
        self.conv1 = nn.Conv2d(in_channels, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = _conv3x3(channels, channels, stride)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, wide, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(wide)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or in_channels != wide:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, wide, 1, stride=stride, bias=False), nn.BatchNorm2d(wide)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + shortcut)


class ResNet(nn.Module):
    """Residual network; parameter names equal torchvision's, so its weights load.

    Parameters
    ----------
    blocks : residual blocks in each of the four stages.
    num_classes : width of the final linear layer.
    block : kind of the blocks.
    """

    def __init__(
        self,
        blocks: tuple[int, int, int, int] = (2, 2, 2, 2),
        num_classes: int = 1000,
        block: type[BasicBlock] | type[Bottleneck] = BasicBlock,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        wide = block.expansion
        self.layer1 = self._stage(block, 64, 64, blocks[0], stride=1)
        self.layer2 = self._stage(block, 64 * wide, 128, blocks[1], stride=2)
        self.layer3 = self._stage(block, 128 * wide, 256, blocks[2], stride=2)
        self.layer4 = self._stage(block, 256 * wide, 512, blocks[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * wide, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @staticmethod
    def _stage(
        block: type[BasicBlock] | type[Bottleneck],
        in_channels: int,
        channels: int,
        count: int,
        stride: int,
    ) -> nn.Sequential:
        wide = channels * block.expansion
        first = block(in_channels, channels, stride)
        return nn.Sequential(first, *(block(wide, channels, 1) for _ in range(count - 1)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32 (batch, 3, height, width) to float32 (batch, num_classes)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


def resnet18(num_classes: int = 1000) -> ResNet:
    """ResNet-18 for 224x224 images (any size of at least 32x32 works)."""
    return ResNet((2, 2, 2, 2), num_classes)


def resnet50(num_classes: int = 1000) -> ResNet:
    """ResNet-50 for 224x224 images (any size of at least 32x32 works)."""
    return ResNet((3, 4, 6, 3), num_classes, Bottleneck)
