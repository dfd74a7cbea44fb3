"""Operators of torchvision: regions of images, and windows that are bent."""

from __future__ import annotations

from typing import Any

from tvm.ir import RelayExpr
from tvm.relax import op

from ..arguments import Arguments, converter, refuse

__all__: list[str] = []


def _of_regions(a: Arguments, name: str, **settings: Any) -> RelayExpr:
    size = [int(a["pooled_height"]), int(a["pooled_width"])]
    scale = float(a["spatial_scale"])
    return op.make_call(
        f"vision.{name}", a["input"], a["rois"], pooled_size=size, spatial_scale=scale, **settings
    )


@converter("roi_align.default", namespace="torchvision")
def _roi_align(a: Arguments) -> RelayExpr:
    return _of_regions(
        a, "roi_align", sample_ratio=int(a["sampling_ratio"]), aligned=bool(a["aligned"])
    )


@converter("roi_pool.default", namespace="torchvision")
def _roi_pool(a: Arguments) -> list[RelayExpr | None]:
    # The second results of these say where values are from, which training reads.
    return [_of_regions(a, "roi_pool"), None]


@converter("ps_roi_align.default", namespace="torchvision")
def _ps_roi_align(a: Arguments) -> list[RelayExpr | None]:
    return [_of_regions(a, "ps_roi_align", sample_ratio=int(a["sampling_ratio"])), None]


@converter("ps_roi_pool.default", namespace="torchvision")
def _ps_roi_pool(a: Arguments) -> list[RelayExpr | None]:
    return [_of_regions(a, "ps_roi_pool"), None]


@converter("deform_conv2d.default", namespace="torchvision")
def _deform_conv2d(a: Arguments) -> RelayExpr:
    """A product of matrices: what the windows read, and the weights."""
    filters, per_group, *window = a.shape("weight")
    groups = int(a["groups"])
    bends = int(a["offset_groups"])
    data = a.emit(op.permute_dims(a["input"], [0, 2, 3, 1]))
    operands = [data, a["offset"], *([a["mask"]] if a["use_mask"] else [])]
    columns = a.call(
        "image.deformable_columns", *operands, kernel_size=window, deformable_groups=bends,
        strides=[int(a["stride_h"]), int(a["stride_w"])],
        padding=[int(a["pad_h"]), int(a["pad_w"])],
        dilation=[int(a["dilation_h"]), int(a["dilation_w"])],
    )  # fmt: skip
    batch, _, rows, width = a.result_shape
    cells = window[0] * window[1]
    pixels = batch * rows * width
    weight = a.emit(op.reshape(a["weight"], (groups, filters // groups, per_group, cells)))
    weight = a.emit(op.permute_dims(weight, [0, 3, 2, 1]))
    if groups == 1:
        columns = a.emit(op.reshape(columns, (pixels, cells * per_group)))
        weight = a.emit(op.reshape(weight, (cells * per_group, filters)))
        result = a.emit(op.matmul(columns, weight))
    else:
        columns = a.emit(op.reshape(columns, (pixels, cells, groups, per_group)))
        columns = a.emit(op.permute_dims(columns, [2, 0, 1, 3]))
        columns = a.emit(op.reshape(columns, (groups, pixels, cells * per_group)))
        weight = a.emit(op.reshape(weight, (groups, cells * per_group, filters // groups)))
        result = a.emit(op.permute_dims(a.emit(op.matmul(columns, weight)), [1, 0, 2]))
    result = a.emit(op.reshape(result, (batch, rows, width, filters)))
    result = a.emit(op.add(result, a["bias"]))
    return op.permute_dims(result, [0, 3, 1, 2])


refuse("gives a result whose size depends on the data", "nms.default", namespace="torchvision")
