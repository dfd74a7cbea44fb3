"""Random operators of the kinds networks are made of, for training data that is no network's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm import te, topi

__all__ = ["random_workloads"]

_CHANNELS = (16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512, 640)
_SIZES = (7, 8, 10, 14, 16, 20, 28, 32, 40, 56, 64, 112)
# Larger operators say nothing that smaller ones do not and take the time of many.
_MAX_FLOP = 4e8


def _epilogue(out: te.Tensor, filters: int, rng: np.random.Generator) -> list[te.Tensor]:
    """Extra inputs and the output of bias with nothing, ReLU, ReLU6 or a residual behind it."""
    bias = te.placeholder((filters,), name="bias")
    biased = topi.add(out, bias)
    kind = rng.integers(4)
    if kind == 0:
        return [bias, biased]
    if kind == 1:
        return [bias, topi.nn.relu(biased)]
    if kind == 2:
        return [bias, topi.clip(biased, 0.0, 6.0)]
    shortcut = te.placeholder(out.shape, name="shortcut")
    return [bias, shortcut, topi.nn.relu(topi.add(biased, shortcut))]


def _conv2d(rng: np.random.Generator) -> tuple[str, float, Callable[[], list[te.Tensor]]]:
    size, stride = int(rng.choice(_SIZES)), int(rng.choice([1, 1, 1, 2]))
    channels = 3 if size >= 56 and rng.random() < 0.2 else int(rng.choice(_CHANNELS))
    filters, kernel = int(rng.choice(_CHANNELS)), int(rng.choice([1, 1, 3, 3, 5, 7]))
    out = (size + 2 * (kernel // 2) - kernel) // stride + 1
    flop = 2.0 * out * out * channels * filters * kernel * kernel

    def build() -> list[te.Tensor]:
        data = te.placeholder((1, size, size, channels), name="data")
        weight = te.placeholder((kernel, kernel, channels, filters), name="weight")
        conv = topi.nn.conv2d_nhwc(data, weight, stride, kernel // 2, 1)
        return [data, weight, *_epilogue(conv, filters, rng)]

    return f"conv2d {size} {channels}->{filters} k{kernel} s{stride}", flop, build


def _depthwise(rng: np.random.Generator) -> tuple[str, float, Callable[[], list[te.Tensor]]]:
    size, stride = int(rng.choice(_SIZES)), int(rng.choice([1, 1, 2]))
    channels, kernel = int(rng.choice(_CHANNELS)), int(rng.choice([3, 3, 5]))
    out = (size + 2 * (kernel // 2) - kernel) // stride + 1
    flop = 2.0 * out * out * channels * kernel * kernel

    def build() -> list[te.Tensor]:
        data = te.placeholder((1, size, size, channels), name="data")
        weight = te.placeholder((kernel, kernel, channels, 1), name="weight")
        conv = topi.nn.depthwise_conv2d_nhwc(data, weight, stride, kernel // 2, 1)
        return [data, weight, *_epilogue(conv, channels, rng)]

    return f"depthwise {size} {channels} k{kernel} s{stride}", flop, build


def _dense(rng: np.random.Generator) -> tuple[str, float, Callable[[], list[te.Tensor]]]:
    rows = int(rng.choice([1, 4, 16, 32, 64, 128]))
    inputs = int(rng.choice([64, 128, 256, 384, 512, 768, 1024, 1280]))
    outputs = int(rng.choice([10, 64, 100, 256, 384, 512, 1000, 1024, 1536]))
    flop = 2.0 * rows * inputs * outputs

    def build() -> list[te.Tensor]:
        data = te.placeholder((rows, inputs), name="data")
        weight = te.placeholder((outputs, inputs), name="weight")
        return [data, weight, *_epilogue(topi.nn.dense(data, weight), outputs, rng)]

    return f"dense {rows}x{inputs}x{outputs}", flop, build


def random_workloads(count: int, seed: int = 0) -> dict[str, Callable[[], list[te.Tensor]]]:
    """`count` distinct operators: description to a function that makes the io tensors.

    About six in ten are convolutions, two in ten depthwise ones, two in ten dense layers, each
    with a random epilogue. Equal seeds give equal operators.
    """
    rng = np.random.default_rng(seed)
    makers = (_conv2d, _depthwise, _dense)
    found: dict[str, Callable[[], list[te.Tensor]]] = {}
    while len(found) < count:
        maker = makers[int(rng.choice(3, p=[0.6, 0.2, 0.2]))]
        # Each operator draws from a generator of its own, so that building one, which also draws,
        # does not change the next.
        name, flop, build = maker(np.random.default_rng(rng.integers(2**63)))
        if flop <= _MAX_FLOP:
            found.setdefault(name, build)
    return found
