"""Matrix products with a constant right side laid out in the order the inner loop reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm import te, tir
from tvm.target import Target

from ..utils import const_shape
from .conv2d import RegisterTile
from .dot_products import DotInstruction
from .tiles import row_axis
from .vectors import (
    copy_panel,
    inline_packing,
    inline_producers,
    prefetch_weight,
    sum_in_lanes,
    vector_lanes,
)

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "matmul_packed",
    "pack_matmul_weight",
    "schedule_dense_panels",
    "schedule_matmul_dot",
    "schedule_matmul_packed",
]


def pack_matmul_weight(weight: np.ndarray, block: int) -> np.ndarray:
    """(K, N) weights as (panel, K, block); the last panel is filled up with zeros."""
    import numpy as np

    depth, filters = weight.shape
    panels = -(-filters // block)
    padded = np.zeros((depth, panels * block), weight.dtype)
    padded[:, :filters] = weight
    return np.ascontiguousarray(padded.reshape(depth, panels, block).transpose(1, 0, 2))


def matmul_packed(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """data (M, K) times packed weights (panels, K, block), of shape (M, panels * block)."""
    rows, depth = const_shape(data.shape)
    panels, _, block = const_shape(weight.shape)
    k = te.reduce_axis((0, depth), name="k")
    return te.compute(
        (rows, panels * block),
        lambda i, j: te.sum(
            data[i, k] * weight[tir.floordiv(j, block), k, tir.floormod(j, block)], axis=k
        ),
        name="matmul_packed",
    )


def schedule_matmul_packed(
    product: te.Tensor,
    tile: RegisterTile,
    row_block: int | None = None,
    depth_block: int | None = None,
    output: te.Tensor | None = None,
    target: Target | None = None,
    lanes: int | None = None,
    copy_panels: bool = False,
    panels_outside: bool = False,
    dot: DotInstruction | None = None,
    turned: bool = False,
) -> te.Schedule:
    """Blocks of rows outside, then panels of columns, then register tiles.

    Parameters
    ----------
    product : result of :func:`matmul_packed`, or of any product (..., M, K) times (..., K, N),
        whose right side is read where it is.
    tile : `rows` times `columns` rows of the result, `vectors` vectors of its columns.
    row_block : rows of `data` that should stay in the second-level cache; by default all.
    depth_block : steps of the reduction after which the tile goes back to memory; by default all.
    output : elementwise function of `product`, or of its first columns, to compute while results
        are in registers.
    lanes : elements of a vector; by default what a register of the target holds.
    copy_panels : copy a panel of the right side to one place first, as in
        :func:`schedule_conv2d_nhwc_packed`.
    panels_outside : panels outside of the leading dimensions, so that a panel of a right side that
        all of these share stays in cache.
    dot : the instruction that sums up products, for weights packed as it reads them.
    turned : the right side is (..., N, K), and copies of its panels are the other way round.
    """
    target = target or Target.current() or Target("llvm")
    tile.check(target)
    lanes = lanes or vector_lanes(target, product.dtype)
    output = product if output is None else output
    s = te.create_schedule(output.op)
    inline_producers(s, output, first=product)
    _, weight = product.op.input_tensors
    inline_packing(s, weight)
    local = s.cache_write(product, "local") if output is product else product
    rows = row_axis(product)
    *batch, j = output.op.axis
    i = batch.pop(rows)
    tile_rows = tile.rows * tile.columns
    block, i = s[output].split(i, factor=row_block or const_shape(product.shape)[rows])
    panel, j = s[output].split(j, factor=lanes * tile.vectors)
    i, i_in = s[output].split(i, factor=tile_rows)
    vector, lane = s[output].split(j, factor=lanes)
    outside = (panel, *batch, block) if panels_outside else (*batch, block, panel)
    s[output].reorder(*outside, i, i_in, vector, lane)
    chunk = s[output].fuse(*outside)
    s[output].parallel(chunk)
    if copy_panels:
        copy_panel(s, weight, local, output, chunk, lanes, turned)
    s[output].unroll(i_in)
    s[output].unroll(vector)
    s[output].vectorize(lane)
    s[local].compute_at(s[output], i)
    if output is not product:
        s[local].set_scope("local")
    i, j = s[local].op.axis[rows], s[local].op.axis[-1]
    (k,) = s[local].op.reduce_axis
    vector, lane = s[local].split(j, factor=lanes)
    if dot is not None:
        k, inner = s[local].split(k, factor=dot.depth)
        s[local].reorder(k, i, vector, lane, inner)
        s[local].tensorize(lane, dot.intrinsic)
    elif depth_block is not None:
        k_out, k = s[local].split(k, factor=depth_block)
        s[local].reorder(k_out, k, i, vector, lane)
    else:
        s[local].reorder(k, i, vector, lane)
    s[local].unroll(i)
    s[local].unroll(vector)
    if dot is None:
        s[local].vectorize(lane)
    if tile.prefetch:
        prefetch_weight(s, local, weight, k, tile.prefetch)
    return s


def schedule_dense_panels(
    product: te.Tensor,
    rows: tuple[int, int],
    columns: tuple[int, int],
    depth: int,
    output: te.Tensor | None = None,
    target: Target | None = None,
) -> te.Schedule:
    """Tiles of rows and columns in parallel, and in each register tiles one after the other.

    Parameters
    ----------
    product : (M, K) times the transpose of weights (N, K), which are best stored in panels of
        ``columns[1]``, see :func:`pack_dense_weight`.
    rows, columns : register tiles in a tile, and rows or columns of a register tile.
    depth : steps of the reduction that are written out.
    output : elementwise function of `product` to compute while results are in registers.
    """
    target = target or Target.current() or Target("llvm")
    output = product if output is None else output
    s = te.create_schedule(output.op)
    inline_producers(s, output, first=product)
    inline_packing(s, product.op.input_tensors[1])
    local = s.cache_write(product, "local") if output is product else product
    i, j = output.op.axis
    i, i_in = s[output].split(i, factor=rows[1])
    j, j_in = s[output].split(j, factor=columns[1])
    i_out, i = s[output].split(i, factor=rows[0])
    j_out, j = s[output].split(j, factor=columns[0])
    s[output].reorder(i_out, j_out, i, j, i_in, j_in)
    s[output].parallel(s[output].fuse(i_out, j_out))
    s[output].unroll(i_in)
    s[output].vectorize(j_in)
    s[local].compute_at(s[output], j)
    if output is not product:
        s[local].set_scope("local")
    i, j = s[local].op.axis
    (k,) = s[local].op.reduce_axis
    k, k_in = s[local].split(k, factor=depth)
    s[local].reorder(k, k_in, i, j)
    s[local].unroll(k_in)
    s[local].unroll(i)
    s[local].vectorize(j)
    return s


def _dot_columns_in_vectors(
    product: te.Tensor, tile: RegisterTile, output: te.Tensor, lanes: int
) -> te.Schedule:
    """`schedule_matmul_dot` of as many columns as a vector has lanes."""
    s = te.create_schedule(output.op)
    inline_producers(s, output, first=product)
    if output.op.same_as(product.op):
        product = s.cache_write(output, "local")
    else:
        s[product].set_scope("local")
    *batch, i, j = s[output].op.axis
    j, j_in = s[output].split(j, factor=lanes)
    i, i_in = s[output].split(i, factor=tile.rows)
    # A panel of the right side stays in the first-level cache while all rows pass.
    s[output].reorder(*batch, j, i, i_in, j_in)
    s[output].parallel(s[output].fuse(*batch, j))
    s[output].vectorize(j_in)
    s[product].compute_at(s[output], i_in)
    partial = sum_in_lanes(s, product, lanes)
    s[partial].compute_at(s[output], i)
    *rest, i, j, lane = s[partial].op.axis
    j, j_in = s[partial].split(j, factor=tile.vectors)
    s[partial].reorder(*rest, j, s[partial].op.reduce_axis[0], i, j_in, lane)
    for loop in (i, j_in):
        s[partial].unroll(loop)
    return s


def schedule_matmul_dot(
    product: te.Tensor,
    tile: RegisterTile,
    output: te.Tensor | None = None,
    target: Target | None = None,
    lanes: int | None = None,
) -> te.Schedule:
    """Inner products of rows: vectors run along the reduction, whose lanes are added up at the end.

    Parameters
    ----------
    product : (..., M, K) times the transpose of (..., N, K), both read where they are.
    tile : `rows` rows by `vectors` columns of the result, a vector of partial sums each.
    output : elementwise function of `product` to compute while results are in registers.
    lanes : partial sums of a result, which must divide K; by default what a register holds.
    """
    target = target or Target.current() or Target("llvm")
    tile.check(target)
    lanes = lanes or vector_lanes(target, product.dtype)
    output = product if output is None else output
    if len(output.shape) > 1 and const_shape(output.shape)[-1] % lanes == 0:
        return _dot_columns_in_vectors(product, tile, output, lanes)
    s = te.create_schedule(output.op)
    inline_producers(s, output, first=product)
    _, lane = s[product].split(product.op.reduce_axis[0], factor=lanes)
    partial = s.rfactor(product, lane)
    *batch, j = output.op.axis
    j, j_in = s[output].split(j, factor=tile.vectors)
    if batch:
        *batch, i = batch
        i, i_in = s[output].split(i, factor=tile.rows)
        # A panel of the right side stays in the first-level cache while all rows pass.
        s[output].reorder(*batch, j, i, i_in, j_in)
        s[output].parallel(s[output].fuse(*batch, j))
        s[output].unroll(i_in)
    else:
        s[output].parallel(j)
        i = j
    s[output].unroll(j_in)
    s[partial].compute_at(s[output], i)
    lane, *rest = s[partial].op.axis
    (k,) = s[partial].op.reduce_axis
    s[partial].reorder(k, *rest, lane)
    for loop in rest:
        s[partial].unroll(loop)
    s[partial].vectorize(lane)
    if not output.op.same_as(product.op):
        s[product].compute_at(s[output], i)
        for loop in s[product].op.axis:
            s[product].unroll(loop)
    s[product].unroll(s[product].op.reduce_axis[0])
    return s
