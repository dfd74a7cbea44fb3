"""A plain multi-layer perceptron."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

__all__ = ["MLP", "mlp"]


class MLP(nn.Module):
    """Linear layers with a ReLU after each but the last.

    Parameters
    ----------
    widths : feature count of the input, of each hidden layer and of the output; at least two.
    """

    def __init__(self, widths: Sequence[int] = (784, 512, 512, 10)) -> None:
        super().__init__()
        if len(widths) < 2:
            raise ValueError(f"MLP: widths needs an input and an output size, got {list(widths)}")
        layers: list[nn.Module] = []
        for i, (fan_in, fan_out) in enumerate(zip(widths[:-1], widths[1:])):
            if i:
                layers.append(nn.ReLU())
            layers.append(nn.Linear(fan_in, fan_out))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32 (batch, widths[0]) to float32 (batch, widths[-1])."""
        return self.layers(x)


def mlp() -> MLP:
    """The 784-512-512-10 perceptron, for flattened 28x28 images."""
    return MLP()
