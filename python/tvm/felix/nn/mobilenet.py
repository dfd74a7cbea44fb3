"""MobileNetV2, after Sandler et al., "Inverted Residuals and Linear Bottlenecks", CVPR 2018."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["InvertedResidual", "MobileNetV2", "mobilenet_v2"]

# Expansion, output channels, repeats and first stride of each stage: table 2 of the paper.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _conv_bn_relu6(
    in_channels: int, out_channels: int, kernel: int = 3, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(
            in_channels,
            out_channels,
            kernel,
            stride=stride,
            padding=(kernel - 1) // 2,
            groups=groups,
            bias=False,
        ),
        nn.BatchNorm2d(out_channels),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """Widen with a 1x1, filter each channel with a 3x3, narrow with a linear 1x1."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = in_channels * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers.append(_conv_bn_relu6(in_channels, hidden, kernel=1))
        layers += [
            _conv_bn_relu6(hidden, hidden, stride=stride, groups=hidden),
            nn.Conv2d(hidden, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
        ]
        self.conv = nn.Sequential(*layers)
        self.has_shortcut = stride == 1 and in_channels == out_channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.has_shortcut else self.conv(x)


class MobileNetV2(nn.Module):
    """MobileNetV2 at width 1.0; parameter names equal torchvision's, so its weights load."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        channels = 32
        features: list[nn.Module] = [_conv_bn_relu6(3, channels, stride=2)]
        for expansion, out_channels, repeats, first_stride in _STAGES:
            for i in range(repeats):
                stride = first_stride if i == 0 else 1
                features.append(InvertedResidual(channels, out_channels, stride, expansion))
                channels = out_channels
        features.append(_conv_bn_relu6(channels, 1280, kernel=1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
                nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32 (batch, 3, height, width) to float32 (batch, num_classes)."""
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(torch.flatten(x, 1))


def mobilenet_v2(num_classes: int = 1000) -> MobileNetV2:
    """MobileNetV2 for 224x224 images (any size of at least 32x32 works)."""
    return MobileNetV2(num_classes)
