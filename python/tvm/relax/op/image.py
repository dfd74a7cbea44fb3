"""Operators on images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import RelayExpr

from ..expr import Call, PrimValue, ShapeExpr
from ..struct_info import TensorStructInfo
from .base import make_call
from .nn.layout import layout_of
from .registry import register_rule
from .rules import known_shape, opaque_tensor, setting, shape_argument, tensor, with_shape

__all__ = ["resize2d"]


def resize2d(
    data: RelayExpr,
    size: RelayExpr | int | Sequence[Any],
    roi: float | Sequence[float] | None = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "round",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """Images of another height and width.

    Parameters
    ----------
    size : (height, width) of the result, or one for both.
    method : "nearest_neighbor", "linear" or "cubic".
    coordinate_transformation_mode : how places of the result stand for places of the image, in the
        terms of ONNX' Resize.
    """
    if isinstance(size, (int, PrimValue)):
        size = (size, size)
    if not isinstance(size, RelayExpr):
        size = ShapeExpr([_extent(v) for v in size])
    corners = [0.0] * 4 if roi is None else [roi] * 4 if isinstance(roi, float) else list(roi)
    return make_call(
        "image.resize2d",
        data,
        size,
        roi=[float(v) for v in corners],
        layout=layout,
        method=method,
        coordinate_transformation_mode=coordinate_transformation_mode,
        rounding_method=rounding_method,
        cubic_alpha=float(cubic_alpha),
        cubic_exclude=cubic_exclude,
        extrapolation_value=float(extrapolation_value),
        out_dtype=out_dtype or None,
    )


def _extent(value: Any) -> Any:
    value = value.value if isinstance(value, PrimValue) else value
    return tir.const(value, "int64") if isinstance(value, int) else value


def _resize2d(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    size = shape_argument(call, 1)
    layout = layout_of(call, "layout", setting(call, "layout", "NCHW"), "NCHW")
    dtype = setting(call, "out_dtype") or str(info.dtype)
    if size.ndim != 2:
        raise error.ValueError(
            f"relax.image.resize2d: the size has {size.ndim} extents instead of 2"
        )
    layout.check_rank(call, info)
    shape = known_shape(info)
    if shape is None or size.values is None:
        return opaque_tensor(dtype, info.ndim, info.vdevice)
    planar = layout.forward(shape)
    return with_shape(layout.backward([*planar[:2], *size.values]), dtype, info.vdevice)


register_rule("image.resize2d", _resize2d)
