"""Fixed grids of values from regions of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir

from ..utils import as_int, as_sizes, get_const_tuple

__all__ = ["roi_align_nchw", "roi_align_nhwc", "roi_pool_nchw"]

_LOWEST = -3.4028234663852886e38


def _regions(name: str, data: te.Tensor, rois: te.Tensor) -> int:
    """Number of regions.

    Raises
    ------
    ValueError : they are not rows of five numbers, or the data is not images.
    """
    shape = get_const_tuple(rois.shape)
    if len(shape) != 2 or shape[1] != 5 or len(data.shape) != 4:
        raise ValueError(
            f"topi.vision.{name}: takes images of 4 axes and regions of shape (count, 5), a row "
            f"being batch, left, top, right and bottom; got {list(data.shape)} and {list(shape)}"
        )
    return as_int(shape[0])


def _of_each_bin(
    name: str,
    data: te.Tensor,
    rois: te.Tensor,
    size: list[int],
    layout: str,
    fill: Callable[..., None],
) -> te.Tensor:
    """The tensor whose element at each region, channel and bin the statements of `fill` give.

    Parameters
    ----------
    fill : builder, reader of an image's (channel, row, column), the region's four borders, the
        bin's row and column, channels' index, and the place to write to.
    """
    count = _regions(name, data, rois)
    extent = dict(zip(layout, (as_int(e) for e in get_const_tuple(data.shape))))
    result = {"N": count, "C": extent["C"], "H": size[0], "W": size[1]}

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        image, boxes, out = (ib.buffer_ptr(b) for b in (ins[0], ins[1], outs[0]))
        with ib.for_range(0, count, name="region", kind="parallel") as region:
            batch = boxes[region, 0].astype("int32")
            borders = [boxes[region, k] for k in range(1, 5)]
            with (
                ib.for_range(0, extent["C"], name="channel") as channel,
                ib.for_range(0, size[0], name="row") as row,
                ib.for_range(0, size[1], name="column") as column,
            ):

                def read(y: Any, x: Any) -> Any:
                    at = {"N": batch, "C": channel, "H": y, "W": x}
                    return image[tuple(at[axis] for axis in layout)]

                place = {"N": region, "C": channel, "H": row, "W": column}
                where = tuple(place[axis] for axis in layout)
                fill(ib, read, borders, (row, column), out, where, extent)
        return ib.get()

    return te.extern(
        [[result[axis] for axis in layout]], [data, rois], body, name=name, dtype=[data.dtype]
    )


def _roi_align(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int,
    layout: str,
) -> te.Tensor:
    kind = mode.decode() if isinstance(mode, bytes) else str(mode)
    if kind not in ("avg", "max"):
        raise ValueError(f"topi.vision.roi_align: mode is 'avg' or 'max', got '{kind}'")
    size = [as_int(s) for s in as_sizes(pooled_size, 2)]
    dtype = str(data.dtype)

    def number(value: float) -> Any:
        return tir.const(value, dtype)

    def fill(
        ib: Any, read: Any, borders: Any, bin_at: Any, out: Any, where: Any, extent: Any
    ) -> None:
        left, top, right, bottom = (b.astype(dtype) * number(spatial_scale) for b in borders)
        spans = [tir.max(bottom - top, number(1.0)), tir.max(right - left, number(1.0))]
        steps = [span / number(float(n)) for span, n in zip(spans, size)]
        if sample_ratio > 0:
            counts: list[Any] = [tir.const(sample_ratio, "int32")] * 2
        else:
            counts = [tir.ceil(step).astype("int32") for step in steps]
        counts = [ib.let(f"samples_{d}", c) for d, c in zip("yx", counts)]
        starts = [
            first + at.astype(dtype) * step for first, at, step in zip((top, left), bin_at, steps)
        ]
        out[where] = number(0.0 if kind == "avg" else _LOWEST)
        with (
            ib.for_range(0, counts[0], name="iy") as iy,
            ib.for_range(0, counts[1], name="ix") as ix,
        ):
            taps, inside = [], []
            for start, step, i, n, axis in zip(starts, steps, (iy, ix), counts, "HW"):
                at = start + (i.astype(dtype) + number(0.5)) * step / n.astype(dtype)
                high = extent[axis]
                inside += [at >= number(-1.0), at <= number(float(high))]
                clamped = tir.max(tir.min(at, number(float(high - 1))), number(0.0))
                low = tir.floor(clamped)
                taps.append((low.astype("int32"), clamped - low, high))
            value = number(0.0)
            for dy in (0, 1):
                for dx in (0, 1):
                    weight, place = number(1.0), []
                    for d, (low, part, high) in zip((dy, dx), taps):
                        weight = weight * (part if d else number(1.0) - part)
                        place.append(tir.min(low + d, high - 1))
                    value = value + weight * read(*place)
            sample = tir.Select(tir.all(*inside), value, number(0.0))
            if kind == "avg":
                out[where] = out[where] + sample / (counts[0] * counts[1]).astype(dtype)
            else:
                out[where] = tir.max(out[where], sample)

    return _of_each_bin(f"roi_align_{layout.lower()}", data, rois, size, layout, fill)


def roi_align_nchw(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any = "avg",
    sample_ratio: int = -1,
) -> te.Tensor:
    """Means or maxima of bilinear samples in a grid over each region of NCHW images.

    After He et al., "Mask R-CNN", ICCV 2017.

    Parameters
    ----------
    rois : (count, 5): batch index, left, top, right, bottom.
    pooled_size : rows and columns of the grid.
    spatial_scale : what the borders are multiplied with to be pixels of `data`.
    mode : "avg" or "max".
    sample_ratio : samples of a bin in each direction; the bin's size rounded up if not positive.

    Returns
    -------
    (count, channels, rows, columns).
    """
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NCHW")


def roi_align_nhwc(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any = "avg",
    sample_ratio: int = -1,
) -> te.Tensor:
    """:func:`roi_align_nchw` of NHWC images, with grids laid out alike."""
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NHWC")


def roi_pool_nchw(
    data: te.Tensor, rois: te.Tensor, pooled_size: Any, spatial_scale: float
) -> te.Tensor:
    """Maxima in a grid over each region of NCHW images, whose borders are rounded to pixels.

    After Girshick, "Fast R-CNN", ICCV 2015. Bins outside of the image are 0. Arguments as those of
    :func:`roi_align_nchw`.
    """
    size = [as_int(s) for s in as_sizes(pooled_size, 2)]
    dtype = str(data.dtype)

    def fill(
        ib: Any, read: Any, borders: Any, bin_at: Any, out: Any, where: Any, extent: Any
    ) -> None:
        scale = tir.const(spatial_scale, dtype)
        left, top, right, bottom = (
            tir.round(b.astype(dtype) * scale).astype("int32") for b in borders
        )
        ranges = []
        for first, last, n, at, axis in zip(
            (top, left), (bottom, right), size, bin_at, "HW", strict=True
        ):
            length = tir.max(last - first + 1, 1)
            # Whole numbers: the first cell of a bin is rounded down, the one behind it up.
            start = tir.floordiv(at * length, n) + first
            end = tir.floordiv((at + 1) * length + n - 1, n) + first
            low = ib.let(f"first_{axis}", tir.min(tir.max(start, 0), extent[axis]))
            high = ib.let(f"behind_{axis}", tir.min(tir.max(end, 0), extent[axis]))
            ranges.append((low, high))
        (y0, y1), (x0, x1) = ranges
        empty = tir.any(y1 <= y0, x1 <= x0)
        out[where] = tir.Select(empty, tir.const(0.0, dtype), tir.const(_LOWEST, dtype))
        with ib.for_range(0, y1 - y0, name="y") as y, ib.for_range(0, x1 - x0, name="x") as x:
            out[where] = tir.max(out[where], read(y0 + y, x0 + x))

    return _of_each_bin("roi_pool_nchw", data, rois, size, "NCHW", fill)
