"""Images of another size, and images sampled at given places."""

from __future__ import annotations

from typing import Any

from tvm.ir import RelayExpr
from tvm.relax import op

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
