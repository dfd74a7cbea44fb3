"""Products after Strassen: two blocks of rows and of columns at a time, seven products of each."""

from __future__ import annotations

from dataclasses import replace

from tvm import te
from tvm.target import Target

from ..nn.strassen import strassen_half_rows
from ..utils import ceil_div, const_shape
from .conv2d import RegisterTile
from .tiles import fitting_lanes, fitting_rows
from .vectors import inline_producers

__all__ = ["schedule_strassen_product"]

# Half of a second-level cache; and bytes that are read from behind it, ahead of their use, in the
# time that one takes to be written there and read again.
_CACHE_BYTES = 1 << 19
_READS_A_WRITE = 10


def _even_tile(target: Target, rows: int, vectors: int) -> RegisterTile:
    """The best tile, with as few rows as leave the number of tiles what it is."""
    best = fitting_rows(target, rows, vectors)
    return replace(best, rows=ceil_div(rows, ceil_div(rows, best.rows)))


def _rows_outside(rows: int, half: int, depth: int, columns: int) -> bool:
    """Whether blocks of rows stand outside of the panels, for sums that stay in cache."""
    if 7 * half * depth * 2 > _CACHE_BYTES or 7 * rows * depth <= _CACHE_BYTES:
        return False
    weights = 7 * depth * columns
    reading = 0 if weights <= _CACHE_BYTES else weights * ceil_div(rows, 2 * half)
    return reading < _READS_A_WRITE * 7 * rows * depth


def schedule_strassen_product(
    product: te.Tensor, output: te.Tensor | None = None, target: Target | None = None
) -> te.Schedule:
    """Panels of columns, or blocks of rows, in parallel; seven products of a block stay in cache.

    Parameters
    ----------
    product : result of :func:`tvm.topi.nn.strassen_product`.
    output : elementwise function of `product` to compute from sums that are in registers.
    """
    target = target or Target.current() or Target("llvm")
    output = product if output is None else output
    (products,) = product.op.input_tensors
    sums, weight = products.op.input_tensors
    block = const_shape(weight.shape)[3]
    rows, columns = const_shape(product.shape)
    half = strassen_half_rows(rows)
    lanes = fitting_lanes(target, product.dtype, block)
    tile = _even_tile(target, half, block // lanes)

    s = te.create_schedule(output.op)
    inline_producers(s, output, first=products)
    i, j = output.op.axis
    i_block, i = s[output].split(i, factor=2 * half)
    second, i = s[output].split(i, factor=half)
    panel, j = s[output].split(j, factor=2 * block)
    side, j = s[output].split(j, factor=block)
    vector, lane = s[output].split(j, factor=lanes)
    rows_outside = _rows_outside(rows, half, 2 * const_shape(sums.shape)[2], columns)
    outer, inner = (i_block, panel) if rows_outside else (panel, i_block)
    s[output].reorder(outer, inner, i, second, side, vector, lane)
    s[output].parallel(outer)
    for loop in (second, side, vector):
        s[output].unroll(loop)
    s[output].vectorize(lane)

    s[products].compute_at(s[output], inner)
    local = s.cache_write(products, "local")
    p, i, j = products.op.axis
    step, i = s[products].split(i, factor=tile.rows)
    column, j = s[products].split(j, factor=lanes * tile.vectors)
    vector, lane = s[products].split(j, factor=lanes)
    s[products].reorder(p, column, step, i, vector, lane)
    for loop in (i, vector):
        s[products].unroll(loop)
    s[products].vectorize(lane)

    s[local].compute_at(s[products], step)
    p, i, j = local.op.axis
    (k,) = local.op.reduce_axis
    vector, lane = s[local].split(j, factor=lanes)
    s[local].reorder(p, k, i, vector, lane)
    for loop in (i, vector):
        s[local].unroll(loop)
    s[local].vectorize(lane)

    p, i, k = sums.op.axis
    lanes = fitting_lanes(target, sums.dtype, int(k.dom.extent))
    i_block, i = s[sums].split(i, factor=half)
    k, lane = s[sums].split(k, factor=lanes)
    s[sums].reorder(i_block, i, k, p, lane)
    if rows_outside:
        s[sums].compute_at(s[output], outer)
    else:
        s[sums].parallel(i_block)
    # The rows of a tile are read side by side: an odd number of cache lines from one to the next,
    # they fall into different sets of the cache.
    s[sums].storage_align(sums.op.axis[1], 32, 16)
    s[sums].unroll(p)
    s[sums].vectorize(lane)
    return s
