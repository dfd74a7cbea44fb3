"""Convolution of NHWC data by Winograd's minimal filtering (Lavin and Gray, CVPR 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tvm import te, tir

from .. import nn
from ..utils import as_pads, as_sizes, ceil_div, const_shape
from ._common import as_outputs

__all__ = [
    "conv2d_nhwc_winograd_direct",
    "conv2d_nhwc_winograd_direct_without_weight_transform",
    "schedule_conv2d_nhwc_winograd_direct",
    "schedule_conv2d_nhwc_winograd_direct_without_weight_transform",
    "winograd_weight_transform",
]

_THREADS = 128
# Points at which the polynomials are evaluated, in the order that keeps numbers small.
_POINTS = [Fraction(p) for p in ("0", "1", "-1", "2", "-2", "1/2", "-1/2")]

Matrix = list[list[float]]


def _times_root(polynomial: list[Fraction], root: Fraction) -> list[Fraction]:
    """Coefficients, lowest first, of the polynomial times (x - root)."""
    shifted = [Fraction(0), *polynomial]
    return [s - root * p for s, p in zip(shifted, [*polynomial, Fraction(0)])]


def _transforms(m: int, r: int) -> tuple[Matrix, Matrix, Matrix]:
    """A, B and G with ``Y = A^T [(G g) * (B^T d)]``: m outputs of a filter of r taps.

    After Cook and Toom: evaluate both polynomials at m + r - 2 points and at infinity, multiply,
    and interpolate.
    """
    alpha = m + r - 1
    points = _POINTS[: alpha - 1]
    at = [[p**i for p in points] + [Fraction(int(i == m - 1))] for i in range(m)]
    g, bt = [], []
    for j, p in enumerate(points):
        scale = Fraction(1)
        others = [Fraction(1)]
        for k, q in enumerate(points):
            if k != j:
                scale *= p - q
                others = _times_root(others, q)
        g.append([p**i / scale for i in range(r)])
        bt.append([*others, Fraction(0)])
    every = [Fraction(1)]
    for p in points:
        every = _times_root(every, p)
    g.append([Fraction(int(i == r - 1)) for i in range(r)])
    bt.append(every)

    def turned(rows: list[list[Fraction]]) -> Matrix:
        return [[float(value) for value in column] for column in zip(*rows)]

    return turned(at), turned(bt), [[float(value) for value in row] for row in g]


def _constant(values: Matrix, name: str, dtype: str) -> te.Tensor:
    """A matrix of literals, chosen by index; unrolled loops turn it into single numbers."""

    def choose(i: Any, j: Any) -> Any:
        result = tir.const(0.0, dtype)
        for row, numbers in enumerate(values):
            for column, number in enumerate(numbers):
                if number != 0:
                    here = tir.all(i == row, j == column)
                    result = tir.Select(here, tir.const(number, dtype), result)
        return result

    return te.compute((len(values), len(values[0])), choose, name=name, tag="constant")


def winograd_weight_transform(weight: te.Tensor, tile_size: int = 2) -> te.Tensor:
    """HWIO weights of a square window as (alpha, alpha, I, O), alpha = tile_size + window - 1."""
    window, width, channels, filters = const_shape(weight.shape)
    if window != width:
        raise ValueError(
            f"topi.cuda.conv2d_nhwc_winograd: the window must be square, got {window} x {width}; "
            "use topi.nn.conv2d_nhwc"
        )
    alpha = tile_size + window - 1
    g = _constant(_transforms(tile_size, window)[2], "G", weight.dtype)
    kh = te.reduce_axis((0, window), name="kh")
    kw = te.reduce_axis((0, window), name="kw")
    return te.compute(
        (alpha, alpha, channels, filters),
        lambda e, v, ci, co: te.sum(weight[kh, kw, ci, co] * g[e, kh] * g[v, kw], axis=[kh, kw]),
        name="weight_transform",
    )


def conv2d_nhwc_winograd_direct_without_weight_transform(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
    tile_size: int = 2,
) -> te.Tensor:
    """Convolution with weights that :func:`winograd_weight_transform` has transformed.

    Parameters
    ----------
    data : (N, H, W, C).
    weight : (alpha, alpha, C, F).
    tile_size : pixels of the result a tile has along each dimension. Larger tiles multiply less
        and round more.

    Raises
    ------
    ValueError : stride or dilation is not 1, or the tile is too large for the points known.
    """
    if as_sizes(stride, 2) != (1, 1) or as_sizes(dilation, 2) != (1, 1):
        raise ValueError(
            "topi.cuda.conv2d_nhwc_winograd: stride and dilation must be 1; use topi.nn.conv2d_nhwc"
        )
    dtype = out_dtype or data.dtype
    batch, height, width, channels = const_shape(data.shape)
    alpha, _, _, filters = const_shape(weight.shape)
    if alpha - 1 > len(_POINTS) or tile_size >= alpha + 1:
        raise ValueError(
            f"topi.cuda.conv2d_nhwc_winograd: tile_size {tile_size} does not go with transformed "
            f"weights of {alpha} x {alpha}; at most {len(_POINTS) + 1} are supported"
        )
    window = alpha - tile_size + 1
    top, left, bottom, right = as_pads(padding, 2)
    out_h, out_w = height + top + bottom - window + 1, width + left + right - window + 1
    rows, columns = ceil_div(out_h, tile_size), ceil_div(out_w, tile_size)
    tiles = batch * rows * columns
    a, b, _ = _transforms(tile_size, window)
    a_matrix, b_matrix = _constant(a, "A", dtype), _constant(b, "B", dtype)
    # Tiles at the edge reach over the padded image; what they read there is never written.
    extra_h, extra_w = rows * tile_size - out_h, columns * tile_size - out_w
    padded = nn.pad(
        data, (0, top, left, 0), (0, bottom + extra_h, right + extra_w, 0), name="padded"
    )

    def tile_of(p: Any) -> tuple[Any, Any, Any]:
        rest = tir.floordiv(p, columns)
        return tir.floordiv(rest, rows), tir.floormod(rest, rows), tir.floormod(p, columns)

    def cut(e: Any, v: Any, p: Any, c: Any) -> Any:
        n, i, j = tile_of(p)
        return padded[n, i * tile_size + e, j * tile_size + v, c]

    tile = te.compute((alpha, alpha, tiles, channels), cut, name="input_tile")
    ra, rb = (te.reduce_axis((0, alpha), name=name) for name in ("ra", "rb"))
    spectrum = te.compute(
        (alpha, alpha, tiles, channels),
        lambda e, v, p, c: te.sum(
            tile[ra, rb, p, c].astype(dtype) * b_matrix[ra, e] * b_matrix[rb, v], axis=[ra, rb]
        ),
        name="data_transform",
    )
    rc = te.reduce_axis((0, channels), name="rc")
    product = te.compute(
        (alpha, alpha, tiles, filters),
        lambda e, v, p, f: te.sum(
            spectrum[e, v, p, rc] * weight[e, v, rc, f].astype(dtype), axis=rc
        ),
        name="bgemm",
    )
    re, rv = (te.reduce_axis((0, alpha), name=name) for name in ("re", "rv"))
    inverse = te.compute(
        (tile_size, tile_size, tiles, filters),
        lambda y, x, p, f: te.sum(
            product[re, rv, p, f] * a_matrix[re, y] * a_matrix[rv, x], axis=[re, rv]
        ),
        name="inverse",
    )

    def place(n: Any, h: Any, w: Any, f: Any) -> Any:
        row, column = tir.floordiv(h, tile_size), tir.floordiv(w, tile_size)
        p = (n * rows + row) * columns + column
        return inverse[tir.floormod(h, tile_size), tir.floormod(w, tile_size), p, f]

    return te.compute(
        (batch, out_h, out_w, filters),
        place,
        name="conv2d_nhwc_winograd",
        tag="conv2d_nhwc_winograd",
        attrs={"tile_size": tile_size},
    )


def conv2d_nhwc_winograd_direct(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
    tile_size: int = 2,
) -> te.Tensor:
    """Convolution of NHWC data with HWIO weights of a square window, stride and dilation 1.

    See :func:`conv2d_nhwc_winograd_direct_without_weight_transform`.
    """
    return conv2d_nhwc_winograd_direct_without_weight_transform(
        data,
        winograd_weight_transform(weight, tile_size),
        stride,
        padding,
        dilation,
        out_dtype,
        tile_size,
    )


def _one_result_a_thread(s: te.Schedule, stage: te.Tensor, outer: Sequence[Any]) -> Any:
    fused = s[stage].fuse(*outer)
    block, thread = s[stage].split(fused, factor=_THREADS)
    s[stage].bind(block, te.thread_axis("blockIdx.x"))
    s[stage].bind(thread, te.thread_axis((0, _THREADS), "threadIdx.x"))
    return thread


def _unroll_transform(s: te.Schedule, stage: te.Tensor) -> None:
    """The constants of a transform are known once all its loops are written out."""
    for loop in (*list(s[stage].op.axis)[:2], *s[stage].op.reduce_axis):
        s[stage].unroll(loop)


def _schedule_product(s: te.Schedule, product: te.Tensor) -> None:
    spectrum, weight = product.op.input_tensors
    threads, per_thread, depth = 8, 4, 8
    shared = [s.cache_read(tensor, "shared", [product]) for tensor in (spectrum, weight)]
    local = s.cache_write(product, "local")
    e, v, p, f = s[product].op.axis
    z = s[product].fuse(e, v)
    by, p = s[product].split(p, factor=threads * per_thread)
    bx, f = s[product].split(f, factor=threads * per_thread)
    ty, p = s[product].split(p, nparts=threads)
    tx, f = s[product].split(f, nparts=threads)
    s[product].reorder(z, by, bx, ty, tx, p, f)
    for loop, tag in ((z, "blockIdx.z"), (by, "blockIdx.y"), (bx, "blockIdx.x")):
        s[product].bind(loop, te.thread_axis(tag))
    s[product].bind(ty, te.thread_axis((0, threads), "threadIdx.y"))
    s[product].bind(tx, te.thread_axis((0, threads), "threadIdx.x"))
    s[local].compute_at(s[product], tx)
    e, v, p, f = s[local].op.axis
    (k,) = s[local].op.reduce_axis
    k_out, k_in = s[local].split(k, factor=depth)
    s[local].reorder(k_out, k_in, e, v, p, f)
    s[local].unroll(p)
    s[local].unroll(f)
    for cache in shared:
        s[cache].compute_at(s[local], k_out)
        fused = s[cache].fuse(*s[cache].op.axis)
        fused, tx = s[cache].split(fused, factor=threads)
        _, ty = s[cache].split(fused, factor=threads)
        s[cache].bind(tx, te.thread_axis((0, threads), "threadIdx.x"))
        s[cache].bind(ty, te.thread_axis((0, threads), "threadIdx.y"))


def schedule_conv2d_nhwc_winograd_direct(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule :func:`conv2d_nhwc_winograd_direct`: a kernel for each transform and the product."""
    (output,) = as_outputs(outs)
    if output.op.tag != "conv2d_nhwc_winograd":
        raise ValueError(
            f"topi.cuda.schedule_conv2d_nhwc_winograd_direct: {output.op.name} is not the result "
            "of conv2d_nhwc_winograd_direct"
        )
    s = te.create_schedule(output.op)
    stages = {str(stage.op.name): stage for stage in s.stages}
    for stage in list(s.stages):
        if isinstance(stage.op, te.ComputeOp) and stage.op.tag == "constant":
            stage.compute_inline()
    if "padded" in stages:
        stages["padded"].compute_inline()
    inverse, spectrum = (stages[n].op.output(0) for n in ("inverse", "data_transform"))
    product, tile = (stages[n].op.output(0) for n in ("bgemm", "input_tile"))
    if "weight_transform" in stages:
        weight = stages["weight_transform"].op.output(0)
        e, v, ci, co = s[weight].op.axis
        s[weight].reorder(ci, co, e, v)
        _one_result_a_thread(s, weight, (ci, co))
        _unroll_transform(s, weight)
    e, v, p, c = s[spectrum].op.axis
    s[spectrum].reorder(p, c, e, v)
    thread = _one_result_a_thread(s, spectrum, (p, c))
    _unroll_transform(s, spectrum)
    s[tile].compute_at(s[spectrum], thread)
    s[tile].set_scope("local")
    _schedule_product(s, product)
    size = int(output.op.attrs["tile_size"])
    n, h, w, f = s[output].op.axis
    h, hi = s[output].split(h, factor=size)
    w, wi = s[output].split(w, factor=size)
    s[output].reorder(n, h, w, f, hi, wi)
    thread = _one_result_a_thread(s, output, (n, h, w, f))
    s[output].unroll(hi)
    s[output].unroll(wi)
    s[inverse].compute_at(s[output], thread)
    s[inverse].set_scope("local")
    _unroll_transform(s, inverse)
    return s


# The schedule transforms weights only where the program does.
schedule_conv2d_nhwc_winograd_direct_without_weight_transform = schedule_conv2d_nhwc_winograd_direct
