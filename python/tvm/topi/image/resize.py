"""Images of another size, as ONNX's Resize and PyTorch's interpolate define them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import (
    Extent,
    as_int,
    as_sizes,
    equal_const_int,
    extents_of,
    get_const_tuple,
    is_constant,
)
from .interpolation import Taps, clamp, cubic_taps, interpolate, linear_taps

__all__ = ["crop_and_resize", "resize1d", "resize2d", "resize3d"]

_FLOAT = "float32"


def _real(value: Any) -> Any:
    return value.astype(_FLOAT) if isinstance(value, tir.PrimExpr) else tir.const(value, _FLOAT)


def _ratio(a: Extent, b: Extent) -> Any:
    """a / b, rounded once where both are known."""
    if is_constant(a) and is_constant(b):
        return tir.const(as_int(a) / as_int(b), _FLOAT)
    return _real(a) / _real(b)


def _aligned(x: Any, n_in: Extent, n_out: Extent) -> Any:
    if equal_const_int(n_out, 1):
        return tir.const(0.0, _FLOAT)
    return _real(x) * _ratio(n_in - 1, n_out - 1)


def _half_pixel(x: Any, n_in: Extent, n_out: Extent) -> Any:
    half = tir.const(0.5, _FLOAT)
    return (_real(x) + half) * _ratio(n_in, n_out) - half


def _torch_half_pixel(x: Any, n_in: Extent, n_out: Extent) -> Any:
    if equal_const_int(n_out, 1):
        return tir.const(0.0, _FLOAT)
    return _half_pixel(x, n_in, n_out)


# Position in the image of the centre of a cell of the result.
_POSITIONS: dict[str, Callable[[Any, Extent, Extent], Any]] = {
    "align_corners": _aligned,
    "asymmetric": lambda x, n_in, n_out: _real(x) * _ratio(n_in, n_out),
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": _torch_half_pixel,
    "tf_half_pixel_for_nn": lambda x, n_in, n_out: (
        (_real(x) + tir.const(0.5, _FLOAT)) * _ratio(n_in, n_out)
    ),
}
# Positions that are exact in real numbers come out a little off: what is this near to a whole
# number, or to a half, counts as one.
_SLACK = 1e-5


def _rounded(position: Any, how: str) -> Any:
    half, slack = tir.const(0.5, _FLOAT), tir.const(_SLACK, _FLOAT)
    if how == "floor":
        return tir.floor(position + slack)
    if how == "ceil":
        return tir.ceil(position - slack)
    if how == "round_prefer_floor":
        return tir.ceil(position - half - slack)
    return tir.floor(position + half + slack)


_ROUNDINGS = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_METHODS = ("nearest_neighbor", "linear", "cubic")


def _check(name: str, what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(
            f"topi.image.{name}: {what} is one of {', '.join(k for k in known if k)}; got {value!r}"
        )


def _resize(
    rank: int,
    data: te.Tensor,
    roi: Sequence[float] | None,
    size: Any,
    layout: str,
    method: str,
    transformation: str,
    rounding: str,
    alpha: float,
    exclude: bool,
    extrapolation_value: float,
    out_dtype: str | None,
) -> te.Tensor:
    name = f"resize{rank}d"
    letters = "DHW"[3 - rank :]
    # Blocks of N and C ("NCHW16c") are dimensions of their own, which stay as they are.
    given, layout = layout, re.sub(r"\d+", "", layout)
    at = extents_of(data, layout, f"image.{name}")
    if sorted(layout.replace("c", "").replace("n", "")) != sorted("NC" + letters):
        raise ValueError(
            f"topi.image.{name}: layout has N, C and {letters}, and blocks of N and C only, got "
            f"{given!r}"
        )
    crops = transformation == "tf_crop_and_resize"
    method = "linear" if method in ("bilinear", "trilinear") else method
    _check(name, "method", method, _METHODS)
    _check(name, "rounding_method", rounding, _ROUNDINGS)
    _check(
        name,
        "coordinate_transformation_mode",
        transformation,
        (*_POSITIONS, "tf_crop_and_resize"),
    )
    if crops and (roi is None or len(roi) != 2 * rank):
        raise ValueError(
            f"topi.image.{name}: tf_crop_and_resize needs a roi of {rank} starts and {rank} ends "
            f"in [0, 1], got {roi}"
        )
    if not rounding:
        rounding = "round" if transformation == "align_corners" else "floor"
    sizes = dict(zip(letters, as_sizes(size, rank)))

    def position(d: str, x: Any) -> Any:
        n_in, n_out = at[d], sizes[d]
        if not crops:
            return _POSITIONS[transformation](x, n_in, n_out)
        start, end = (float(roi[letters.index(d) + k]) for k in (0, rank))  # type: ignore[index]
        last = _real(n_in - 1)
        if equal_const_int(n_out, 1):
            return last * tir.const((start + end) / 2, _FLOAT)
        step = last * tir.const(end - start, _FLOAT) / _real(n_out - 1)
        return last * tir.const(start, _FLOAT) + _real(x) * step

    def taps(d: str, x: Any, where: Any) -> Taps:
        if method == "linear":
            return linear_taps(where)
        if method == "cubic":
            return cubic_taps(where, alpha, at[d] if exclude else None)
        if transformation == "asymmetric" and rounding == "floor":
            # Whole numbers only, so that no rounding error moves a border.
            index = x * at[d] // sizes[d]
        else:
            index = _rounded(where, rounding).astype("int32")
        return [(index, None)]

    dtype = out_dtype or data.dtype
    inner = "float64" if data.dtype == "float64" else _FLOAT

    def body(*indices: Any) -> Any:
        i = dict(zip(layout, indices))
        where = {d: position(d, i[d]) for d in letters}

        def read(spatial: Sequence[Any]) -> Any:
            place = {**i, **{d: clamp(index, at[d]) for d, index in zip(letters, spatial)}}
            return data(*(place[d] for d in layout))

        every = [taps(d, i[d], where[d]) for d in letters]
        if method == "nearest_neighbor":
            value = read([tap[0][0] for tap in every]).astype(dtype)
        else:
            value = interpolate(every, read, inner)
            if not dtype.startswith(("float", "bfloat")):
                value = tir.nearbyint(value)
            value = value.astype(dtype)
        if not crops:
            return value
        inside = [
            condition
            for d in letters
            for condition in (where[d] >= 0.0, where[d] <= _real(at[d] - 1))
        ]
        return tir.if_then_else(tir.all(*inside), value, tir.const(extrapolation_value, dtype))

    return te.compute(
        [{**at, **sizes}[d] for d in layout], body, name=name, tag=f"{tag.INJECTIVE},{name}"
    )


def resize1d(
    data: te.Tensor,
    roi: Sequence[float] | None,
    size: Any,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: bool = False,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> te.Tensor:
    """data with another width; arguments as in :func:`resize2d`."""
    return _resize(
        1, data, roi, size, layout, method, coordinate_transformation_mode, rounding_method,
        bicubic_alpha, bool(bicubic_exclude), extrapolation_value, out_dtype,
    )  # fmt: skip


def resize2d(
    data: te.Tensor,
    roi: Sequence[float] | None,
    size: Any,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: bool = False,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> te.Tensor:
    """data with another height and width.

    Parameters
    ----------
    roi : for tf_crop_and_resize, the part of the image to take: starts, then ends, in [0, 1].
    size : (height, width) of the result.
    method : "nearest_neighbor", "linear" or "cubic".
    coordinate_transformation_mode : where a cell of the result lies in the image: "half_pixel",
        "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn" or
        "tf_crop_and_resize", as ONNX defines them.
    rounding_method : for nearest neighbours: "round" (halves up), "round_prefer_floor",
        "round_prefer_ceil", "floor" or "ceil"; by default "round" for align_corners, else "floor".
    bicubic_alpha, bicubic_exclude : parameter of the cubic, and whether neighbours outside of the
        image weigh nothing, rather than repeat its border.
    extrapolation_value : result outside of the image, for tf_crop_and_resize.
    out_dtype : type of the result, the data's by default; whole numbers are rounded.
    """
    return _resize(
        2, data, roi, size, layout, method, coordinate_transformation_mode, rounding_method,
        bicubic_alpha, bool(bicubic_exclude), extrapolation_value, out_dtype,
    )  # fmt: skip


def resize3d(
    data: te.Tensor,
    roi: Sequence[float] | None,
    size: Any,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: bool = False,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> te.Tensor:
    """data with another depth, height and width; arguments as in :func:`resize2d`."""
    return _resize(
        3, data, roi, size, layout, method, coordinate_transformation_mode, rounding_method,
        bicubic_alpha, bool(bicubic_exclude), extrapolation_value, out_dtype,
    )  # fmt: skip


def crop_and_resize(
    data: te.Tensor,
    boxes: te.Tensor,
    box_indices: te.Tensor,
    crop_size: Sequence[int],
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Parts of images, each resized to one size, as TensorFlow defines it.

    Parameters
    ----------
    boxes : float32 (count, 4): top, left, bottom, right in [0, 1]; an end below its start flips.
    box_indices : integers (count,): the image of each box.
    crop_size : (height, width) of the result.
    method : "bilinear" or "nearest_neighbor".
    extrapolation_value : result outside of the image.
    """
    _check("crop_and_resize", "method", method, ("bilinear", "nearest_neighbor"))
    at = extents_of(data, layout, "image.crop_and_resize")
    count = get_const_tuple(boxes.shape)[0]
    sizes = dict(zip("HW", as_sizes(crop_size, 2)))
    dtype = out_dtype or data.dtype

    def body(*indices: Any) -> Any:
        i = dict(zip(layout, indices))
        box = i["N"]
        where = {}
        for k, d in enumerate("HW"):
            start, end = boxes(box, k), boxes(box, k + 2)
            last = _real(at[d] - 1)
            if equal_const_int(sizes[d], 1):
                where[d] = (start + end) * tir.const(0.5, _FLOAT) * last
            else:
                step = (end - start) * last / _real(sizes[d] - 1)
                where[d] = start * last + _real(i[d]) * step

        def read(spatial: Sequence[Any]) -> Any:
            y, x = (clamp(index, at[d]) for d, index in zip("HW", spatial))
            place = {"N": box_indices(box).astype("int32"), "C": i["C"], "H": y, "W": x}
            return data(*(place[d] for d in layout))

        if method == "bilinear":
            value = interpolate([linear_taps(where[d]) for d in "HW"], read, _FLOAT)
        else:
            value = read([tir.round(where[d]).astype("int32") for d in "HW"])
        inside = [
            condition for d in "HW" for condition in (where[d] >= 0.0, where[d] <= _real(at[d] - 1))
        ]
        return tir.if_then_else(
            tir.all(*inside), value.astype(dtype), tir.const(extrapolation_value, dtype)
        )

    out = {"N": count, "C": at["C"], **sizes}
    return te.compute([out[d] for d in layout], body, name="crop_and_resize", tag=tag.INJECTIVE)
