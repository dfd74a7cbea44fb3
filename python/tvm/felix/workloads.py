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


def _product(rng: np.random.Generator) -> tuple[str, float, Callable[[], list[te.Tensor]]]:
    """Batched products, as in attention; or those of a Winograd convolution, 16 or 36 at a time."""
    winograd = rng.random() < 0.4
    batch = int(rng.choice([16, 36] if winograd else [1, 4, 8, 12, 16]))
    n = int(rng.choice([16, 25, 49, 64, 196] if winograd else [16, 64, 128, 197, 256]))
    k = int(rng.choice(_CHANNELS[2:] if winograd else [32, 64, 80, 128, 197]))
    m = int(rng.choice(_CHANNELS[2:] if winograd else [32, 64, 80, 128, 197]))
    constant_second = winograd or rng.random() < 0.2
    flop = 2.0 * batch * n * m * k

    def build() -> list[te.Tensor]:
        a = te.placeholder((batch, n, k), name="a")
        b = te.placeholder((batch, m, k), name="weight" if constant_second else "b")
        return [a, b, topi.nn.batch_matmul(a, b)]

    return f"product {batch}x{n}x{m}x{k}", flop, build


def _pool(rng: np.random.Generator) -> tuple[str, float, Callable[[], list[te.Tensor]]]:
    size, channels = int(rng.choice(_SIZES[3:])), int(rng.choice(_CHANNELS))
    kernel, stride = int(rng.choice([2, 3])), int(rng.choice([1, 2]))
    kind = str(rng.choice(["max", "avg"]))
    whole = rng.random() < 0.3
    flop = 1.0 * size * size * channels * (1 if whole else kernel * kernel / stride**2)

    def build() -> list[te.Tensor]:
        data = te.placeholder((1, size, size, channels), name="data")
        if whole:
            return [data, topi.nn.global_pool(data, kind, layout="NHWC")]
        pad = [kernel // 2] * 4
        window, strides, dilation = [kernel] * 2, [stride] * 2, [1, 1]
        return [data, topi.nn.pool2d(data, window, strides, dilation, pad, kind, layout="NHWC")]

    name = "whole" if whole else f"k{kernel} s{stride}"
    return f"{kind}_pool {size} {channels} {name}", flop, build


def _rows(rng: np.random.Generator) -> tuple[str, float, Callable[[], list[te.Tensor]]]:
    """Softmax or layer norm of the rows of a matrix."""
    rows = int(rng.choice([49, 64, 128, 197, 512, 1024, 2364]))
    columns = int(rng.choice([64, 128, 197, 256, 512, 768, 1024]))
    normalised = rng.random() < 0.5

    def build() -> list[te.Tensor]:
        data = te.placeholder((rows, columns), name="data")
        if not normalised:
            return [data, topi.nn.softmax(data, axis=1)]
        scale = te.placeholder((columns,), name="scale")
        shift = te.placeholder((columns,), name="shift")
        return [data, scale, shift, topi.nn.layer_norm(data, scale, shift, [1], 1e-5)]

    name = "layer_norm" if normalised else "softmax"
    return f"{name} {rows}x{columns}", 8.0 * rows * columns, build


def _scores(rng: np.random.Generator) -> tuple[str, float, Callable[[], list[te.Tensor]]]:
    """Attention's weights: softmax of the scaled products of queries and keys."""
    heads, length = int(rng.choice([1, 4, 8, 12])), int(rng.choice([32, 64, 128, 197]))
    width = int(rng.choice([32, 64, 80]))
    flop = 2.0 * heads * length * length * width

    def build() -> list[te.Tensor]:
        query = te.placeholder((heads, length, width), name="query")
        key = te.placeholder((heads, length, width), name="key")
        products = topi.nn.batch_matmul(query, key)
        scaled = te.compute(
            products.shape, lambda b, i, j: products[b, i, j] * width**-0.5, name="scaled"
        )
        return [query, key, topi.nn.softmax(scaled, axis=2)]

    return f"scores {heads}x{length}x{width}", flop, build


# Families with the share that each has of the operators.
_FAMILIES = (
    (_conv2d, 0.36),
    (_depthwise, 0.14),
    (_dense, 0.14),
    (_product, 0.14),
    (_pool, 0.06),
    (_rows, 0.1),
    (_scores, 0.06),
)


def random_workloads(count: int, seed: int = 0) -> dict[str, Callable[[], list[te.Tensor]]]:
    """`count` distinct operators: description to a function that makes the io tensors.

    Of the families that networks are made of: convolutions, depthwise ones and dense layers, each
    with a random epilogue, batched products (attention's, Winograd's), pooling, softmax, layer norm
    and attention's weights. Equal seeds give equal operators.
    """
    rng = np.random.default_rng(seed)
    makers = [maker for maker, _ in _FAMILIES]
    found: dict[str, Callable[[], list[te.Tensor]]] = {}
    while len(found) < count:
        maker = makers[int(rng.choice(len(makers), p=[share for _, share in _FAMILIES]))]
        # Each operator draws from a generator of its own, so that building one, which also draws,
        # does not change the next.
        name, flop, build = maker(np.random.default_rng(rng.integers(2**63)))
        if flop <= _MAX_FLOP:
            found.setdefault(name, build)
    return found
