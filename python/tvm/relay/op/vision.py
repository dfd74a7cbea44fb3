"""Operators of object detection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, topi
from tvm.ir import RelayExpr

from ..expr import Call, TupleWrapper, const
from .detection_types import with_open_sizes
from .nn.windows import sizes_of
from .registry import REQUIRED, OpPattern, define, make

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "multibox_prior",
    "multibox_transform_loc",
    "non_max_suppression",
    "roi_align",
    "roi_pool",
    "yolo_reorg",
]


def _as_list(compute: Any) -> Any:
    def run(*tensors: Any, **settings: Any) -> Any:
        result = compute(*tensors, **settings)
        return list(result) if isinstance(result, (list, tuple)) else result

    return run


def _roi_align(
    data: Any,
    rois: Any,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int,
    layout: str,
    mode: str,
) -> Any:
    align = {"NCHW": topi.vision.roi_align_nchw, "NHWC": topi.vision.roi_align_nhwc}
    if layout not in align:
        raise error.ValueError(
            f"relay.vision.roi_align: layout is 'NCHW' or 'NHWC', got '{layout}'"
        )
    return align[layout](data, rois, list(pooled_size), spatial_scale, mode, sample_ratio)


def _roi_pool(data: Any, rois: Any, pooled_size: Any, spatial_scale: float, layout: str) -> Any:
    if layout != "NCHW":
        raise error.ValueError(f"relay.vision.roi_pool: layout is 'NCHW', got '{layout}'")
    return topi.vision.roi_pool_nchw(data, rois, list(pooled_size), spatial_scale)


def _define(name: str, compute: Any, **more: Any) -> None:
    define(name, compute, rule=with_open_sizes(name, compute), **more)


define(
    "vision.multibox_prior",
    topi.vision.multibox_prior,
    OpPattern.INJECTIVE,
    settings={
        "sizes": (1.0,),
        "ratios": (1.0,),
        "steps": (-1.0, -1.0),
        "offsets": (0.5, 0.5),
        "clip": False,
    },
    num_inputs=1,
)
define(
    "vision.multibox_transform_loc",
    _as_list(topi.vision.multibox_transform_loc),
    settings={"clip": True, "threshold": 0.01, "variances": (0.1, 0.1, 0.2, 0.2)},
    num_inputs=3,
)
_define(
    "vision.get_valid_counts",
    _as_list(topi.vision.get_valid_counts),
    settings={"id_index": 0, "score_index": 1},
    num_inputs=2,
)
_define(
    "vision.non_max_suppression",
    _as_list(topi.vision.non_max_suppression),
    settings={
        "force_suppress": False,
        "top_k": -1,
        "coord_start": 2,
        "score_index": 1,
        "id_index": 0,
        "return_indices": True,
        "invalid_to_bottom": False,
    },
    num_inputs=5,
)
_define(
    "vision.all_class_non_max_suppression",
    _as_list(topi.vision.all_class_non_max_suppression),
    settings={"output_format": "onnx"},
    num_inputs=5,
)
_define(
    "vision.roi_align",
    _roi_align,
    settings={
        "pooled_size": REQUIRED,
        "spatial_scale": REQUIRED,
        "sample_ratio": -1,
        "layout": "NCHW",
        "mode": "avg",
    },
    num_inputs=2,
)
_define(
    "vision.roi_pool",
    _roi_pool,
    settings={"pooled_size": REQUIRED, "spatial_scale": REQUIRED, "layout": "NCHW"},
    num_inputs=2,
)
define(
    "vision.yolo_reorg",
    topi.vision.reorg,
    OpPattern.INJECTIVE,
    settings={"stride": REQUIRED},
    num_inputs=1,
)


def _numbers(values: Any) -> list[float]:
    return [float(v) for v in (values if isinstance(values, Sequence) else [values])]


def multibox_prior(
    data: RelayExpr,
    sizes: Sequence[float] = (1.0,),
    ratios: Sequence[float] = (1.0,),
    steps: Sequence[float] = (-1.0, -1.0),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Call:
    """Boxes around each pixel, as :func:`tvm.topi.vision.multibox_prior` gives them."""
    return make(
        "vision.multibox_prior",
        [data],
        sizes=_numbers(sizes),
        ratios=_numbers(ratios),
        steps=_numbers(steps),
        offsets=_numbers(offsets),
        clip=bool(clip),
    )


def multibox_transform_loc(
    cls_prob: RelayExpr,
    loc_pred: RelayExpr,
    anchor: RelayExpr,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
) -> TupleWrapper:
    """Boxes that a network finds, and their numbers.

    As :func:`tvm.topi.vision.multibox_transform_loc` gives them.
    """
    call = make(
        "vision.multibox_transform_loc",
        [cls_prob, loc_pred, anchor],
        clip=bool(clip),
        threshold=float(threshold),
        variances=_numbers(variances),
    )
    return TupleWrapper(call, 2)


def get_valid_counts(
    data: RelayExpr, score_threshold: Any, id_index: int = 0, score_index: int = 1
) -> TupleWrapper:
    """Boxes above a score, as :func:`tvm.topi.vision.get_valid_counts` gives them.

    Parameters
    ----------
    score_threshold : a number or an expression.
    """
    if not isinstance(score_threshold, RelayExpr):
        score_threshold = const(float(score_threshold), "float32")
    call = make(
        "vision.get_valid_counts",
        [data, score_threshold],
        id_index=id_index,
        score_index=score_index,
    )
    return TupleWrapper(call, 3)


def non_max_suppression(
    data: RelayExpr,
    valid_count: RelayExpr,
    indices: RelayExpr,
    max_output_size: Any = -1,
    iou_threshold: Any = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Call | TupleWrapper:
    """Boxes without those that overlap better ones.

    As :func:`tvm.topi.vision.non_max_suppression` gives them; `max_output_size` and
    `iou_threshold` may be expressions.
    """
    if not isinstance(max_output_size, RelayExpr):
        max_output_size = const(int(max_output_size), "int32")
    if not isinstance(iou_threshold, RelayExpr):
        iou_threshold = const(float(iou_threshold), "float32")
    call = make(
        "vision.non_max_suppression",
        [data, valid_count, indices, max_output_size, iou_threshold],
        force_suppress=bool(force_suppress),
        top_k=top_k,
        coord_start=coord_start,
        score_index=score_index,
        id_index=id_index,
        return_indices=bool(return_indices),
        invalid_to_bottom=bool(invalid_to_bottom),
    )
    return TupleWrapper(call, 2) if return_indices else call


def all_class_non_max_suppression(
    boxes: RelayExpr,
    scores: RelayExpr,
    max_output_boxes_per_class: Any = -1,
    iou_threshold: Any = -1.0,
    score_threshold: Any = -1.0,
    output_format: str = "onnx",
) -> TupleWrapper:
    """Boxes of each class without those that overlap better ones of it.

    As :func:`tvm.topi.vision.all_class_non_max_suppression` gives them: two values for "onnx", of
    which the second says how many rows of the first there are, three for "tensorflow". The three
    limits may be expressions.
    """
    limits = [
        value if isinstance(value, RelayExpr) else const(number(value), kind)
        for value, number, kind in (
            (max_output_boxes_per_class, int, "int32"),
            (iou_threshold, float, "float32"),
            (score_threshold, float, "float32"),
        )
    ]
    call = make(
        "vision.all_class_non_max_suppression",
        [boxes, scores, *limits],
        output_format=output_format,
    )
    return TupleWrapper(call, 2 if output_format == "onnx" else 3)


def roi_align(
    data: RelayExpr,
    rois: RelayExpr,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = "NCHW",
    mode: str = "avg",
) -> Call:
    """Means or maxima of samples in each region; :func:`tvm.topi.vision.roi_align_nchw`."""
    return make(
        "vision.roi_align",
        [data, rois],
        pooled_size=sizes_of(pooled_size, 2),
        spatial_scale=float(spatial_scale),
        sample_ratio=sample_ratio,
        layout=layout,
        mode=mode,
    )


def roi_pool(
    data: RelayExpr,
    rois: RelayExpr,
    pooled_size: Any,
    spatial_scale: float,
    layout: str = "NCHW",
) -> Call:
    """Maxima in each region; :func:`tvm.topi.vision.roi_pool_nchw`."""
    return make(
        "vision.roi_pool",
        [data, rois],
        pooled_size=sizes_of(pooled_size, 2),
        spatial_scale=float(spatial_scale),
        layout=layout,
    )


def yolo_reorg(data: RelayExpr, stride: int) -> Call:
    """Pixels as channels in Darknet's order; see :func:`tvm.topi.vision.reorg`."""
    return make("vision.yolo_reorg", [data], stride=int(stride))
