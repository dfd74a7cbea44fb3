"""Operators under the names of torchvision, computed slowly, for where it is not installed."""

import math

import torch

_SCHEMAS = (
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width) -> (Tensor, Tensor)",
    "ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
    "ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width) -> (Tensor, Tensor)",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
    "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def _pixel(image, y, x):
    """A (channels, height, width) image between its pixels, with nothing around it."""
    _, height, width = image.shape
    total = torch.zeros(image.shape[0])
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < height and 0 <= column < width:
                total += image[:, row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def _sample(image, y, x):
    """As `_pixel`, but the border goes on for one pixel."""
    _, height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return torch.zeros(image.shape[0])
    return _pixel(image, min(max(y, 0), height - 1), min(max(x, 0), width - 1))


def _align(data, rois, scale, height, width, ratio, aligned):
    results = torch.zeros(len(rois), data.shape[1], height, width)
    for r, (batch, *borders) in enumerate(rois.tolist()):
        left, top, right, bottom = (b * scale - 0.5 * aligned for b in borders)
        spans = [bottom - top, right - left]
        steps = [
            (span if aligned else max(span, 1.0)) / n for span, n in zip(spans, (height, width))
        ]
        counts = [ratio if ratio > 0 else math.ceil(step) for step in steps]
        for y in range(height):
            for x in range(width):
                samples = [
                    _sample(
                        data[int(batch)],
                        top + (y + (i + 0.5) / counts[0]) * steps[0],
                        left + (x + (j + 0.5) / counts[1]) * steps[1],
                    )
                    for i in range(counts[0])
                    for j in range(counts[1])
                ]
                if samples:
                    results[r, :, y, x] = torch.stack(samples).mean(0)
    return results


def _own_channels(results, height, width):
    """Of results that each bin has for all channels, those that belong to the bin."""
    count, channels = results.shape[0], results.shape[1] // (height * width)
    split = results.reshape(count, channels, height, width, height, width)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return split[:, :, y, x, y, x]


def _whole_pixels(data, rois, scale, height, width, inclusive, unread, reduce):
    results = torch.zeros(len(rois), data.shape[1], height, width)
    for r, (batch, *borders) in enumerate(rois.tolist()):
        left, top, right, bottom = (math.floor(b * scale + 0.5) for b in borders)
        ranges = []
        for first, last, n, extent in (
            (top, bottom, height, data.shape[2]),
            (left, right, width, data.shape[3]),
        ):
            size = max(last - first + inclusive, 1)
            ends = [(k * size // n + first, -(-(k + 1) * size // n) + first) for k in range(n)]
            ranges.append([[min(max(e, 0), extent - unread) for e in pair] for pair in ends])
        for y, (y0, y1) in enumerate(ranges[0]):
            for x, (x0, x1) in enumerate(ranges[1]):
                if y1 > y0 and x1 > x0:
                    results[r, :, y, x] = reduce(data[int(batch), :, y0:y1, x0:x1])
    return results


def _roi_pool(data, rois, scale, height, width):
    found = _whole_pixels(data, rois, scale, height, width, 1, 0, lambda t: t.amax((1, 2)))
    return found, torch.zeros_like(found, dtype=torch.int32)


def _ps_roi_pool(data, rois, scale, height, width):
    found = _whole_pixels(data, rois, scale, height, width, 0, 1, lambda t: t.mean((1, 2)))
    own = _own_channels(found, height, width)
    return own, torch.zeros_like(own, dtype=torch.int32)


def _ps_roi_align(data, rois, scale, height, width, ratio):
    own = _own_channels(_align(data, rois, scale, height, width, ratio, True), height, width)
    return own, torch.zeros_like(own, dtype=torch.int32)


def _extents(data, weight, steps, pads, gaps):
    return [
        (data.shape[2 + k] + 2 * pads[k] - gaps[k] * (weight.shape[2 + k] - 1) - 1) // steps[k] + 1
        for k in (0, 1)
    ]


def _deform_conv2d(data, weight, offset, mask, bias, *settings):
    steps, pads, gaps = settings[0:2], settings[2:4], settings[4:6]
    groups, bends, use_mask = settings[6:]
    batch, channels = data.shape[:2]
    filters, _, kh, kw = weight.shape
    rows, columns = _extents(data, weight, steps, pads, gaps)
    read = torch.zeros(batch, channels, kh, kw, rows, columns)
    part = channels // bends
    for n, b, ky, kx, y, x in torch.cartesian_prod(
        *map(torch.arange, (batch, bends, kh, kw, rows, columns))
    ).tolist():
        cell = (b * kh + ky) * kw + kx
        at = [
            i * steps[k] + tap * gaps[k] - pads[k] + float(offset[n, 2 * cell + k, y, x])
            for k, (i, tap) in enumerate(((y, ky), (x, kx)))
        ]
        value = _pixel(data[n, b * part : (b + 1) * part], *at)
        factor = mask[n, cell, y, x] if use_mask else 1.0
        read[n, b * part : (b + 1) * part, ky, kx, y, x] = value * factor
    read = read.reshape(batch, groups, -1, rows * columns)
    kernels = weight.reshape(groups, filters // groups, -1)
    return (kernels @ read).reshape(batch, filters, rows, columns) + bias.reshape(1, -1, 1, 1)


def _nms(boxes, scores, threshold):
    kept = []
    for i in scores.argsort(descending=True, stable=True).tolist():
        size = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        low = torch.maximum(boxes[i, :2], boxes[kept, :2])
        high = torch.minimum(boxes[i, 2:], boxes[kept, 2:])
        common = (high - low).clamp(min=0).prod(1)
        if not (common / (size[i] + size[kept] - common) > threshold).any():
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def _shaped(count, channels, data, height, width):
    return data.new_empty(count, channels, height, width)


def _meta_of_region(name):
    def meta(data, rois, _, height, width, *rest):
        bins = height * width if name.startswith("ps_") else 1
        found = _shaped(rois.shape[0], data.shape[1] // bins, data, height, width)
        return found if name == "roi_align" else (found, found.to(torch.int32))

    return meta


def _meta_deform(data, weight, offset, mask, bias, *settings):
    size = _extents(data, weight, settings[0:2], settings[2:4], settings[4:6])
    return _shaped(data.shape[0], weight.shape[0], data, *size)


def _meta_nms(boxes, scores, threshold):
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def _define():
    library = torch.library.Library("torchvision", "DEF")
    computed = {"roi_align": _align, "roi_pool": _roi_pool, "ps_roi_align": _ps_roi_align,
                "ps_roi_pool": _ps_roi_pool, "deform_conv2d": _deform_conv2d,
                "nms": _nms}  # fmt: skip
    metas = {"deform_conv2d": _meta_deform, "nms": _meta_nms}
    for schema in _SCHEMAS:
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, computed[name], "CPU")
        meta = metas.get(name, _meta_of_region(name))
        torch.library.register_fake(f"torchvision::{name}", meta, lib=library)
    return library


try:
    import torchvision  # noqa: F401
except ImportError:
    # Held, because the operators are gone with it.
    LIBRARY = _define()
