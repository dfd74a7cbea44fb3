"""Resizing by interpolation along each dimension."""

from __future__ import annotations

import fractions
import math
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
    sizes = [_scaled(extent, factor) for extent, factor in zip(x.shape, factors)]
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
        sizes = [_scaled(x.shape[axis], factor) for axis, factor in zip(axes, factors)]
    else:
        raise OnnxError("Resize without sizes and scales")
    if any(not _is_open(size) and (size < 0 or size > 1 << 24) for size in sizes):
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
        if region is None and _is_open(sizes[i], factors[i]) and sizes[i] is x.shape[axis]:
            continue
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


def _is_open(*numbers: Any) -> bool:
    return any(isinstance(number, torch.SymInt | torch.SymFloat) for number in numbers)


def _scaled(extent: int, factor: float) -> int:
    """The size that a factor gives, rounded down."""
    if not _is_open(extent):
        return math.floor(extent * factor)
    ratio = fractions.Fraction(factor).limit_denominator(1 << 10)
    if np.float32(float(ratio)) != np.float32(factor):
        raise OnnxError(
            f"Resize of an open size by {factor}, which is no ratio of small whole numbers; give "
            "the size by shape_dict, or name the new sizes"
        )
    return extent * ratio.numerator // ratio.denominator


def _open_positions(extent: int, size: int, factor: float, s: _Settings) -> torch.Tensor:
    """Where in the input each element of the output lies, of sizes that are open."""
    kind = torch.float64
    at = torch.arange(size, dtype=kind)
    last = torch.scalar_tensor(extent, dtype=kind)
    count = torch.scalar_tensor(size, dtype=kind)
    # A factor that follows from the sizes is their ratio.
    scale = count / last if _is_open(factor) else torch.scalar_tensor(factor, dtype=kind)
    if s.where == "asymmetric":
        return at / scale
    if s.where == "align_corners":
        # Where there is one element, it lies at 0.
        return at * (last - 1) / torch.clamp(scale * last - 1, min=1e-6)
    positions = (at + 0.5) / scale - 0.5
    if s.where == "pytorch_half_pixel":
        return torch.where(count > 1, positions, torch.zeros_like(positions))
    if s.where == "half_pixel_symmetric":
        return last / 2 * (1 - count / (scale * last)) + positions
    if s.where != "half_pixel":
        raise OnnxError(f"coordinates '{s.where}' of a size that is open; give it by shape_dict")
    return positions


def _resized_open(
    x: torch.Tensor, axis: int, size: int, factor: float, s: _Settings
) -> torch.Tensor:
    """As :func:`_resized`: elements that positions fall between, times their weights."""
    extent = x.shape[axis]
    last = torch.scalar_tensor(extent, dtype=torch.int64) - 1
    positions = _open_positions(extent, size, factor, s)

    def elements(places: torch.Tensor) -> torch.Tensor:
        inside = torch.minimum(torch.clamp(places.to(torch.int64), min=0), last)
        return torch.index_select(x, axis, inside)

    if s.mode == "nearest":
        return elements(_nearest(positions, s.rounding))
    if s.antialias and _is_open(factor):
        raise OnnxError("Resize with antialias by a ratio of open sizes; give them by shape_dict")
    stretch = max(1.0, 1.0 / factor) if s.antialias else 1.0
    reach = math.ceil((2 if s.mode == "cubic" else 1) * stretch)
    first = torch.floor(positions) - (reach - 1)
    taps = [first + k for k in range(2 * reach)]
    weights = [_kernel((tap - positions) / stretch, s) for tap in taps]
    if s.exclude_outside:
        weights = [w * ((tap >= 0) & (tap <= last)) for w, tap in zip(weights, taps)]
    if s.exclude_outside or s.antialias:
        total = sum(weights[1:], weights[0])
        weights = [w / total for w in weights]
    dtype = x.dtype if x.dtype.is_floating_point else torch.float32
    shape = [1] * x.dim()
    shape[axis] = -1
    parts = [elements(tap).to(dtype) * w.to(dtype).reshape(shape) for tap, w in zip(taps, weights)]
    return sum(parts[1:], parts[0]).to(x.dtype)


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
    if _is_open(extent, size):
        return _resized_open(x, axis, size, factor, s)
    positions = _positions(extent, size, factor, s, region)
    if s.mode == "nearest":
        chosen = _nearest(positions, s.rounding).clip(0, extent - 1).astype(np.int64)
        return torch.index_select(x, axis, torch.from_numpy(chosen))
    matrix = _weights(positions, extent, factor, s)
    weights = torch.from_numpy(matrix).to(x.dtype if x.dtype.is_floating_point else torch.float32)
    moved = torch.movedim(x.to(weights.dtype), axis, -1)
    return torch.movedim(torch.matmul(moved, weights.t()), -1, axis).to(x.dtype)


def _nearest(positions: Any, rounding: str) -> Any:
    library = torch if isinstance(positions, torch.Tensor) else np
    if rounding == "floor":
        return library.floor(positions)
    if rounding == "ceil":
        return library.ceil(positions)
    if rounding == "round_prefer_ceil":
        return library.floor(positions + 0.5)
    return library.ceil(positions - 0.5)


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


def _kernel(distance: Any, s: _Settings) -> Any:
    library = torch if isinstance(distance, torch.Tensor) else np
    d = abs(distance)
    if s.mode == "linear":
        return library.clip(1 - d, 0, None)
    if s.mode != "cubic":
        raise OnnxError(f"unknown interpolation '{s.mode}'")
    # Keys' cubic convolution, IEEE Transactions on Acoustics, 29(6), 1981.
    a = s.cubic
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return library.where(d <= 1, near, library.where(d < 2, far, library.zeros_like(d)))
