"""Layers that PyTorch runs as one operator are imported by what they consist of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tvm
from tvm import relay
from tvm.contrib import graph_executor


def _check(module: torch.nn.Module, *inputs: torch.Tensor) -> None:
    module = module.eval()
    with torch.no_grad():
        traced, wanted = torch.jit.trace(module, inputs), module(*inputs)
    names = [
        (f"x{k}", (tuple(x.shape), str(x.dtype).removeprefix("torch.")))
        for k, x in enumerate(inputs)
    ]
    mod, params = relay.frontend.from_pytorch(traced, names)
    library = relay.build(mod, "llvm", params=params)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**{name: x.numpy() for (name, _), x in zip(names, inputs)})
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for k, value in enumerate(wanted):
        got = executor.get_output(k).numpy()
        np.testing.assert_allclose(got, value.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(norm_first: bool, activation: str) -> None:
    layer = torch.nn.TransformerEncoderLayer(
        16, 4, 32, activation=activation, batch_first=True, norm_first=norm_first
    )
    _check(layer, torch.randn(2, 5, 16))


class _Masked(torch.nn.Module):
    def __init__(self, of_columns: bool) -> None:
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.of_columns = of_columns

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if self.of_columns:
            return self.layer(x, src_key_padding_mask=mask)
        return self.layer(x, src_mask=mask)


def test_masks_of_encoder_layers() -> None:
    x = torch.randn(2, 5, 16)
    _check(_Masked(False), x, torch.ones(5, 5, dtype=torch.bool).triu(1))
    _check(_Masked(True), x, torch.tensor([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]]).bool())


class _Attention(torch.nn.Module):
    def __init__(self, average: bool) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        self.average = average

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.attention(x, x, x, average_attn_weights=self.average)


@pytest.mark.parametrize("average", [False, True])
def test_attention_with_weights(average: bool) -> None:
    _check(_Attention(average), torch.randn(2, 5, 16))
