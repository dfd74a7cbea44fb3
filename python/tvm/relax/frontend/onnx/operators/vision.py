"""Sampling of images, and boxes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.frontend.torch.arguments import Arguments, converter, refuse

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
    aligned = n.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    return torch.ops.tvm_onnx.roi_align(
        x, rois, batch, int(n.attr("output_height", 1)), int(n.attr("output_width", 1)),
        int(n.attr("sampling_ratio", 0)), float(n.attr("spatial_scale", 1.0)), aligned,
        str(n.attr("mode", "avg")),
    )  # fmt: skip


# One operator, because where no number of samples is given it depends on the regions' sizes.
@torch.library.custom_op("tvm_onnx::roi_align", mutates_args=())
def _sampled_regions(
    x: torch.Tensor, rois: torch.Tensor, batch: torch.Tensor, height: int, width: int, ratio: int,
    scale: float, aligned: bool, mode: str,
) -> torch.Tensor:  # fmt: skip
    """Bilinear samples in each bin of each region, after He et al., "Mask R-CNN", ICCV 2017."""
    results = []
    for row in range(rois.shape[0]):
        x1, y1, x2, y2 = (rois[row, i] * scale - (0.5 if aligned else 0.0) for i in range(4))
        w, h = x2 - x1, y2 - y1
        if not aligned:
            w, h = torch.clamp(w, min=1.0), torch.clamp(h, min=1.0)
        across = ratio or max(int(np.ceil(float(w) / width)), 1)
        down = ratio or max(int(np.ceil(float(h) / height)), 1)
        ys = y1 + (torch.arange(height * down, dtype=x.dtype) + 0.5) * (h / (height * down))
        xs = x1 + (torch.arange(width * across, dtype=x.dtype) + 0.5) * (w / (width * across))
        image = torch.index_select(x, 0, batch[row : row + 1].to(torch.int64))[0]
        samples = _bilinear(image, ys, xs, *x.shape[2:])
        bins = samples.reshape(x.shape[1], height, down, width, across)
        results.append(bins.mean((2, 4)) if mode == "avg" else bins.amax((2, 4)))
    if not results:
        return x.new_zeros(0, x.shape[1], height, width)
    return torch.stack(results)


@_sampled_regions.register_fake
def _shape_of_regions(
    x: torch.Tensor, rois: torch.Tensor, batch: torch.Tensor, height: int, width: int, *_: Any
) -> torch.Tensor:
    return x.new_empty(rois.shape[0], x.shape[1], height, width)


@converter("roi_align.default", namespace="tvm_onnx")
def _convert_roi_align(a: Arguments) -> RelayExpr:
    places = a.emit(op.reshape(a.cast(a["batch"], a.result_dtype), (-1, 1)))
    return op.make_call(
        "vision.roi_align", a["x"], a.emit(op.concat([places, a["rois"]], 1)),
        pooled_size=[int(a["height"]), int(a["width"])], spatial_scale=float(a["scale"]),
        mode=str(a["mode"]), sample_ratio=int(a["ratio"]), aligned=bool(a["aligned"]),
    )  # fmt: skip


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
    n: Node,
    boxes: torch.Tensor,
    scores: torch.Tensor,
    most: torch.Tensor | None = None,
    overlap: torch.Tensor | None = None,
    least: torch.Tensor | None = None,
) -> torch.Tensor:
    centred = bool(n.attr("center_point_box", 0))
    return torch.ops.tvm_onnx.non_max_suppression(boxes, scores, most, overlap, least, centred)


# PyTorch runs this one: how many boxes it keeps depends on the data.
@torch.library.custom_op("tvm_onnx::non_max_suppression", mutates_args=())
def _kept_boxes(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    most: torch.Tensor | None,
    overlap: torch.Tensor | None,
    least: torch.Tensor | None,
    centred: bool,
) -> torch.Tensor:
    """Rows of batch, class and box: the boxes by falling score that overlap none before them."""
    count = 0 if most is None else int(most)
    limit = 0.0 if overlap is None else float(overlap)
    threshold = -math.inf if least is None else float(least)
    corners = boxes.numpy().astype(np.float64)
    if centred:
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
                if len(kept) >= count or values[b, c, i] <= threshold:
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


@_kept_boxes.register_fake
def _shape_of_kept(boxes: torch.Tensor, *_: Any) -> torch.Tensor:
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), 3, dtype=torch.int64)


refuse(
    "gives a result whose size depends on the data",
    "non_max_suppression.default",
    namespace="tvm_onnx",
)
