"""Images of another size, and images sampled at given places."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import TupleGetItem, const
from tvm.relax.struct_info import open_shape

from ..arguments import Arguments, converter

__all__: list[str] = []


def _resized(a: Arguments, rank: int, **settings: Any) -> RelayExpr:
    data = a.get("self") if a.get("self") is not None else a["input"]
    sizes = list(a.result_shape[-rank:])
    if rank == 2:
        return op.image.resize2d(data, sizes, **settings)
    return op.make_call(
        f"image.resize{rank}d",
        data,
        roi=[0.0] * (2 * rank),
        size=sizes,
        layout={1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank],
        **settings,
    )


def _rank(a: Arguments) -> int:
    return len(a.result_shape) - 2


def _keeps_scale(a: Arguments) -> bool:
    """Whether the ratio of the sizes is the scale that cells are placed by."""
    scales = a.get("scale_factors")
    if scales is None:
        scales = [
            a.get(name)
            for name in ("scales", "scales_d", "scales_h", "scales_w")
            if a.get(name) is not None
        ]
    data = a.get("self") if a.get("self") is not None else a["input"]
    extents = [int(n) for n in data.struct_info.shape.values][2:]
    return all(
        abs(n * float(scale) - out) < 1e-6
        for n, out, scale in zip(extents, a.result_shape[2:], scales)
    )


@converter(
    "upsample_nearest1d.default", "upsample_nearest2d.default", "upsample_nearest3d.default",
    "upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec",
)  # fmt: skip
def _nearest(a: Arguments) -> RelayExpr:
    a.refuse_unless(_keeps_scale(a), "by a scale that is not the ratio of the sizes")
    return _resized(
        a, _rank(a), method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )  # fmt: skip


@converter(
    "_upsample_nearest_exact1d.default", "_upsample_nearest_exact2d.default",
    "_upsample_nearest_exact3d.default", "_upsample_nearest_exact1d.vec",
    "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec",
)  # fmt: skip
def _nearest_exact(a: Arguments) -> RelayExpr:
    a.refuse_unless(_keeps_scale(a), "by a scale that is not the ratio of the sizes")
    return _resized(
        a, _rank(a), method="nearest_neighbor", coordinate_transformation_mode="half_pixel",
        rounding_method="round_prefer_ceil",
    )  # fmt: skip


@converter(
    "upsample_linear1d.default", "upsample_bilinear2d.default", "upsample_trilinear3d.default",
    "upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec",
)  # fmt: skip
def _linear(a: Arguments) -> RelayExpr:
    return _smooth(a, "linear")


@converter("upsample_bicubic2d.default", "upsample_bicubic2d.vec")
def _cubic(a: Arguments) -> RelayExpr:
    return _smooth(a, "cubic", cubic_alpha=-0.75)


def _smooth(a: Arguments, method: str, **settings: Any) -> RelayExpr:
    corners = bool(a["align_corners"])
    a.refuse_unless(corners or _keeps_scale(a), "by a scale that is not the ratio of the sizes")
    mode = "align_corners" if corners else "half_pixel"
    return _resized(a, _rank(a), method=method, coordinate_transformation_mode=mode, **settings)


@converter(
    "_upsample_bilinear2d_aa.default", "_upsample_bilinear2d_aa.vec",
    "_upsample_bicubic2d_aa.default", "_upsample_bicubic2d_aa.vec",
)  # fmt: skip
def _antialiased(a: Arguments) -> RelayExpr:
    """Each row, then each column of the result is a sum of a few weighted ones of the image."""
    data = a.get("self") if a.get("self") is not None else a["input"]
    dtype = a.result_dtype
    is_bytes = dtype == "uint8"
    kind = "int32" if is_bytes else "float64" if dtype == "float64" else "float32"
    before = open_shape(data.struct_info)
    given = a.get("scale_factors") or [a.get("scales_h"), a.get("scales_w")]
    for axis in (3, 2):
        step = before[axis] / a.result_shape[axis]
        if a["align_corners"]:
            step = (before[axis] - 1) / max(a.result_shape[axis] - 1, 1)
        elif given[axis - 2]:
            step = 1 / float(given[axis - 2])
        if before[axis] == a.result_shape[axis] and step == 1:
            continue
        taps = Taps.of(before[axis], a.result_shape[axis], step, "cubic" in a.name)
        shape = (len(taps.weights), a.result_shape[axis], *([1] if axis == 2 else []))
        weights = taps.in_bytes() if is_bytes else taps.weights
        read = a.call("take", a.cast(data, kind), const(taps.places, "int64"), axis=axis)
        factors = const(weights.reshape(shape), kind)
        data = a.emit(op.sum(a.emit(op.multiply(read, factors)), [axis]))
        if is_bytes:
            # Rounded after each direction, as PyTorch does.
            half = a.emit(op.add(data, const(1 << (taps.precision - 1), "int32")))
            whole = a.call("right_shift", half, const(taps.precision, "int32"))
            data = a.emit(op.astype(a.emit(op.clip(whole, 0, 255)), "uint8"))
    return data if is_bytes else a.cast(data, dtype)


@dataclass(frozen=True)
class Taps:
    """Which elements of a line make each element of another one.

    Attributes
    ----------
    places, weights : (taps, elements): what is read, and its share.
    """

    places: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, before: int, after: int, step: float, is_cubic: bool) -> Taps:
        """A triangle, or Keys' cubic, as wide as a step where the line gets shorter."""
        wide = max(step, 1.0)
        support = (2.0 if is_cubic else 1.0) * wide
        centre = step * (np.arange(after) + 0.5)
        first = np.maximum((centre - support + 0.5).astype(np.int64), 0)
        behind = np.minimum((centre + support + 0.5).astype(np.int64), before)
        places = first + np.arange(max((behind - first).max(), 1))[:, None]
        away = np.abs(places - centre + 0.5) / wide
        share = _cubic_share(away) if is_cubic else np.maximum(1 - away, 0)
        share[places >= behind] = 0
        return cls(np.minimum(places, before - 1), share / share.sum(0))

    @property
    def precision(self) -> int:
        """Bits behind the point of weights that are 16-bit integers."""
        largest = float(self.weights.max())
        return next(p for p in range(22) if p == 21 or int(0.5 + largest * 2 ** (p + 1)) >= 1 << 15)

    def in_bytes(self) -> np.ndarray:
        """Weights as integers, for images of bytes."""
        scaled = self.weights * (1 << self.precision)
        return np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32)


def _cubic_share(away: np.ndarray) -> np.ndarray:
    """Keys' kernel with a = -1/2."""
    near = (1.5 * away - 2.5) * away * away + 1
    far = ((-0.5 * away + 2.5) * away - 4) * away + 2
    return np.where(away < 1, near, np.where(away < 2, far, 0))


@converter("affine_grid_generator.default")
def _affine_grid(a: Arguments) -> RelayExpr:
    """Places of cells between -1 and 1, turned and moved by each picture's matrix."""
    batch, *sizes, rank = a.result_shape
    theta = a.call("split", a["theta"], indices_or_sections=rank + 1, axis=2)
    dtype = a.result_dtype
    columns = []
    for k in range(rank + 1):
        column = a.emit(TupleGetItem(theta, k))
        column = a.emit(op.reshape(column, (batch, *[1] * rank, rank)))
        if k < rank:
            # The first coordinate is that of the last dimension.
            extent = sizes[rank - 1 - k]
            places = np.linspace(-1, 1, extent)
            if not a["align_corners"]:
                places = places * ((extent - 1) / extent)
            elif extent == 1:
                places = np.zeros(1)
            lined_up = [1] * (rank + 2)
            lined_up[rank - k] = extent
            column = a.emit(op.multiply(column, const(places.reshape(lined_up), dtype)))
        columns.append(column)
    return functools.reduce(lambda one, other: a.emit(op.add(one, other)), columns)


@converter("grid_sampler_2d.default", "grid_sampler_3d.default", "grid_sampler.default")
def _grid_sampler(a: Arguments) -> RelayExpr:
    rank = a.rank("grid") - 2
    grid = a.emit(op.permute_dims(a["grid"], [0, rank + 1, *range(1, rank + 1)]))
    return op.make_call(
        "image.grid_sample",
        a["input"],
        grid,
        method=("bilinear", "nearest", "bicubic")[int(a["interpolation_mode"])],
        layout="NCHW" if rank == 2 else "NCDHW",
        padding_mode=("zeros", "border", "reflection")[int(a["padding_mode"])],
        align_corners=bool(a["align_corners"]),
    )
