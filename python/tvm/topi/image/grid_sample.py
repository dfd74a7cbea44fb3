"""Images sampled at positions that a tensor holds, as PyTorch defines it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import Extent, get_const_tuple
from .interpolation import clamp, cubic_taps, interpolate, linear_taps

__all__ = ["affine_grid", "grid_sample"]

# What PyTorch uses for its cubic samples.
_CUBIC_ALPHA = -0.75


def _real(value: Any) -> Any:
    return (
        value.astype("float32") if isinstance(value, tir.PrimExpr) else tir.const(value, "float32")
    )


def affine_grid(data: te.Tensor, target_shape: Sequence[Extent]) -> te.Tensor:
    """Positions of the cells of an image under an affine map, corners at -1 and 1.

    Parameters
    ----------
    data : (batch, 2, 3) maps from (x, y, 1) in the result to (x, y) in the source.
    target_shape : (height, width).

    Returns
    -------
    (batch, 2, height, width): x, then y, for :func:`grid_sample`.
    """
    batch, two, three = get_const_tuple(data.shape)
    if (two, three) != (2, 3):
        raise ValueError(
            f"topi.image.affine_grid: data is (batch, 2, 3), got {(batch, two, three)}"
        )
    height, width = get_const_tuple(target_shape)

    def body(n: Any, d: Any, y: Any, x: Any) -> Any:
        row, column = (
            _real(index) * (tir.const(2.0, "float32") / _real(extent - 1))
            - tir.const(1.0, "float32")
            for index, extent in ((y, height), (x, width))
        )
        return data(n, d, 0) * column + data(n, d, 1) * row + data(n, d, 2)

    return te.compute((batch, 2, height, width), body, name="affine_grid", tag=tag.INJECTIVE)


def _mirrored(position: Any, low: Any, high: Any) -> Any:
    """The position reflected at the limits until it is between them."""
    span = high - low
    zero, two = tir.const(0.0, "float32"), tir.const(2.0, "float32")
    # A span of nothing has one position only; dividing by it must not happen.
    period = tir.Select(span > zero, two * span, tir.const(1.0, "float32"))
    offset = tir.abs(position - low)
    offset = offset - tir.floor(offset / period) * period
    return tir.Select(span > zero, low + tir.min(offset, period - offset), low)


def grid_sample(
    data: te.Tensor,
    grid: te.Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> te.Tensor:
    """data at the positions of a grid, in which the image reaches from -1 to 1.

    Parameters
    ----------
    data : in ``layout`` NCHW or NCDHW.
    grid : (batch, 2, out height, out width) with x, then y, or (batch, 3, out depth, out height,
        out width) with x, y, z.
    method : "nearest", "bilinear", or for two dimensions "bicubic".
    padding_mode : what lies outside of the image: "zeros", its "border", or its "reflection".
    align_corners : whether -1 and 1 are the centres of the outermost cells, or their outer edges.
    """
    rank = {"NCHW": 2, "NCDHW": 3}.get(layout)
    methods = ("nearest", "bilinear", "bicubic")[: 3 if rank == 2 else 2]
    if rank is None or method not in methods:
        raise ValueError(
            "topi.image.grid_sample: knows NCHW with nearest, bilinear and bicubic, NCDHW with "
            f"nearest and bilinear; got {layout} with {method}"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "topi.image.grid_sample: padding_mode is 'zeros', 'border' or 'reflection', got "
            f"{padding_mode!r}"
        )
    shape, sites = get_const_tuple(data.shape), get_const_tuple(grid.shape)
    extents = shape[2:]
    one, half, two = (tir.const(v, "float32") for v in (1.0, 0.5, 2.0))

    def position(value: Any, extent: Extent) -> Any:
        """Coordinate in [-1, 1] as a position among the cells."""
        if align_corners:
            return (value + one) * half * _real(extent - 1)
        return ((value + one) * _real(extent) - one) / two

    def into_image(where: Any, extent: Extent) -> Any:
        """A position outside of the image moved as the padding mode says."""
        last = _real(extent - 1)
        if padding_mode == "reflection":
            edge = tir.const(0.0, "float32") if align_corners else half
            where = _mirrored(where, -edge, last + edge)
        if padding_mode != "zeros":
            where = tir.max(tir.min(where, last), tir.const(0.0, "float32"))
        return where

    def body(n: Any, c: Any, *cell: Any) -> Any:
        # The grid's numbers are x, y(, z): the last dimension first.
        where = [
            position(grid(n, rank - 1 - k, *cell).astype("float32"), extents[k])
            for k in range(rank)
        ]
        if method != "bicubic":
            # The cubic's neighbours are moved one by one instead.
            where = [into_image(p, extent) for p, extent in zip(where, extents)]

        def read(spatial: Sequence[Any]) -> Any:
            if padding_mode == "zeros":
                inside = [k for i, n in zip(spatial, extents) for k in (i >= 0, i < n)]
                places = [clamp(i, extent) for i, extent in zip(spatial, extents)]
                # The places are inside of the image whatever the positions, so that they are read
                # without a branch.
                return tir.Select(tir.all(*inside), data(n, c, *places), tir.const(0, data.dtype))
            if method == "bicubic":
                spatial = [
                    tir.nearbyint(into_image(i.astype("float32"), extent)).astype("int32")
                    for i, extent in zip(spatial, extents)
                ]
            return data(n, c, *(clamp(i, extent) for i, extent in zip(spatial, extents)))

        if method == "nearest":
            return read([tir.nearbyint(p).astype("int32") for p in where])
        taps = [
            linear_taps(p) if method == "bilinear" else cubic_taps(p, _CUBIC_ALPHA) for p in where
        ]
        return interpolate(taps, read, "float32").astype(data.dtype)

    return te.compute((*shape[:2], *sites[2:]), body, name="grid_sample", tag=tag.INJECTIVE)
