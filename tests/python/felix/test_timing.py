"""What compiled networks are compared with."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from tvm.felix.timing import interleaved_seconds, times_as_fast, torch_variants


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


def test_quick_functions_are_sampled_more_often_than_slow_ones():
    calls = {"quick": 0, "slow": 0}

    def function(name, seconds):
        def run():
            calls[name] += 1
            time.sleep(seconds)

        return run

    samples = interleaved_seconds(
        {"quick": function("quick", 1e-4), "slow": function("slow", 0.02)}, 3, at_least=0.03
    )
    assert len(samples["slow"]) == 3
    assert 3 < len(samples["quick"]) <= 30
    # One call before, and one before each that is timed, or as many as some milliseconds hold.
    assert calls["slow"] == 1 + 2 * len(samples["slow"])
    assert calls["quick"] > 1 + 3 * len(samples["quick"])


def test_rounds_are_compared_not_their_middles():
    # Neighbours slow two rounds of the one, and two others of the other a little less.
    tuned, untuned = [1.0, 4.0, 4.0, 1.0, 1.0], [1.1, 4.4, 4.4, 4.4, 1.1]
    assert times_as_fast(tuned, untuned) == pytest.approx(1.1)
    assert times_as_fast(tuned, [2.0]) == 2.0


def test_tensors_inside_of_inputs_are_formatted_too():
    class Scaled(nn.Module):
        def forward(self, images, factor):
            return images["first"] * factor[0] + factor[1]

    inputs = {"first": torch.randn(1, 3, 4, 5)}, [torch.tensor(2.0), 1]
    variants = torch_variants(Scaled(), inputs)
    assert sorted(variants) == ["channels_last", "contiguous"]
    results = [run() for run in variants.values()]
    torch.testing.assert_close(*results)
    formats = [x.is_contiguous(memory_format=torch.channels_last) for x in results]
    assert sorted(formats) == [False, True]
