"""What compiled networks are compared with."""

from __future__ import annotations

import torch
from torch import nn

from tvm.felix.timing import torch_variants


class ImageAndVolume(nn.Module):
    """Weights of four and of five dimensions in one network."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Conv2d(3, 4, 3)
        self.volume = nn.Conv3d(1, 2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.volume(self.image(x).unsqueeze(1))


def test_networks_of_images_and_volumes_have_both_formats():
    model, x = ImageAndVolume().eval(), torch.randn(1, 3, 12, 12)
    variants = torch_variants(model, [x])
    assert list(variants) == ["contiguous", "channels_last"]
    for run in variants.values():
        torch.testing.assert_close(run(), model(x).detach())
    assert model.image.weight.is_contiguous()
