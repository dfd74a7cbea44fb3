"""Sampling of images, and boxes."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from .registry import Node, operator

__all__: list[str] = []


@operator("GridSample")
def _grid_sample(n: Node, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(
        n.attr("mode", "linear"), n.attr("mode", "linear")
    )
    align = bool(n.attr("align_corners", 0))
    return F.grid_sample(x, grid.to(x.dtype), mode, n.attr("padding_mode", "zeros"), align)


@operator("AffineGrid")
def _affine_grid(n: Node, theta: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    return F.affine_grid(theta, n.ints(1) or [], bool(n.attr("align_corners", 0)))


@operator("RoiAlign")
def _roi_align(n: Node, x: torch.Tensor, rois: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
    """Bilinear samples in each bin of each region, after He et al., "Mask R-CNN", ICCV 2017."""
    height, width = x.shape[2:]
    oh, ow = n.attr("output_height", 1), n.attr("output_width", 1)
    ratio, scale = n.attr("sampling_ratio", 0), n.attr("spatial_scale", 1.0)
    half = n.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    results = []
    for row in range(rois.shape[0]):
        x1, y1, x2, y2 = (rois[row, i] * scale - (0.5 if half else 0.0) for i in range(4))
        w, h = x2 - x1, y2 - y1
        if not half:
            w, h = torch.clamp(w, min=1.0), torch.clamp(h, min=1.0)
        # Where no number of samples is given, it depends on the size of the region.
        across = ratio or max(int(np.ceil(float(w) / ow)), 1)
        down = ratio or max(int(np.ceil(float(h) / oh)), 1)
        ys = y1 + (torch.arange(oh * down, dtype=x.dtype) + 0.5) * (h / (oh * down))
        xs = x1 + (torch.arange(ow * across, dtype=x.dtype) + 0.5) * (w / (ow * across))
        image = torch.index_select(x, 0, batch[row : row + 1].to(torch.int64))[0]
        samples = _bilinear(image, ys, xs, height, width)
        bins = samples.reshape(x.shape[1], oh, down, ow, across)
        if n.attr("mode", "avg") == "avg":
            results.append(bins.mean((2, 4)))
        else:
            results.append(bins.amax((2, 4)))
    return torch.stack(results)


def _bilinear(
    image: torch.Tensor, ys: torch.Tensor, xs: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    """Samples of a (channels, height, width) image at all pairs of coordinates."""

    def matrix(at: torch.Tensor, extent: int) -> torch.Tensor:
        inside = (at >= -1) & (at <= extent)
        place = torch.clamp(at, 0, extent - 1)
        distance = torch.abs(place[:, None] - torch.arange(extent, dtype=at.dtype)[None, :])
        return torch.clamp(1 - distance, min=0.0) * inside[:, None]

    return torch.matmul(torch.matmul(matrix(ys, height), image), matrix(xs, width).t())


@operator("NonMaxSuppression")
def _non_max_suppression(
    n: Node, boxes: torch.Tensor, scores: torch.Tensor, *_: torch.Tensor | None
) -> torch.Tensor:
    most = (n.ints(2) or [0])[0]
    overlap, least = n.array(3), n.array(4)
    limit = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    corners = boxes.numpy().astype(np.float64)
    if n.attr("center_point_box", 0):
        centre, size = corners[..., :2], corners[..., 2:]
        corners = np.concatenate([centre - size / 2, centre + size / 2], -1)
    low = np.minimum(corners[..., :2], corners[..., 2:])
    high = np.maximum(corners[..., :2], corners[..., 2:])
    area = np.prod(high - low, -1)
    values = scores.numpy()
    chosen = []
    for b in range(values.shape[0]):
        for c in range(values.shape[1]):
            kept: list[int] = []
            for i in np.argsort(-values[b, c], kind="stable"):
                if len(kept) >= most:
                    break
                if least is not None and values[b, c, i] <= float(least.reshape(-1)[0]):
                    break
                common = np.clip(
                    np.minimum(high[b, i], high[b, kept]) - np.maximum(low[b, i], low[b, kept]),
                    0,
                    None,
                ).prod(-1)
                union = area[b, i] + area[b, kept] - common
                if not np.any(common > limit * union):
                    kept.append(int(i))
            chosen += [(b, c, i) for i in kept]
    return torch.from_numpy(np.array(chosen, np.int64).reshape(-1, 3))
