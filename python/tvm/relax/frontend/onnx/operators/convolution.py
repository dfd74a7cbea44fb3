"""Convolutions and pooling, over any number of spatial dimensions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from ..errors import OnnxError
from .registry import Node, operator
from .shapes import pad_tensor

__all__ = ["average_pool", "convolve", "spatial_padding"]


def spatial_padding(
    n: Node,
    extents: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Sizes before and after each spatial dimension."""
    rank = len(extents)
    mode = n.attr("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = n.attr("pads", [0] * 2 * rank)
        return list(pads[:rank]), list(pads[rank:])
    if mode == "VALID":
        return [0] * rank, [0] * rank
    before, after = [], []
    for extent, size, stride, dilation in zip(extents, kernel, strides, dilations):
        wanted = -(-extent // stride)
        total = max((wanted - 1) * stride + (size - 1) * dilation + 1 - extent, 0)
        small, large = total // 2, total - total // 2
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    return before, after


_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def convolve(
    n: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """The convolution that a node's attributes describe."""
    rank = x.dim() - 2
    if rank not in _CONVOLUTIONS:
        raise OnnxError(f"convolutions over {rank} dimensions are not supported")
    strides, dilations = n.attr("strides", [1] * rank), n.attr("dilations", [1] * rank)
    before, after = spatial_padding(n, x.shape[2:], weight.shape[2:], strides, dilations)
    padding = before
    if before != after:
        x = pad_tensor(x, [0, 0, *before], [0, 0, *after], "constant", 0)
        padding = [0] * rank
    return _CONVOLUTIONS[rank](x, weight, bias, strides, padding, dilations, n.attr("group", 1))


@operator("Conv")
def _conv(
    n: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    return convolve(n, x, weight, bias)


@operator("ConvTranspose")
def _conv_transpose(
    n: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    rank = x.dim() - 2
    if rank not in _TRANSPOSED:
        raise OnnxError(f"transposed convolutions over {rank} dimensions are not supported")
    strides, dilations = n.attr("strides", [1] * rank), n.attr("dilations", [1] * rank)
    extra = list(n.attr("output_padding", [0] * rank))
    kernel = weight.shape[2:]
    wanted = n.attr("output_shape")
    mode = n.attr("auto_pad", "NOTSET")
    whole = [
        (x.shape[2 + i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + extra[i]
        for i in range(rank)
    ]
    if wanted is None and mode.startswith("SAME"):
        wanted = [x.shape[2 + i] * strides[i] for i in range(rank)]
    if wanted is not None:
        wanted = wanted[-rank:]
        totals = [max(size - out, 0) for size, out in zip(whole, wanted)]
        extra = [extra[i] + max(wanted[i] - whole[i], 0) for i in range(rank)]
        before = [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in totals]
        after = [t - b for t, b in zip(totals, before)]
    else:
        pads = n.attr("pads", [0] * 2 * rank)
        before, after = list(pads[:rank]), list(pads[rank:])
    # Computed whole and cut, since PyTorch cuts both ends alike and limits what may be added.
    full = _TRANSPOSED[rank](
        x, weight, None, strides, [0] * rank, [0] * rank, n.attr("group", 1), dilations
    )
    if any(extra):
        full = pad_tensor(full, [0] * (rank + 2), [0, 0, *extra], "constant", 0)
    for i in range(rank):
        full = full.narrow(2 + i, before[i], full.shape[2 + i] - before[i] - after[i])
    return full if bias is None else full + bias.reshape([1, -1] + [1] * rank)


class _Windows:
    """Where the windows of a pooling operator lie."""

    def __init__(self, n: Node, x: torch.Tensor) -> None:
        self.rank = x.dim() - 2
        self.kernel = list(n.attr("kernel_shape"))
        self.strides = list(n.attr("strides", [1] * self.rank))
        self.dilations = list(n.attr("dilations", [1] * self.rank))
        self.before, self.after = spatial_padding(
            n, x.shape[2:], self.kernel, self.strides, self.dilations
        )
        self.extents = list(x.shape[2:])
        self.counts = []
        for i in range(self.rank):
            room = self.extents[i] + self.before[i] + self.after[i]
            room -= self.dilations[i] * (self.kernel[i] - 1) + 1
            count = room // self.strides[i] + 1
            if n.attr("ceil_mode", 0) and -(-room // self.strides[i]) + 1 > count:
                # A window that would lie in the padding at the end alone is left out.
                last = count * self.strides[i]
                count += last < self.extents[i] + self.before[i]
            self.counts.append(count)
        #: What must follow each dimension for all windows to fit.
        self.room_after = [
            max(
                (self.counts[i] - 1) * self.strides[i]
                + self.dilations[i] * (self.kernel[i] - 1)
                + 1
                - self.extents[i]
                - self.before[i],
                0,
            )
            for i in range(self.rank)
        ]

    def padded(self, x: torch.Tensor, value: float) -> torch.Tensor:
        """The data with what surrounds it, so that all windows fit."""
        return pad_tensor(x, [0, 0, *self.before], [0, 0, *self.room_after], "constant", value)

    def slices(self, padded: torch.Tensor) -> list[torch.Tensor]:
        """For each place in the window, the elements that lie there in all windows."""
        found = []
        for place in itertools.product(*map(range, self.kernel)):
            part = padded
            for i, offset in enumerate(place):
                start = offset * self.dilations[i]
                end = start + (self.counts[i] - 1) * self.strides[i] + 1
                part = part[(slice(None),) * (2 + i) + (slice(start, end, self.strides[i]),)]
            found.append(part)
        return found

    @property
    def is_plain(self) -> bool:
        """Whether PyTorch has it: the same padding on both sides, at most half a window.

        Windows that only rounding up adds are its `ceil_mode`, see `rounds_up`.
        """
        return (
            self.rank in (1, 2, 3)
            and self.before == self.after
            and all(b <= k // 2 for b, k in zip(self.before, self.kernel))
            and (not self.rounds_up or self.counts == self._counts_rounded_up())
        )

    @property
    def rounds_up(self) -> bool:
        """Whether windows reach beyond the padding."""
        return any(r > a for r, a in zip(self.room_after, self.after))

    def _counts_rounded_up(self) -> list[int]:
        """Windows along each dimension where all of them are rounded up, as PyTorch does it."""
        counts = []
        for i in range(self.rank):
            room = self.extents[i] + self.before[i] + self.after[i]
            room -= self.dilations[i] * (self.kernel[i] - 1) + 1
            count = -(-room // self.strides[i]) + 1
            inside = (count - 1) * self.strides[i] < self.extents[i] + self.before[i]
            counts.append(count if inside else count - 1)
        return counts


_MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVG_POOLS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


@operator("MaxPool")
def _max_pool(n: Node, x: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
    windows = _Windows(n, x)
    low = float("-inf") if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    if n.n_outputs == 1 and windows.rank in _MAX_POOLS and x.dtype.is_floating_point:
        w = windows
        pool = _MAX_POOLS[w.rank]
        if w.is_plain:
            return pool(x, w.kernel, w.strides, w.before, w.dilations, w.rounds_up)
        return pool(w.padded(x, low), w.kernel, w.strides, 0, w.dilations)
    parts = torch.stack(windows.slices(windows.padded(x, low)), 0)
    if n.n_outputs == 1:
        return torch.amax(parts, 0)
    values = torch.amax(parts, 0)
    order = list(range(windows.rank))
    if n.attr("storage_order", 0):
        order = order[::-1]
    flat = torch.zeros([1] * windows.rank, dtype=torch.int64)
    for axis in order:
        shape = [1] * windows.rank
        shape[axis] = -1
        flat = flat * windows.extents[axis] + torch.arange(windows.extents[axis]).reshape(shape)
    image = flat.expand(windows.extents)
    image = (
        torch.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * windows.rank)
        * (math.prod(windows.extents))
        + image
    )
    places = torch.stack(windows.slices(windows.padded(image, -1)), 0)
    # Of equal elements the first counts.
    first = torch.argmax((parts == values).to(torch.int8), 0, keepdim=True)
    return [values, torch.gather(places, 0, first).squeeze(0)]


@operator("AveragePool")
def average_pool(n: Node, x: torch.Tensor) -> torch.Tensor:
    """Means of the windows that a node's attributes describe."""
    w = _Windows(n, x)
    with_pad = bool(n.attr("count_include_pad", 0))
    has_pool = w.rank in _AVG_POOLS and all(d == 1 for d in w.dilations)
    if has_pool and w.is_plain:
        return _AVG_POOLS[w.rank](x, w.kernel, w.strides, w.before, w.rounds_up, with_pad)
    padded = w.padded(x, 0.0)
    if has_pool:
        total = _AVG_POOLS[w.rank](padded, w.kernel, w.strides) * math.prod(w.kernel)
    else:
        total = torch.stack(w.slices(padded), 0).sum(0)
    counted = torch.ones([1, 1, *w.extents], dtype=x.dtype)
    if with_pad:
        # The padding that was asked for counts, what only rounding up adds does not.
        counted = pad_tensor(counted, [0, 0, *w.before], [0, 0, *w.after], "constant", 1.0)
        more = [max(r - a, 0) for r, a in zip(w.room_after, w.after)]
        counted = pad_tensor(counted, [0] * (w.rank + 2), [0, 0, *more], "constant", 0.0)
    else:
        counted = w.padded(counted, 0.0)
    return total / torch.stack(w.slices(counted), 0).sum(0)


@operator("LpPool")
def _lp_pool(n: Node, x: torch.Tensor) -> torch.Tensor:
    w = _Windows(n, x)
    p = n.attr("p", 2)
    parts = torch.stack(w.slices(w.padded(x, 0.0)), 0)
    return torch.sum(torch.abs(parts) ** p, 0) ** (1.0 / p)


@operator("GlobalAveragePool")
def _global_average_pool(n: Node, x: torch.Tensor) -> torch.Tensor:
    return torch.mean(x, list(range(2, x.dim())), keepdim=True)


@operator("GlobalMaxPool")
def _global_max_pool(n: Node, x: torch.Tensor) -> torch.Tensor:
    return torch.amax(x, list(range(2, x.dim())), keepdim=True)


@operator("GlobalLpPool")
def _global_lp_pool(n: Node, x: torch.Tensor) -> torch.Tensor:
    p = n.attr("p", 2)
    total = torch.sum(torch.abs(x) ** p, list(range(2, x.dim())), keepdim=True)
    return total ** (1.0 / p)


@operator("MaxUnpool")
def _max_unpool(
    n: Node, x: torch.Tensor, places: torch.Tensor, shape: torch.Tensor | None = None
) -> torch.Tensor:
    rank = x.dim() - 2
    kernel = n.attr("kernel_shape")
    strides, pads = n.attr("strides", [1] * rank), n.attr("pads", [0] * 2 * rank)
    natural = [
        (x.shape[2 + i] - 1) * strides[i] - pads[i] - pads[rank + i] + kernel[i]
        for i in range(rank)
    ]
    result = torch.zeros(math.prod(x.shape[:2]) * math.prod(natural), dtype=x.dtype)
    result = result.scatter(0, places.reshape(-1), x.reshape(-1)).reshape(*x.shape[:2], *natural)
    wanted = n.ints(2)
    if wanted is None:
        return result
    after = [w - e for w, e in zip(wanted, result.shape)]
    return pad_tensor(result, [0] * x.dim(), after, "constant", 0)


@operator("DeformConv")
def _deform_conv(
    n: Node,
    x: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    bias: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    if x.dim() != 4:
        raise OnnxError("deformable convolutions are supported over two dimensions only")
    strides, dilations = n.attr("strides", [1, 1]), n.attr("dilations", [1, 1])
    pads, groups = n.attr("pads", [0, 0, 0, 0]), n.attr("group", 1)
    parts = n.attr("offset_group", 1)
    batch, channels, height, width = x.shape
    filters, _, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    shifts = offset.reshape(batch, parts, kh * kw, 2, oh, ow)
    grids = []
    for axis, (count, size) in enumerate(((oh, kh), (ow, kw))):
        base = torch.arange(count) * strides[axis] - pads[axis]
        inner = torch.arange(size) * dilations[axis]
        at = base[None, :] + inner[:, None]
        shape = (kh, 1, oh, 1) if axis == 0 else (1, kw, 1, ow)
        grids.append(at.reshape(shape).expand(kh, kw, oh, ow).reshape(kh * kw, oh, ow))
    y = shifts[:, :, :, 0] + grids[0]
    z = shifts[:, :, :, 1] + grids[1]
    images = x.reshape(batch * parts, channels // parts, height, width)
    # grid_sample takes coordinates where -1 and 1 are the middles of the outermost elements.
    grid = torch.stack([2 * z / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1], -1).reshape(
        batch * parts, kh * kw * oh, ow, 2
    )
    sampled = F.grid_sample(images, grid.to(x.dtype), align_corners=True)
    sampled = sampled.reshape(batch, parts, channels // parts, kh * kw, oh, ow)
    if mask is not None:
        sampled = sampled * mask.reshape(batch, parts, 1, kh * kw, oh, ow)
    columns = sampled.reshape(batch, groups, channels // groups * kh * kw, oh * ow)
    kernels = weight.reshape(groups, filters // groups, -1)
    result = torch.matmul(kernels, columns).reshape(batch, filters, oh, ow)
    return result if bias is None else result + bias.reshape(1, -1, 1, 1)
