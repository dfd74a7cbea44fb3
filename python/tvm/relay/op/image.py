"""Operators of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error, tir, topi
from tvm.ir import RelayExpr, TensorType, Type

from ..expr import Call, Constant, const
from ..ty import Any as AnyExtent
from .nn.windows import Blocked, pads_of, sizes_of
from .registry import REQUIRED, OpPattern, define, make, row_of
from .reshaping import numbers_or_expr
from .shapes import tensor

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "dilation2d",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]


def _is_open(value: Any) -> bool:
    """Whether a setting is a tensor that is known when the program runs."""
    return isinstance(value, RelayExpr) and not isinstance(value, (Constant, tir.PrimExpr))


_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def _resize_rule(rank: int) -> Any:
    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        where = f"relay.image.resize{rank}d"
        data = tensor(where, types[0])
        layout = Blocked(where, s["layout"], "NC" + _SPACE[rank])
        batch, channels, *_ = layout.forward(data.shape, where)
        shape = layout.backward([batch, channels, *s["size"]])
        return TensorType(shape, s["out_dtype"] or str(data.dtype))

    return rule


def _resize_compute(rank: int) -> Any:
    resize = getattr(topi.image, f"resize{rank}d")

    def run(
        x: Any,
        size: Any,
        roi: Any,
        layout: str,
        method: str,
        coordinate_transformation_mode: str,
        rounding_method: str,
        cubic_alpha: float,
        cubic_exclude: int,
        extrapolation_value: float,
        out_dtype: str,
    ) -> Any:
        names = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[rank]
        inner = layout if layout in names else names[0]
        if inner != layout:
            x = topi.layout_transform(x, layout, inner)
        target = int(size[0]) if rank == 1 else [int(v) for v in size]
        y = resize(
            x,
            list(roi) if roi else [0.0] * (2 * rank),
            target,
            inner,
            method,
            coordinate_transformation_mode,
            rounding_method,
            cubic_alpha,
            cubic_exclude,
            extrapolation_value,
            out_dtype or None,
        )
        return y if inner == layout else topi.layout_transform(y, inner, layout)

    return run


for _rank in (1, 2, 3):
    define(
        f"image.resize{_rank}d",
        _resize_compute(_rank),
        OpPattern.INJECTIVE,
        num_inputs=1,
        rule=_resize_rule(_rank),
        settings={
            "size": REQUIRED,
            "roi": REQUIRED,
            "layout": "NC" + _SPACE[_rank],
            "method": "linear",
            "coordinate_transformation_mode": "half_pixel",
            "rounding_method": "",
            "cubic_alpha": -0.5,
            "cubic_exclude": 0,
            "extrapolation_value": 0.0,
            "out_dtype": "",
        },
    )


def _unknown_places(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = "relay.image.resize2d"
    data = tensor(where, types[0])
    layout = Blocked(where, s["layout"], "NCHW")
    batch, channels, *_ = layout.forward(data.shape, where)
    shape = layout.backward([batch, channels, AnyExtent(), AnyExtent()])
    return TensorType(shape, s["out_dtype"] or str(data.dtype))


define(
    "dyn.image.resize2d",
    num_inputs=3,
    rule=_unknown_places,
    settings={k: v for k, v in row_of("image.resize2d").settings.items()
              if k not in ("size", "roi")},
    settled=lambda a, s: resize2d(a[0], a[1], a[2], **s),
)  # fmt: skip


def _resize(
    rank: int,
    data: RelayExpr,
    size: Any,
    roi: Any,
    layout: str,
    method: str,
    mode: str,
    rounding: str,
    alpha: float,
    exclude: int,
    extrapolation: float,
    out_dtype: str | None,
) -> Call:
    return make(
        f"image.resize{rank}d",
        [data],
        size=sizes_of(numbers_or_expr(size), rank),
        roi=[0.0] * (2 * rank) if roi is None else [float(v) for v in _numbers(roi)],
        layout=layout,
        method=method,
        coordinate_transformation_mode=mode,
        rounding_method=rounding,
        cubic_alpha=float(alpha),
        cubic_exclude=int(exclude),
        extrapolation_value=float(extrapolation),
        out_dtype=out_dtype or "",
    )


def _numbers(roi: Any) -> Any:
    return roi.data.numpy() if isinstance(roi, Constant) else roi


def resize1d(
    data: RelayExpr,
    size: Any,
    roi: Sequence[float] | None = None,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """A signal at another size; arguments as in :func:`resize2d`."""
    return _resize(
        1,
        data,
        size,
        roi,
        layout,
        method,
        coordinate_transformation_mode,
        rounding_method,
        cubic_alpha,
        cubic_exclude,
        extrapolation_value,
        out_dtype,
    )


def resize2d(
    data: RelayExpr,
    size: Any,
    roi: Sequence[float] | RelayExpr | None = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """Images at another size.

    Parameters
    ----------
    size : height and width, or a tensor of them.
    roi : part of the image, for "tf_crop_and_resize"; four numbers or a tensor of them.
    method : "nearest_neighbor", "linear" or "cubic".
    coordinate_transformation_mode : "half_pixel", "align_corners" or "asymmetric".
    """
    if _is_open(size) or _is_open(roi):
        region = [0.0] * 4 if roi is None else roi
        return make(
            "dyn.image.resize2d",
            [
                data,
                size if isinstance(size, RelayExpr) else const(sizes_of(size, 2), "int64"),
                region if isinstance(region, RelayExpr) else const(list(region), "float32"),
            ],
            layout=layout,
            method=method,
            coordinate_transformation_mode=coordinate_transformation_mode,
            rounding_method=rounding_method,
            cubic_alpha=float(cubic_alpha),
            cubic_exclude=int(cubic_exclude),
            extrapolation_value=float(extrapolation_value),
            out_dtype=out_dtype or "",
        )
    return _resize(
        2,
        data,
        size,
        roi,
        layout,
        method,
        coordinate_transformation_mode,
        rounding_method,
        cubic_alpha,
        cubic_exclude,
        extrapolation_value,
        out_dtype,
    )


def resize3d(
    data: RelayExpr,
    size: Any,
    roi: Sequence[float] | None = None,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """Volumes at another size; arguments as in :func:`resize2d`."""
    return _resize(
        3,
        data,
        size,
        roi,
        layout,
        method,
        coordinate_transformation_mode,
        rounding_method,
        cubic_alpha,
        cubic_exclude,
        extrapolation_value,
        out_dtype,
    )


define(
    "image.crop_and_resize",
    lambda x, boxes, indices, crop_size, layout, method, extrapolation_value, out_dtype: (
        topi.image.crop_and_resize(
            x,
            boxes,
            indices,
            [int(v) for v in crop_size],
            layout,
            method,
            extrapolation_value,
            out_dtype or None,
        )
    ),
    OpPattern.INJECTIVE,
    settings={
        "crop_size": REQUIRED,
        "layout": "NCHW",
        "method": "bilinear",
        "extrapolation_value": 0.0,
        "out_dtype": "",
    },
    num_inputs=3,
)
define(
    "image.affine_grid",
    lambda x, target_shape: topi.image.affine_grid(x, list(target_shape)),
    OpPattern.INJECTIVE,
    settings={"target_shape": REQUIRED},
    num_inputs=1,
)
define(
    "image.grid_sample",
    topi.image.grid_sample,
    OpPattern.INJECTIVE,
    num_inputs=2,
    settings={
        "method": "bilinear",
        "layout": "NCHW",
        "padding_mode": "zeros",
        "align_corners": True,
    },
)


def crop_and_resize(
    data: RelayExpr,
    boxes: RelayExpr,
    box_indices: RelayExpr,
    crop_size: Sequence[int],
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    out_dtype: str | None = None,
) -> Call:
    """Boxes cut out of images and resized."""
    return make(
        "image.crop_and_resize",
        [data, boxes, box_indices],
        crop_size=list(crop_size),
        layout=layout,
        method=method,
        extrapolation_value=float(extrapolation_value),
        out_dtype=out_dtype or "",
    )


def affine_grid(data: RelayExpr, target_shape: Sequence[int]) -> Call:
    """Sampling points of affine transformations."""
    return make("image.affine_grid", [data], target_shape=list(target_shape))


def grid_sample(
    data: RelayExpr,
    grid: RelayExpr,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Call:
    """Values of images at sampling points."""
    return make(
        "image.grid_sample",
        [data, grid],
        method=method,
        layout=layout,
        padding_mode=padding_mode,
        align_corners=align_corners,
    )


def _dilation2d(
    x: Any,
    weight: Any,
    strides: Any,
    padding: Any,
    dilations: Any,
    data_layout: str,
    kernel_layout: str,
    out_dtype: str,
) -> Any:
    known = {
        ("NCHW", "IHW"): topi.image.dilation2d_nchw,
        ("NHWC", "HWI"): topi.image.dilation2d_nhwc,
    }
    if (data_layout, kernel_layout) not in known:
        raise error.ValueError(
            "relay.image.dilation2d: layouts are NCHW with IHW, or NHWC with HWI, got "
            f"{data_layout} with {kernel_layout}"
        )
    run = known[data_layout, kernel_layout]
    return run(x, weight, list(strides), list(padding), list(dilations), out_dtype or None)


define(
    "image.dilation2d",
    _dilation2d,
    OpPattern.INJECTIVE,
    settings={
        "strides": (1, 1),
        "padding": (0, 0),
        "dilations": (1, 1),
        "data_layout": "NCHW",
        "kernel_layout": "IHW",
        "out_dtype": "",
    },
    num_inputs=2,
)


def dilation2d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilations: Any = (1, 1),
    data_layout: str = "NCHW",
    kernel_layout: str = "IHW",
    out_dtype: str = "",
) -> Call:
    """The largest sum of a window and a filter, by channel: greyscale dilation.

    Parameters
    ----------
    data_layout, kernel_layout : "NCHW" and "IHW", or "NHWC" and "HWI".
    """
    return make(
        "image.dilation2d",
        [data, weight],
        strides=sizes_of(strides, 2),
        padding=pads_of("relay.image.dilation2d", padding, 2),
        dilations=sizes_of(dilations, 2),
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_dtype=out_dtype,
    )
