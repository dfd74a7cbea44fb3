"""Fixed grids of values from regions of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tvm import te, tir

from ..utils import as_int, as_sizes, get_const_tuple

__all__ = [
    "ps_roi_align_nchw",
    "ps_roi_pool_nchw",
    "roi_align_nchw",
    "roi_align_nhwc",
    "roi_pool_nchw",
]


# As many channels are computed at a time at most.
_CHANNELS = 64


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
    position_sensitive: bool = False,
) -> te.Tensor:
    """The tensor whose elements at each region and bin the statements of `fill` give.

    Parameters
    ----------
    fill : gets the builder, a loop over channels, the region's four borders, the bin's row and
        column, the result and the image's extents. The loop gives a reader of the channel at a row
        and column of the image, and the place to write to. What is the same for all channels is
        best computed outside of it.
    position_sensitive : whether each bin reads channels of its own: the image has those of all bins
        for the result's first channel, row by row, then those for the second one.
    """
    count = _regions(name, data, rois)
    extent = dict(zip(layout, (as_int(e) for e in get_const_tuple(data.shape))))
    bins = size[0] * size[1] if position_sensitive else 1
    if extent["C"] % bins:
        raise ValueError(
            f"topi.vision.{name}: {extent['C']} channels are not a multiple of {bins} bins"
        )
    channels = extent["C"] // bins
    result = {"N": count, "C": channels, "H": size[0], "W": size[1]}

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        image, boxes, out = (ib.buffer_ptr(b) for b in (ins[0], ins[1], outs[0]))
        with ib.for_range(0, count, name="region", kind="parallel") as region:
            batch = boxes[region, 0].astype("int32")
            borders = [boxes[region, k] for k in range(1, 5)]
            with (
                ib.for_range(0, size[0], name="row") as row,
                ib.for_range(0, size[1], name="column") as column,
            ):

                @contextmanager
                def each_channel() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
                    lanes = _lanes(channels) if layout[-1] == "C" else 1
                    kind = "vectorize" if lanes > 1 else "serial"
                    with (
                        ib.for_range(0, channels // lanes, name="channels") as outer,
                        ib.for_range(0, lanes, name="channel", kind=kind) as inner,
                    ):
                        channel = outer * lanes + inner
                        source = channel
                        if position_sensitive:
                            source = (channel * size[0] + row) * size[1] + column

                        def read(y: Any, x: Any) -> Any:
                            at = {"N": batch, "C": source, "H": y, "W": x}
                            return image[tuple(at[axis] for axis in layout)]

                        place = {"N": region, "C": channel, "H": row, "W": column}
                        yield read, tuple(place[axis] for axis in layout)

                fill(ib, each_channel, borders, (row, column), out, extent)
        return ib.get()

    return te.extern(
        [[result[axis] for axis in layout]], [data, rois], body, name=name, dtype=[data.dtype]
    )


def _lanes(channels: int) -> int:
    """Channels that are neighbours in vectors: several of these, whose chains overlap."""
    whole = [n for n in range(_CHANNELS, 3, -1) if channels % n == 0]
    return whole[0] if whole else channels if channels < 4 else 1


def _samples(ib: Any, steps: list[Any], sample_ratio: int) -> list[Any]:
    """Samples of a bin down and across: the number given, else the bin's size rounded up."""
    if sample_ratio > 0:
        return [tir.const(sample_ratio, "int32")] * 2
    return [ib.let(f"samples_{d}", tir.ceil(step).astype("int32")) for d, step in zip("yx", steps)]


def _taps(ib: Any, at: list[Any], extents: list[int], dtype: str) -> tuple[list[Any], Any]:
    """Weight, row and column of the four pixels around a point, and whether it is near the image.

    The border goes on for one pixel; behind it are zeros.

    Parameters
    ----------
    at : row and column.
    extents : rows and columns of the image.
    """
    taps, inside = [], []
    for name, position, extent in zip("yx", at, extents):
        inside += [
            position >= tir.const(-1.0, dtype),
            position <= tir.const(float(extent), dtype),
        ]
        clamped = ib.let(
            f"at_{name}",
            tir.max(tir.min(position, tir.const(float(extent - 1), dtype)), tir.const(0.0, dtype)),
        )
        low = tir.floor(clamped)
        part = ib.let(f"part_{name}", clamped - low)
        first = ib.let(f"first_{name}", low.astype("int32"))
        second = ib.let(f"second_{name}", tir.min(first + 1, extent - 1))
        taps.append([(first, tir.const(1.0, dtype) - part), (second, part)])
    around = [
        (
            ib.let(f"weight_{dy}{dx}", taps[0][dy][1] * taps[1][dx][1]),
            taps[0][dy][0],
            taps[1][dx][0],
        )
        for dy in (0, 1)
        for dx in (0, 1)
    ]
    return around, ib.let("inside", tir.all(*inside))


def _roi_align(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int,
    layout: str,
    aligned: bool,
    position_sensitive: bool = False,
) -> te.Tensor:
    kind = mode.decode() if isinstance(mode, bytes) else str(mode)
    if kind not in ("avg", "max"):
        raise ValueError(f"topi.vision.roi_align: mode is 'avg' or 'max', got '{kind}'")
    size = [as_int(s) for s in as_sizes(pooled_size, 2)]
    dtype = str(data.dtype)

    def number(value: float) -> Any:
        return tir.const(value, dtype)

    def fill(ib: Any, each_channel: Any, borders: Any, bin_at: Any, out: Any, extent: Any) -> None:
        shift = number(0.5 if aligned else 0.0)
        left, top, right, bottom = (
            b.astype(dtype) * number(spatial_scale) - shift for b in borders
        )
        spans = [bottom - top, right - left]
        if not aligned:
            spans = [tir.max(span, number(1.0)) for span in spans]
        steps = [span / number(float(n)) for span, n in zip(spans, size)]
        counts = _samples(ib, steps, sample_ratio)
        starts = [
            first + at.astype(dtype) * step for first, at, step in zip((top, left), bin_at, steps)
        ]
        # A region without extent has no samples where their number follows from its size.
        taken = tir.max(counts[0] * counts[1], 1)
        with each_channel() as (_, where):
            out[where] = number(0.0) if kind == "avg" else tir.min_value(dtype)
        with (
            ib.for_range(0, counts[0], name="iy") as iy,
            ib.for_range(0, counts[1], name="ix") as ix,
        ):
            at = [
                start + (i.astype(dtype) + number(0.5)) * step / n.astype(dtype)
                for start, step, i, n in zip(starts, steps, (iy, ix), counts)
            ]
            around, inside = _taps(ib, at, [extent["H"], extent["W"]], dtype)
            with each_channel() as (read, where):
                value = number(0.0)
                for weight, row, column in around:
                    value = value + weight * read(row, column)
                sample = tir.Select(inside, value, number(0.0))
                if kind == "avg":
                    out[where] = out[where] + sample / taken.astype(dtype)
                else:
                    out[where] = tir.max(out[where], sample)

    name = f"{'ps_' if position_sensitive else ''}roi_align_{layout.lower()}"
    return _of_each_bin(name, data, rois, size, layout, fill, position_sensitive)


def roi_align_nchw(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any = "avg",
    sample_ratio: int = -1,
    aligned: bool = False,
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
    aligned : whether pixels lie at whole numbers and regions may have any size. Otherwise they lie
        half a pixel before them, and a region has at least one pixel in each direction.

    Returns
    -------
    (count, channels, rows, columns).
    """
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NCHW", aligned)


def roi_align_nhwc(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any = "avg",
    sample_ratio: int = -1,
    aligned: bool = False,
) -> te.Tensor:
    """:func:`roi_align_nchw` of NHWC images, with grids laid out alike."""
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NHWC", aligned)


def _pixels(
    ib: Any,
    borders: list[Any],
    bin_at: Any,
    size: list[int],
    extent: dict[str, int],
    spatial_scale: float,
    dtype: str,
    inclusive: int,
    unread: int,
) -> list[tuple[Any, Any]]:
    """First pixel of a bin and the one behind its last, down and across.

    Parameters
    ----------
    inclusive : 1 where the last border's pixel belongs to the region.
    unread : pixels at the end of the image that no bin reads.
    """
    scale = tir.const(spatial_scale, dtype)
    left, top, right, bottom = (tir.round(b.astype(dtype) * scale).astype("int32") for b in borders)
    ranges = []
    for first, last, n, at, axis in zip((top, left), (bottom, right), size, bin_at, "HW"):
        # In the data's type, as other implementations have it: products that are whole numbers
        # may come out just beside them.
        step = tir.max(last - first + inclusive, 1).astype(dtype) / tir.const(float(n), dtype)
        start = tir.floor(at.astype(dtype) * step).astype("int32") + first
        end = tir.ceil((at + 1).astype(dtype) * step).astype("int32") + first
        most = extent[axis] - unread
        low = ib.let(f"first_{axis}", tir.min(tir.max(start, 0), most))
        high = ib.let(f"behind_{axis}", tir.min(tir.max(end, 0), most))
        ranges.append((low, high))
    return ranges


def roi_pool_nchw(
    data: te.Tensor, rois: te.Tensor, pooled_size: Any, spatial_scale: float
) -> te.Tensor:
    """Maxima in a grid over each region of NCHW images, whose borders are rounded to pixels.

    After Girshick, "Fast R-CNN", ICCV 2015. Bins outside of the image are 0. Arguments as those of
    :func:`roi_align_nchw`.
    """
    size = [as_int(s) for s in as_sizes(pooled_size, 2)]
    dtype = str(data.dtype)

    def fill(ib: Any, each_channel: Any, borders: Any, bin_at: Any, out: Any, extent: Any) -> None:
        (y0, y1), (x0, x1) = _pixels(ib, borders, bin_at, size, extent, spatial_scale, dtype, 1, 0)
        empty = tir.any(y1 <= y0, x1 <= x0)
        with each_channel() as (read, where):
            out[where] = tir.Select(empty, tir.const(0.0, dtype), tir.min_value(dtype))
            with ib.for_range(0, y1 - y0, name="y") as y, ib.for_range(0, x1 - x0, name="x") as x:
                out[where] = tir.max(out[where], read(y0 + y, x0 + x))

    return _of_each_bin("roi_pool_nchw", data, rois, size, "NCHW", fill)


def ps_roi_align_nchw(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int = -1,
) -> te.Tensor:
    """Means of bilinear samples in a grid over each region, each bin of channels of its own.

    After Li et al., "Light-Head R-CNN", 2017. Arguments as those of :func:`roi_align_nchw`, whose
    `aligned` holds.

    Parameters
    ----------
    data : (batch, channels * rows * columns, height, width).

    Returns
    -------
    (count, channels, rows, columns).
    """
    return _roi_align(data, rois, pooled_size, spatial_scale, "avg", sample_ratio, "NCHW", True,
                      True)  # fmt: skip


def ps_roi_pool_nchw(
    data: te.Tensor, rois: te.Tensor, pooled_size: Any, spatial_scale: float
) -> te.Tensor:
    """Means in a grid over each region rounded to pixels, each bin of channels of its own.

    After Dai et al., "R-FCN", NeurIPS 2016. Bins without a pixel are 0.

    Parameters
    ----------
    data : (batch, channels * rows * columns, height, width).

    Returns
    -------
    (count, channels, rows, columns).
    """
    size = [as_int(s) for s in as_sizes(pooled_size, 2)]
    dtype = str(data.dtype)

    def fill(ib: Any, each_channel: Any, borders: Any, bin_at: Any, out: Any, extent: Any) -> None:
        (y0, y1), (x0, x1) = _pixels(ib, borders, bin_at, size, extent, spatial_scale, dtype, 0, 1)
        area = tir.max(tir.max(y1 - y0, 0) * tir.max(x1 - x0, 0), 1)
        with each_channel() as (read, where):
            out[where] = tir.const(0.0, dtype)
            with ib.for_range(0, y1 - y0, name="y") as y, ib.for_range(0, x1 - x0, name="x") as x:
                out[where] = out[where] + read(y0 + y, x0 + x)
            out[where] = out[where] / area.astype(dtype)

    return _of_each_bin("ps_roi_pool_nchw", data, rois, size, "NCHW", fill, True)
