"""Fourier transforms and windows."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..errors import OnnxError
from ..types import dtype_of, tensor_of
from .registry import Node, operator
from .shapes import normalized

__all__: list[str] = []

_MAX_SIZE = 1 << 24


@operator("DFT")
def _dft(
    n: Node,
    x: torch.Tensor,
    length: torch.Tensor | None = None,
    axis: torch.Tensor | None = None,
) -> torch.Tensor:
    given = n.ints(2)
    dim = given[0] if given else n.attr("axis", -2 if n.opset >= 20 else 1)
    dim = normalized(dim, x.dim())
    sizes = n.ints(1)
    count = sizes[0] if sizes else None
    values = torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x[..., 0]
    inverse, onesided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    if inverse and onesided:
        size = count or 2 * (values.shape[dim] - 1)
        return torch.fft.irfft(values, size, dim).unsqueeze(-1)
    transform = torch.fft.ifft if inverse else torch.fft.fft
    result = transform(values, count, dim)
    if onesided:
        result = result.narrow(dim, 0, result.shape[dim] // 2 + 1)
    return torch.view_as_real(result)


@operator("STFT")
def _stft(
    n: Node,
    x: torch.Tensor,
    step: torch.Tensor,
    window: torch.Tensor | None = None,
    length: torch.Tensor | None = None,
) -> torch.Tensor:
    hop = (n.ints(1) or [1])[0]
    size = (n.ints(3) or [window.shape[0] if window is not None else 0])[0]
    if size < 1 or hop < 1:
        raise OnnxError("STFT without the length of a frame")
    if x.dim() == 3:
        x = x[..., 0] if x.shape[-1] == 1 else torch.view_as_complex(x.contiguous())
    frames = x.unfold(1, size, hop)
    if window is not None:
        frames = frames * window
    result = torch.fft.fft(frames, dim=-1)
    if n.attr("onesided", 1):
        result = result[..., : size // 2 + 1]
    return torch.view_as_real(result)


@operator("BlackmanWindow", "HammingWindow", "HannWindow")
def _window(n: Node, size: torch.Tensor) -> torch.Tensor:
    count = (n.ints(0) or [0])[0]
    if not 0 <= count <= _MAX_SIZE:
        raise OnnxError(f"a window of {count} elements")
    turn = 2 * math.pi * np.arange(count) / max(count if n.attr("periodic", 1) else count - 1, 1)
    if n.op_type == "HannWindow":
        values = 0.5 - 0.5 * np.cos(turn)
    elif n.op_type == "HammingWindow":
        values = 25 / 46 - 21 / 46 * np.cos(turn)
    else:
        values = 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn)
    return tensor_of(values).to(dtype_of(n.attr("output_datatype", 1)))


@operator("MelWeightMatrix")
def _mel_weights(n: Node, *_: torch.Tensor) -> torch.Tensor:
    bins, dft_length, rate = ((n.ints(i) or [0])[0] for i in range(3))
    low, high = (n.array(i) for i in (3, 4))
    if low is None or high is None or not (0 < bins <= 1 << 16 and 0 < dft_length <= _MAX_SIZE):
        raise OnnxError("mel weights without their sizes")
    rows = dft_length // 2 + 1
    least, most = (2595 * math.log10(1 + float(f) / 700) for f in (low, high))
    edges = least + np.arange(bins + 2) * (most - least) / (bins + 2)
    hertz = 700 * (10 ** (edges / 2595) - 1)
    places = np.floor((dft_length + 1) * hertz / rate).astype(np.int64)
    matrix = np.zeros((rows, bins))
    for i in range(bins):
        left, centre, right = places[i : i + 3]
        if centre == left:
            matrix[centre, i] = 1
        else:
            rising = np.arange(left, centre + 1)
            matrix[rising, i] = (rising - left) / (centre - left)
        if right > centre:
            falling = np.arange(centre, right)
            matrix[falling, i] = (right - falling) / (right - centre)
    return tensor_of(matrix).to(dtype_of(n.attr("output_datatype", 1)))
