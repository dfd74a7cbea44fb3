"""Images several times as large."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from .. import image
from ..utils import as_int, extents_of, is_constant, simplify

__all__ = ["upsampling", "upsampling3d"]


def _scaled(extent: Any, scale: float) -> Any:
    """extent * scale, rounded."""
    if is_constant(extent):
        return round(as_int(extent) * scale)
    if scale == int(scale):
        return simplify(extent * int(scale))
    return tir.round(extent.astype("float32") * tir.const(scale, "float32")).astype("int32")


def _methods(method: str) -> str:
    return {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(method, method)


def upsampling(
    data: te.Tensor,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> te.Tensor:
    """data with its height and width scaled.

    Parameters
    ----------
    method : "nearest_neighbor", "bilinear" or "bicubic".
    align_corners : whether the corners of both images coincide; else positions are proportional.
    """
    at = extents_of(data, layout, "upsampling")
    size = (_scaled(at["H"], scale_h), _scaled(at["W"], scale_w))
    mode = "align_corners" if align_corners else "asymmetric"
    return image.resize2d(data, None, size, layout, _methods(method), mode)


def upsampling3d(
    data: te.Tensor,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> te.Tensor:
    """data with its depth, height and width scaled; see :func:`topi.image.resize3d`."""
    at = extents_of(data, layout, "upsampling3d")
    size = tuple(_scaled(at[d], s) for d, s in zip("DHW", (scale_d, scale_h, scale_w)))
    return image.resize3d(
        data, None, size, layout, _methods(method), coordinate_transformation_mode
    )
