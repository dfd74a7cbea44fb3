"""The calls of `functional.py`: torch functions as people write them, at sizes of real networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Call:
    """A function or module, and what it is called with."""

    name: str
    function: Callable[..., Any]
    inputs: Sequence[Tensor]


def _integers(high: int, *shape: int) -> Tensor:
    return torch.randint(0, high, shape)


def elementwise() -> list[Call]:
    """Functions of single elements."""
    x = torch.randn(1, 64, 112, 112)
    unary: dict[str, Callable[..., Any]] = {
        "relu": F.relu,
        "gelu": F.gelu,
        "gelu, tanh": lambda x: F.gelu(x, approximate="tanh"),
        "silu": F.silu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "hardswish": F.hardswish,
        "mish": F.mish,
        "softplus": F.softplus,
        "elu": F.elu,
        "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
        "exp": torch.exp,
        "log1p": lambda x: torch.log1p(x.abs()),
        "sqrt": lambda x: torch.sqrt(x.abs()),
        "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
        "erf": torch.erf,
        "sin": torch.sin,
        "pow": lambda x: x.abs() ** 1.5,
        "atan2": lambda x: torch.atan2(x, x + 1),
        "where": lambda x: torch.where(x > 0, x, x * 2),
        "clamp": lambda x: x.clamp(-1, 1),
        "round": torch.round,
        "sign": torch.sign,
        "floor": torch.floor,
    }
    rows = torch.randn(128, 768)
    wide = torch.randn(128, 4096)
    image = torch.randint(0, 255, (1, 3, 224, 224), dtype=torch.uint8)
    return [
        *(Call(name, function, [x]) for name, function in unary.items()),
        Call("bias of channels", torch.add, [x, torch.randn(1, 64, 1, 1)]),
        Call("factor of columns", torch.mul, [rows, torch.randn(768)]),
        Call("glu", lambda x: F.glu(x, -1), [wide]),
        Call("swiglu", lambda a, b: F.silu(a) * b, [wide[:, :2048].contiguous()] * 2),
        Call("gate of halves", lambda x: x.chunk(2, -1)[0] * x.chunk(2, -1)[1].sigmoid(), [wide]),
        Call("bytes to numbers", lambda x: (x.float() / 255 - 0.45) / 0.22, [image]),
        Call("to bfloat16", lambda x: x.bfloat16(), [torch.randn(1024, 1024)]),
        Call("masked_fill", lambda x, m: x.masked_fill(m, -1e9), _scores()),
        Call("outer", torch.outer, [torch.randn(1024), torch.randn(1024)]),
    ]


def _scores() -> list[Tensor]:
    return [torch.randn(12, 256, 256), torch.rand(256, 256) > 0.5]


def normalisations() -> list[Call]:
    """Norms and softmax."""
    tokens, channels = torch.randn(1, 197, 768), torch.randn(1, 320, 64, 64)
    scale, shift, c = torch.randn(768), torch.randn(768), torch.randn(320)
    picture = torch.randn(1, 64, 112, 112)
    mean, variance = torch.randn(64), torch.rand(64) + 0.5
    return [
        Call("layer_norm", lambda x, w, b: F.layer_norm(x, (768,), w, b), [tokens, scale, shift]),
        Call(
            "rms_norm",
            lambda x, w: F.rms_norm(x, (4096,), w),
            [torch.randn(128, 4096), torch.randn(4096)],
        ),
        Call("group_norm", lambda x, w, b: F.group_norm(x, 32, w, b), [channels, c, c]),
        Call("instance_norm", F.instance_norm, [torch.randn(1, 64, 128, 128)]),
        Call("batch_norm", F.batch_norm, [picture, mean, variance]),
        Call(
            "local_response_norm",
            lambda x: F.local_response_norm(x, 5),
            [torch.randn(1, 96, 55, 55)],
        ),
        Call("normalize", lambda x: F.normalize(x, dim=-1), [torch.randn(512, 512)]),
        Call("softmax of keys", lambda x: x.softmax(-1), [torch.randn(12, 197, 197)]),
        Call("softmax of channels", lambda x: x.softmax(1), [torch.randn(1, 21, 128, 128)]),
        Call("log_softmax of words", lambda x: x.log_softmax(-1), [torch.randn(8, 32000)]),
    ]


def reductions() -> list[Call]:
    """Sums, extremes, distances, losses and running sums."""
    rows, planes = torch.randn(512, 1024), torch.randn(1, 512, 28, 28)
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    logits, classes = torch.randn(128, 1000), _integers(1000, 128)
    boxes = torch.rand(500, 4) * 100
    return [
        Call("mean of planes", lambda x: x.mean((2, 3)), [planes]),
        Call("sum of the middle", lambda x: x.sum(1), [torch.randn(64, 512, 64)]),
        Call("max of rows", lambda x: x.max(-1).values, [rows]),
        Call("argmax of rows", lambda x: x.argmax(-1), [rows]),
        Call("argmax of channels", lambda x: x.argmax(1), [torch.randn(1, 21, 256, 256)]),
        Call("var of rows", lambda x: x.var(-1), [rows]),
        Call("std of planes", lambda x: x.std((2, 3)), [planes]),
        Call("logsumexp", lambda x: x.logsumexp(-1), [rows]),
        Call("norm", lambda x: x.norm(dim=-1), [rows]),
        Call("amax of the middle", lambda x: x.amax(1), [torch.randn(16, 256, 256)]),
        Call("cumsum of rows", lambda x: x.cumsum(-1), [torch.randn(64, 1024)]),
        Call("cumsum of columns", lambda x: x.cumsum(0), [torch.randn(1024, 64)]),
        Call("prod", lambda x: x.prod(-1), [torch.randn(512, 64)]),
        Call("any", lambda x: (x > 3).any(-1), [rows]),
        Call("cdist", torch.cdist, [torch.randn(256, 64), torch.randn(256, 64)]),
        Call("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, dim=-1), [a, b]),
        Call("cross_entropy", F.cross_entropy, [logits, classes]),
        Call("mse_loss", F.mse_loss, [a, b]),
        Call("overlaps of boxes", _overlaps, [boxes, boxes]),
        Call("topk 8 of 1000", lambda x: torch.topk(x, 8), [torch.randn(64, 1000)]),
        Call("topk 5 of a row", lambda x: torch.topk(x, 5), [torch.randn(1, 1000)]),
        Call("topk 2 of 8", lambda x: torch.topk(x, 2), [torch.randn(512, 8)]),
        Call("topk 100 of 8400", lambda x: torch.topk(x, 100), [torch.randn(1, 8400)]),
        Call("sort", torch.sort, [torch.randn(64, 1000)]),
        Call("argsort", torch.argsort, [torch.randn(1, 8400)]),
    ]


def _overlaps(a: Tensor, b: Tensor) -> Tensor:
    import torchvision

    return torchvision.ops.box_iou(a, b)


def moves() -> list[Call]:
    """What computes nothing: layouts, joins, borders, selections."""
    picture, tokens = torch.randn(1, 64, 112, 112), torch.randn(1, 197, 768)
    windows = torch.randn(1, 56, 56, 96)
    heads, angle = torch.randn(1, 12, 128, 64), torch.randn(128, 64)
    half = angle[:, :32].contiguous()
    table, words = torch.randn(30000, 768), _integers(30000, 1, 512)

    def cat(*parts: Tensor) -> Tensor:
        return torch.cat(parts, -1)

    def rotated(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
        return x * c + torch.cat([-x[..., 32:], x[..., :32]], -1) * s

    def rotated_pairs(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * c - odd * s, odd * c + even * s], -1).flatten(-2)

    def partition(x: Tensor) -> Tensor:
        return x.view(1, 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5).reshape(64, 49, 96)

    def merge(x: Tensor) -> Tensor:
        return cat(x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2])

    return [
        Call("transpose", lambda x: x.t().contiguous(), [torch.randn(1024, 1024)]),
        Call("channels last", lambda x: x.permute(0, 2, 3, 1).contiguous(), [picture]),
        Call(
            "heads",
            lambda x: x.view(1, 197, 12, 64).permute(0, 2, 1, 3).contiguous(),
            [tokens],
        ),
        Call("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), [torch.randn(1, 256, 64, 64)]),
        Call("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), [torch.randn(1, 64, 128, 128)]),
        Call("channel_shuffle", lambda x: F.channel_shuffle(x, 2), [torch.randn(1, 116, 28, 28)]),
        Call("pad with zeros", lambda x: F.pad(x, (1, 1, 1, 1)), [picture]),
        Call("pad by reflection", lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect"), [picture]),
        Call("roll", lambda x: torch.roll(x, (-3, -3), (1, 2)), [windows]),
        Call("flip", lambda x: x.flip(-1), [torch.randn(1, 3, 224, 224)]),
        Call("windows", partition, [windows]),
        Call("patches merged", merge, [windows]),
        Call("unfold", lambda x: F.unfold(x, 3, padding=1), [torch.randn(1, 64, 56, 56)]),
        Call("fold", lambda x: F.fold(x, (56, 56), 2, stride=2), [torch.randn(1, 256, 784)]),
        Call("stack", lambda a, b: torch.stack([a, b], -1), [angle, angle]),
        Call(
            "repeat_interleave",
            lambda x: x.repeat_interleave(4, 1),
            [torch.randn(1, 8, 128, 64)],
        ),
        Call("rotary, halves", rotated, [heads, angle, angle]),
        Call("rotary, pairs", rotated_pairs, [heads, half, half]),
        Call("every second pixel", lambda x: x[:, :, ::2, ::2].contiguous(), [picture]),
        Call("tril", torch.tril, [torch.randn(8, 512, 512)]),
        Call("cat 85 + 4", cat, [torch.randn(1, 8400, 85), torch.randn(1, 8400, 4)]),
        Call("cat 3 + 5 + 7", cat, [torch.randn(4096, n) for n in (3, 5, 7)]),
        Call("cat 33 + 31", cat, [torch.randn(1024, n) for n in (33, 31)]),
        Call(
            "cat of channels", lambda a, b: torch.cat([a, b], 1), [torch.randn(1, 64, 56, 56)] * 2
        ),
        Call("cat of tokens", lambda a, b: torch.cat([a, b], 1), [tokens[:, :1], tokens[:, 1:]]),
        Call("index_select, rows", lambda x, i: x.index_select(0, i), [table, words[0]]),
        Call(
            "index_select, columns",
            lambda x, i: x.index_select(1, i),
            [torch.randn(64, 1000), _integers(1000, 512)],
        ),
        Call("embedding", lambda w, i: F.embedding(i, w), [table, words]),
        Call(
            "gather", lambda x, i: x.gather(1, i), [torch.randn(64, 1000), _integers(1000, 64, 99)]
        ),
        Call("one_hot", lambda i: F.one_hot(i, 1000).float(), [_integers(1000, 512)]),
    ]


def images() -> list[Call]:
    """Interpolation, pooling and regions."""
    small, picture = torch.randn(1, 64, 56, 56), torch.randn(1, 64, 112, 112)
    corners = torch.rand(100, 2) * 100
    regions = torch.cat([torch.zeros(100, 1), corners, corners + 1 + torch.rand(100, 2) * 100], 1)

    def scaled(mode: str) -> Callable[[Tensor], Tensor]:
        return lambda x: F.interpolate(x, scale_factor=2, mode=mode)

    def regions_of(x: Tensor, r: Tensor) -> Tensor:
        import torchvision

        return torchvision.ops.roi_align(x, r, 7, 0.25, 2)

    return [
        Call("nearest", scaled("nearest"), [small]),
        Call("bilinear", scaled("bilinear"), [small]),
        Call(
            "bilinear, eight times",
            lambda x: F.interpolate(x, (224, 224), mode="bilinear"),
            [torch.randn(1, 21, 28, 28)],
        ),
        Call("bicubic", scaled("bicubic"), [torch.randn(1, 3, 112, 112)]),
        Call("area", lambda x: F.interpolate(x, (56, 56), mode="area"), [picture]),
        Call(
            "grid_sample",
            lambda x, g: F.grid_sample(x, g, align_corners=False),
            [small, torch.rand(1, 56, 56, 2) * 2 - 1],
        ),
        Call(
            "affine_grid",
            lambda t: F.affine_grid(t, (1, 3, 224, 224), align_corners=False),
            [torch.randn(1, 2, 3)],
        ),
        Call("max_pool2d 3", lambda x: F.max_pool2d(x, 3, 2, 1), [picture]),
        Call("max_pool2d 2", lambda x: F.max_pool2d(x, 2), [picture]),
        Call("max_pool2d 5", lambda x: F.max_pool2d(x, 5, 1, 2), [torch.randn(1, 256, 20, 20)]),
        Call("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 1, 1), [small]),
        Call("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 6), [small]),
        Call("max_pool1d", lambda x: F.max_pool1d(x, 3, 2), [torch.randn(1, 256, 4000)]),
        Call("max_pool3d", lambda x: F.max_pool3d(x, 2), [torch.randn(1, 32, 16, 56, 56)]),
        Call("roi_align", regions_of, [torch.randn(1, 256, 56, 56), regions]),
    ]


def spectra() -> list[Call]:
    """Fourier transforms."""
    sound = torch.randn(1, 16000)
    window = torch.hann_window(400)
    return [
        *(
            Call(f"rfft {n}", torch.fft.rfft, [torch.randn(100, n)])
            for n in (256, 400, 512, 1024, 2048)
        ),
        Call("fft", torch.fft.fft, [torch.randn(100, 512, dtype=torch.complex64)]),
        Call("ifft", torch.fft.ifft, [torch.randn(100, 1024, dtype=torch.complex64)]),
        Call("irfft", lambda x: torch.fft.irfft(torch.complex(x, x)), [torch.randn(100, 257)]),
        Call("fft2", lambda x: torch.fft.fft2(x).real, [torch.randn(8, 64, 64)]),
        Call(
            "stft",
            lambda x: torch.stft(x, 400, 160, window=window, return_complex=True).abs(),
            [sound],
        ),
    ]


def convolutions() -> list[Call]:
    """Convolutions with constant weights, data channels first."""

    def on(shape: tuple[int, ...], module: nn.Module, name: str) -> Call:
        return Call(name, module.eval(), [torch.randn(shape)])

    return [
        on((1, 64, 56, 56), nn.Conv2d(64, 64, 3, padding=1), "3x3"),
        on((1, 128, 56, 56), nn.Conv2d(128, 128, 3, 2, 1), "3x3, stride 2"),
        on((1, 3, 224, 224), nn.Conv2d(3, 64, 7, 2, 3), "stem"),
        on((1, 3, 224, 224), nn.Conv2d(3, 768, 16, 16), "patches"),
        on((1, 96, 56, 56), nn.Conv2d(96, 96, 7, padding=3, groups=96), "depthwise 7x7"),
        on((1, 144, 56, 56), nn.Conv2d(144, 144, 3, padding=1, groups=144), "depthwise 3x3"),
        on((1, 128, 56, 56), nn.Conv2d(128, 128, 3, padding=1, groups=32), "groups of 4"),
        on((1, 256, 28, 28), nn.Conv2d(256, 256, 3, padding=1, groups=32), "groups of 8"),
        on((1, 168, 28, 28), nn.Conv2d(168, 168, 3, padding=1, groups=7), "groups of 24"),
        on((1, 896, 14, 14), nn.Conv2d(896, 896, 3, padding=1, groups=16), "groups of 56"),
        on((1, 408, 14, 14), nn.Conv2d(408, 408, 1), "1x1 of 408"),
        on((1, 256, 28, 28), nn.Conv2d(256, 256, 3, padding=2, dilation=2), "dilated"),
        on((1, 64, 56, 56), nn.Conv2d(64, 1, 1), "1x1 to one"),
        on((1, 64, 128, 128), nn.Conv2d(64, 1, 3, padding=1), "3x3 to one"),
        on((1, 1, 16000), nn.Conv1d(1, 512, 10, 5), "line, first layer"),
        on((1, 512, 1599), nn.Conv1d(512, 512, 3, 2), "line"),
        on((1, 256, 500), nn.Conv1d(256, 256, 31, padding=15, groups=256), "line, depthwise"),
        on((1, 768, 50), nn.Conv1d(768, 768, 128, padding=64, groups=16), "line, 16 groups"),
        on((1, 128, 56, 56), nn.ConvTranspose2d(128, 64, 2, 2), "transposed 2x2"),
        on((1, 128, 32, 32), nn.ConvTranspose2d(128, 64, 4, 2, 1), "transposed 4x4"),
        on((1, 256, 100), nn.ConvTranspose1d(256, 128, 16, 8, 4), "transposed line"),
        on((1, 32, 8, 28, 28), nn.Conv3d(32, 32, 3, padding=1), "volume"),
    ]


def products() -> list[Call]:
    """Matrix products, attention and recurrences."""

    def layer(rows: tuple[int, ...], module: nn.Module, name: str) -> Call:
        return Call(name, module.eval(), [torch.randn(rows)])

    def scores(q: Tensor, k: Tensor) -> Tensor:
        return q @ k.transpose(-1, -2)

    def pair(left: tuple[int, ...], right: tuple[int, ...]) -> list[Tensor]:
        return [torch.randn(left), torch.randn(right)]

    attention = F.scaled_dot_product_attention
    tokens, keys = torch.randn(1, 12, 197, 64), torch.randn(1, 32, 512, 128)
    lstm = nn.LSTM(128, 128, batch_first=True).eval()
    return [
        layer((1, 2048), nn.Linear(2048, 1000), "linear, one row"),
        layer((1, 4096), nn.Linear(4096, 4096), "linear, one long row"),
        layer((197, 768), nn.Linear(768, 3072), "linear, 197 rows"),
        layer((128, 768), nn.Linear(768, 50), "linear to 50"),
        layer((512, 100), nn.Linear(100, 100), "linear, 100 to 100"),
        Call("scores of 197", scores, pair((12, 197, 64), (12, 197, 64))),
        Call("scores of 512", scores, pair((8, 512, 64), (8, 512, 64))),
        Call("scores of one query", scores, pair((32, 1, 128), (32, 1024, 128))),
        Call("weighted values", torch.matmul, pair((12, 197, 197), (12, 197, 64))),
        Call("bmm", torch.bmm, pair((16, 256, 256), (16, 256, 256))),
        Call("mm", torch.mm, pair((512, 512), (512, 512))),
        Call("mm, left turned", lambda a, b: a.t() @ b, pair((512, 256), (512, 512))),
        Call("mm, right turned", lambda a, b: a @ b.t(), pair((512, 512), (512, 512))),
        Call("mv", torch.mv, pair((2048, 2048), (2048,))),
        Call(
            "einsum of heads",
            lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b),
            pair((1, 8, 256, 64), (1, 8, 256, 64)),
        ),
        Call(
            "einsum of masks",
            lambda a, b: torch.einsum("bqc,bchw->bqhw", a, b),
            pair((1, 100, 256), (1, 256, 64, 64)),
        ),
        Call("attention", attention, [tokens, tokens, tokens]),
        Call("attention of one query", attention, [keys[:, :, :1].contiguous(), keys, keys]),
        Call("lstm", lambda x: lstm(x)[0], [torch.randn(1, 50, 128)]),
    ]


GROUPS: dict[str, Callable[[], list[Call]]] = {
    "elementwise": elementwise,
    "normalisations": normalisations,
    "reductions": reductions,
    "moves": moves,
    "images": images,
    "spectra": spectra,
    "convolutions": convolutions,
    "products": products,
}
