"""EfficientNet, after Tan and Le, ICML 2019."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["EfficientNet", "efficientnet_b0"]

# Expansion, channels, blocks, stride and window of each stage of B0.
_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def _conv(
    in_channels: int, channels: int, kernel: int, stride: int = 1, groups: int = 1, act: bool = True
) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(in_channels, channels, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(channels),
    ]
    return nn.Sequential(*layers, nn.SiLU()) if act else nn.Sequential(*layers)


class _SqueezeExcite(nn.Module):
    """Weighs the channels by what all of the image says of them, after Hu et al., CVPR 2018."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.excite = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = nn.functional.adaptive_avg_pool2d(x, 1)
        scale = self.excite(nn.functional.silu(self.squeeze(scale)))
        return x * torch.sigmoid(scale)


class _Block(nn.Module):
    """An inverted residual with weighted channels."""

    def __init__(
        self, in_channels: int, channels: int, expansion: int, stride: int, kernel: int
    ) -> None:
        super().__init__()
        hidden = in_channels * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers.append(_conv(in_channels, hidden, 1))
        layers += [
            _conv(hidden, hidden, kernel, stride, groups=hidden),
            _SqueezeExcite(hidden, max(1, in_channels // 4)),
            _conv(hidden, channels, 1, act=False),
        ]
        self.layers = nn.Sequential(*layers)
        self.has_shortcut = stride == 1 and in_channels == channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.has_shortcut else self.layers(x)


class EfficientNet(nn.Module):
    """EfficientNet of the depth and width of B0."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        channels = 32
        features: list[nn.Module] = [_conv(3, channels, 3, stride=2)]
        for expansion, out_channels, count, first_stride, kernel in _STAGES:
            for i in range(count):
                stride = first_stride if i == 0 else 1
                features.append(_Block(channels, out_channels, expansion, stride, kernel))
                channels = out_channels
        features.append(_conv(channels, 1280, 1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32 (batch, 3, height, width) to float32 (batch, num_classes)."""
        return self.classifier(self.features(x).mean((2, 3)))


def efficientnet_b0() -> EfficientNet:
    """EfficientNet-B0 for 224x224 images (any size of at least 32x32 works)."""
    return EfficientNet()
