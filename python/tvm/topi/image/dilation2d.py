"""Morphological dilation: the largest of a window's sums with a structuring function."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ..utils import as_pads, as_pair, extents_of, simplify

__all__ = ["dilation2d_nchw", "dilation2d_nhwc"]


def _dilation2d(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any,
    padding: Any,
    dilations: Any,
    out_dtype: str | None,
    layout: str,
) -> te.Tensor:
    where = f"dilation2d_{layout.lower()}"
    at = extents_of(data, layout, where)
    tap = extents_of(weight, layout.replace("N", ""), where)
    if tap["C"] != at["C"]:
        raise ValueError(
            f"topi.image.{where}: data of {at['C']} channels with a filter of {tap['C']}"
        )
    (stride_h, stride_w), (step_h, step_w) = as_pair(stride), as_pair(dilations)
    window = [simplify((tap["H"] - 1) * step_h + 1), simplify((tap["W"] - 1) * step_w + 1)]
    top, left, bottom, right = as_pads(padding, 2, window)
    out = {
        "N": at["N"],
        "C": at["C"],
        "H": simplify((at["H"] + top + bottom - window[0]) // stride_h + 1),
        "W": simplify((at["W"] + left + right - window[1]) // stride_w + 1),
    }
    r = te.reduce_axis((0, tap["H"]), name="r")
    s = te.reduce_axis((0, tap["W"]), name="s")
    dtype = out_dtype or data.dtype

    def largest(*indices: Any) -> Any:
        i = dict(zip(layout, indices))
        row = i["H"] * stride_h + r * step_h - top
        column = i["W"] * stride_w + s * step_w - left
        place = {**i, "H": row, "W": column}
        inside = tir.all(row >= 0, row < at["H"], column >= 0, column < at["W"])
        taps = {"C": i["C"], "H": r, "W": s}
        element = data(*(place[d] for d in layout)).astype(dtype)
        value = tir.if_then_else(inside, element, tir.const(0, dtype))
        shift = weight(*(taps[d] for d in layout if d != "N")).astype(dtype)
        return te.max(value + shift, axis=[r, s])

    return te.compute([out[d] for d in layout], largest, name=f"T_{where}", tag=where)


def dilation2d_nchw(
    input: te.Tensor,
    filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilations: Any,
    out_dtype: str | None = None,
) -> te.Tensor:
    """The largest sum of a window of NCHW data and a filter, per channel. Borders are zeros.

    Parameters
    ----------
    filter : (channels, height, width).
    stride, dilations : one number, or those of height and width.
    padding : sizes as :func:`tvm.topi.utils.as_pads` takes them, "SAME" or "VALID".
    out_dtype : of the sums and the result; by default that of the data.

    Raises
    ------
    ValueError : the filter has other channels than the data.
    """
    return _dilation2d(input, filter, stride, padding, dilations, out_dtype, "NCHW")


def dilation2d_nhwc(
    input: te.Tensor,
    filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilations: Any,
    out_dtype: str | None = None,
) -> te.Tensor:
    """:func:`dilation2d_nchw` of NHWC data with a filter of (height, width, channels)."""
    return _dilation2d(input, filter, stride, padding, dilations, out_dtype, "NHWC")
