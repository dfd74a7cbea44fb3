"""The U-Net of a small diffusion model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["UNet", "unet_small"]


class _ResidualBlock(nn.Module):
    """Two convolutions around a shortcut, told the time of the diffusion in between."""

    def __init__(self, in_channels: int, channels: int, time: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(8, in_channels)
        self.conv1 = nn.Conv2d(in_channels, channels, 3, padding=1)
        self.time = nn.Linear(time, channels)
        self.norm2 = nn.GroupNorm(8, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        same = in_channels == channels
        self.shortcut = nn.Identity() if same else nn.Conv2d(in_channels, channels, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class _ImageAttention(nn.Module):
    """Every pixel looks at every other."""

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(8, channels)
        self.inputs = nn.Conv2d(channels, 3 * channels, 1)
        self.output = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        size = channels // self.heads
        parts = self.inputs(self.norm(x)).reshape(batch, 3, self.heads, size, height * width)
        query, key, value = parts.transpose(3, 4).unbind(1)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return x + self.output(mixed.transpose(2, 3).reshape(x.shape))


class UNet(nn.Module):
    """The network of a denoising diffusion model, after Ho et al., NeurIPS 2020.

    Parameters
    ----------
    widths : channels at each size, from the largest image on; the sizes halve. Attention stands
        at the smallest.
    """

    def __init__(self, widths: Sequence[int] = (64, 128, 256), channels: int = 3) -> None:
        super().__init__()
        time = 4 * widths[0]
        self.width = widths[0]
        self.time = nn.Sequential(nn.Linear(widths[0], time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(channels, widths[0], 3, padding=1)
        down, up = [], []
        for before, after in zip([widths[0], *widths[:-1]], widths):
            down.append(_ResidualBlock(before, after, time))
            up.append(_ResidualBlock(2 * after, before, time))
        self.down = nn.ModuleList(down)
        self.halve = nn.ModuleList(nn.Conv2d(w, w, 3, 2, 1) for w in widths[:-1])
        self.middle = nn.ModuleList(
            [_ResidualBlock(widths[-1], widths[-1], time), _ImageAttention(widths[-1])]
        )
        self.up = nn.ModuleList(reversed(up))
        self.last_norm = nn.GroupNorm(8, widths[0])
        self.last = nn.Conv2d(widths[0], channels, 3, padding=1)

    def _time(self, step: torch.Tensor) -> torch.Tensor:
        half = self.width // 2
        places = torch.arange(half, device=step.device) / half
        angles = step[:, None] * torch.exp(-math.log(10000.0) * places)
        return self.time(torch.cat([angles.sin(), angles.cos()], 1))

    def forward(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """Map noisy images, float32 (batch, channels, height, width), and times to their noise.

        Parameters
        ----------
        step : float32 (batch,), time of the diffusion in steps.
        """
        time = self._time(step)
        x = self.first(x)
        kept = []
        for i, block in enumerate(self.down):
            x = block(x, time)
            kept.append(x)
            if i < len(self.halve):
                x = self.halve[i](x)
        x = self.middle[1](self.middle[0](x, time))
        for i, block in enumerate(self.up):
            if i:
                x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat([x, kept.pop()], 1), time)
        return self.last(F.silu(self.last_norm(x)))


def unet_small() -> UNet:
    """A U-Net for 32x32 images."""
    return UNet()
