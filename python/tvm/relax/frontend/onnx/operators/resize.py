"""Resizing by interpolation along each dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..errors import OnnxError
from .registry import Node, operator
from .shapes import normalized

__all__: list[str] = []


@operator("Upsample")
def _upsample(n: Node, x: torch.Tensor, scales: torch.Tensor | None = None) -> torch.Tensor:
    given = n.array(1)
    factors = [float(s) for s in (n.attr("scales") if given is None else given)]
    sizes = [math.floor(extent * factor) for extent, factor in zip(x.shape, factors)]
    for axis in range(x.dim()):
        settings = _Settings(n.attr("mode", "nearest"), "asymmetric", "floor", -0.75, False, False)
        x = _resized(x, axis, sizes[axis], factors[axis], settings, None)
    return x


class _Settings:
    """How positions and weights are computed, for all axes alike."""

    def __init__(
        self, mode: str, where: str, rounding: str, cubic: float, outside: bool, antialias: bool
    ) -> None:
        self.mode, self.where, self.rounding = mode, where, rounding
        self.cubic, self.exclude_outside, self.antialias = cubic, outside, antialias


@operator("Resize")
def _resize(n: Node, x: torch.Tensor, *_: torch.Tensor | None) -> torch.Tensor:
    axes = n.attr("axes")
    axes = list(range(x.dim())) if axes is None else [normalized(a, x.dim()) for a in axes]
    given, sizes = n.array(2), n.ints(3)
    regions = n.array(1)
    if sizes:
        factors = [size / x.shape[axis] for size, axis in zip(sizes, axes)]
        policy = n.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factor = min(factors) if policy == "not_larger" else max(factors)
            factors = [factor] * len(axes)
            sizes = [math.floor(factor * x.shape[axis] + 0.5) for axis in axes]
    elif given is not None and given.size:
        factors = [float(factor) for factor in given]
        sizes = [math.floor(x.shape[axis] * factor) for axis, factor in zip(axes, factors)]
    else:
        raise OnnxError("Resize without sizes and scales")
    if any(size < 0 or size > 1 << 24 for size in sizes):
        raise OnnxError(f"Resize to the impossible sizes {sizes}")
    settings = _Settings(
        n.attr("mode", "nearest"),
        n.attr("coordinate_transformation_mode", "half_pixel"),
        n.attr("nearest_mode", "round_prefer_floor"),
        n.attr("cubic_coeff_a", -0.75),
        bool(n.attr("exclude_outside", 0)),
        bool(n.attr("antialias", 0)),
    )
    outside = None
    original = x
    for i, axis in enumerate(axes):
        region = None
        if settings.where == "tf_crop_and_resize":
            if regions is None:
                raise OnnxError("Resize of a region without roi")
            region = (float(regions[i]), float(regions[len(axes) + i]))
        if sizes[i] == x.shape[axis] and factors[i] == 1.0 and region is None:
            continue
        x = _resized(x, axis, sizes[i], factors[i], settings, region)
        if region is not None:
            positions = _positions(original.shape[axis], sizes[i], factors[i], settings, region)
            bad = (positions < 0) | (positions > original.shape[axis] - 1)
            shape = [1] * x.dim()
            shape[axis] = -1
            part = torch.from_numpy(bad).reshape(shape)
            outside = part if outside is None else outside | part
    if outside is not None:
        value = torch.full((), n.attr("extrapolation_value", 0.0), dtype=x.dtype)
        x = torch.where(outside, value, x)
    return x


def _positions(
    extent: int, size: int, factor: float, s: _Settings, region: tuple[float, float] | None
) -> np.ndarray[Any, Any]:
    """Where in the input each element of the output lies."""
    at = np.arange(size, dtype=np.float64)
    if s.where == "asymmetric":
        return at / factor
    if s.where == "align_corners":
        # Of the size that the factor stands for, which need not be whole.
        whole = factor * extent
        return at * ((extent - 1) / (whole - 1)) if whole > 1 else np.zeros(size)
    if s.where == "pytorch_half_pixel":
        return (at + 0.5) / factor - 0.5 if size > 1 else np.zeros(size)
    if s.where == "half_pixel_symmetric":
        # The image that the factor stands for may be larger than the one that is made.
        adjustment = size / (factor * extent)
        return extent / 2 * (1 - adjustment) + (at + 0.5) / factor - 0.5
    if s.where == "tf_crop_and_resize" and region is not None:
        start, end = region
        if size > 1:
            return start * (extent - 1) + at * (end - start) * (extent - 1) / (size - 1)
        return np.full(size, 0.5 * (start + end) * (extent - 1))
    if s.where != "half_pixel":
        raise OnnxError(f"unknown coordinates '{s.where}'")
    return (at + 0.5) / factor - 0.5


def _resized(
    x: torch.Tensor,
    axis: int,
    size: int,
    factor: float,
    s: _Settings,
    region: tuple[float, float] | None,
) -> torch.Tensor:
    extent = x.shape[axis]
    positions = _positions(extent, size, factor, s, region)
    if s.mode == "nearest":
        chosen = _nearest(positions, s.rounding).clip(0, extent - 1).astype(np.int64)
        return torch.index_select(x, axis, torch.from_numpy(chosen))
    matrix = _weights(positions, extent, factor, s)
    weights = torch.from_numpy(matrix).to(x.dtype if x.dtype.is_floating_point else torch.float32)
    moved = torch.movedim(x.to(weights.dtype), axis, -1)
    return torch.movedim(torch.matmul(moved, weights.t()), -1, axis).to(x.dtype)


def _nearest(positions: np.ndarray[Any, Any], rounding: str) -> np.ndarray[Any, Any]:
    if rounding == "floor":
        return np.floor(positions)
    if rounding == "ceil":
        return np.ceil(positions)
    if rounding == "round_prefer_ceil":
        return np.floor(positions + 0.5)
    return np.ceil(positions - 0.5)


def _weights(
    positions: np.ndarray[Any, Any], extent: int, factor: float, s: _Settings
) -> np.ndarray[Any, Any]:
    """(output, input) matrix of interpolation."""
    stretch = max(1.0, 1.0 / factor) if s.antialias else 1.0
    reach = math.ceil((2 if s.mode == "cubic" else 1) * stretch)
    matrix = np.zeros((len(positions), extent))
    for row, position in enumerate(positions):
        first = math.floor(position) - reach + 1
        taps = np.arange(first, first + 2 * reach)
        weights = _kernel((taps - position) / stretch, s)
        if s.exclude_outside:
            weights = np.where((taps >= 0) & (taps < extent), weights, 0.0)
        total = weights.sum()
        if total != 0 and (s.exclude_outside or s.antialias):
            weights = weights / total
        np.add.at(matrix[row], taps.clip(0, extent - 1), weights)
    return matrix


def _kernel(distance: Sequence[float] | np.ndarray[Any, Any], s: _Settings) -> np.ndarray[Any, Any]:
    d = np.abs(distance)
    if s.mode == "linear":
        return np.clip(1 - d, 0, None)
    if s.mode != "cubic":
        raise OnnxError(f"unknown interpolation '{s.mode}'")
    # Keys' cubic convolution, IEEE Transactions on Acoustics, 29(6), 1981.
    a = s.cubic
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
