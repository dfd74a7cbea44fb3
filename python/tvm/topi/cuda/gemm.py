"""Matrix products: register tiles for float32, tensor cores for half precision."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te

from ..utils import const_shape
from .tensor_intrin import (
    intrin_wmma_gemm,
    intrin_wmma_load_matrix_A,
    intrin_wmma_load_matrix_W,
    intrin_wmma_store_matrix,
)

__all__ = ["GemmTile", "matmul", "schedule_matmul", "schedule_matmul_tensorcore"]

_VECTOR = 4


@dataclass(frozen=True)
class GemmTile:
    """How a product of matrices is divided among blocks, threads and steps.

    Attributes
    ----------
    rows, columns : threads of a block, as a grid.
    thread_rows, thread_columns : elements of the result a thread has in registers.
    depth : steps of the reduction whose operands are in shared memory at a time.
    """

    rows: int = 16
    columns: int = 16
    thread_rows: int = 8
    thread_columns: int = 8
    depth: int = 8

    @property
    def block_rows(self) -> int:
        return self.rows * self.thread_rows

    @property
    def block_columns(self) -> int:
        return self.columns * self.thread_columns

    def check(self, m: int, n: int, k: int) -> None:
        """ValueError unless the tile covers a product without remainders."""
        for extent, step, what in (
            (m, self.block_rows, "rows"),
            (n, self.block_columns, "columns"),
            (k, self.depth, "steps"),
        ):
            if extent % step:
                raise ValueError(
                    f"topi.cuda: {extent} {what} are no multiple of the tile's {step}; choose "
                    "another GemmTile or pad the operands"
                )
        threads = self.rows * self.columns
        for size, what in ((self.block_rows, "rows"), (self.block_columns, "columns")):
            if size * self.depth % (threads * _VECTOR):
                raise ValueError(
                    f"topi.cuda: {size} {what} times depth {self.depth} are no multiple of "
                    f"{threads} threads times {_VECTOR}; choose another GemmTile"
                )


def matmul(a: te.Tensor, b: te.Tensor, out_dtype: str | None = None) -> te.Tensor:
    """a (M, K) times b (K, N), of shape (M, N).

    A float32 product reads `a` through a transposed stage, which the schedule puts into shared
    memory: a thread then reads its rows of one step as vectors.
    """
    m, depth = const_shape(a.shape)
    n = const_shape(b.shape)[1]
    out_dtype = out_dtype or a.dtype
    k = te.reduce_axis((0, depth), name="k")
    if a.dtype != "float32":
        return te.compute(
            (m, n),
            lambda i, j: te.sum(a[i, k].astype(out_dtype) * b[k, j].astype(out_dtype), axis=k),
            name="matmul",
        )
    turned = te.compute((depth, m), lambda l, i: a[i, l], name="a_transposed")
    return te.compute((m, n), lambda i, j: te.sum(turned[k, i] * b[k, j], axis=k), name="matmul")


def _load_together(s: te.Schedule, stage: te.Tensor, rows: int, columns: int, vector: int) -> None:
    """Let all threads of a block compute a stage in turns, `vector` neighbours at a time."""
    fused = s[stage].fuse(*s[stage].op.axis)
    fused, lane = s[stage].split(fused, factor=vector)
    fused, tx = s[stage].split(fused, factor=columns)
    _, ty = s[stage].split(fused, factor=rows)
    s[stage].bind(tx, te.thread_axis((0, columns), "threadIdx.x"))
    s[stage].bind(ty, te.thread_axis((0, rows), "threadIdx.y"))
    s[stage].vectorize(lane)


def schedule_matmul(product: te.Tensor, tile: GemmTile | None = None) -> te.Schedule:
    """Schedule a float32 :func:`matmul`.

    A block computes a tile of the result from panels in shared memory, of which there are two so
    that one fills while the other is used. A thread has four vectors of its rows and columns half a
    block apart, so that neighbouring threads read neighbouring words of shared memory.

    Raises
    ------
    ValueError : the tile leaves remainders.
    """
    tile = tile or GemmTile()
    turned, b = product.op.input_tensors
    m, n = const_shape(product.shape)
    depth = const_shape(b.shape)[0]
    tile.check(m, n, depth)
    s = te.create_schedule(product.op)
    s[turned].set_scope("shared")
    b_shared = s.cache_read(b, "shared", [product])
    a_local = s.cache_read(turned, "local", [product])
    b_local = s.cache_read(b_shared, "local", [product])
    c_local = s.cache_write(product, "local")

    i, j = s[product].op.axis
    by, i = s[product].split(i, factor=tile.block_rows)
    bx, j = s[product].split(j, factor=tile.block_columns)
    vy, i = s[product].split(i, nparts=max(1, tile.thread_rows // _VECTOR))
    vx, j = s[product].split(j, nparts=max(1, tile.thread_columns // _VECTOR))
    ty, i = s[product].split(i, nparts=tile.rows)
    tx, j = s[product].split(j, nparts=tile.columns)
    s[product].reorder(by, bx, vy, vx, ty, tx, i, j)
    s[product].bind(by, te.thread_axis("blockIdx.y"))
    s[product].bind(bx, te.thread_axis("blockIdx.x"))
    s[product].bind(vy, te.thread_axis("vthread", name="vy"))
    s[product].bind(vx, te.thread_axis("vthread", name="vx"))
    s[product].bind(ty, te.thread_axis((0, tile.rows), "threadIdx.y"))
    s[product].bind(tx, te.thread_axis((0, tile.columns), "threadIdx.x"))
    s[product].vectorize(j)

    s[c_local].compute_at(s[product], tx)
    i, j = s[c_local].op.axis
    (k,) = s[c_local].op.reduce_axis
    k_out, k_in = s[c_local].split(k, factor=tile.depth)
    s[c_local].reorder(k_out, k_in, i, j)
    s[c_local].unroll(k_in)
    s[c_local].unroll(i)
    s[c_local].unroll(j)
    for stage in (turned, b_shared):
        s[stage].compute_at(s[c_local], k_out)
        s[stage].double_buffer()
    for stage in (a_local, b_local):
        s[stage].compute_at(s[c_local], k_in)
        s[stage].vectorize(s[stage].op.axis[1])
    _load_together(s, b_shared, tile.rows, tile.columns, _VECTOR)
    # Neighbouring steps of one row are neighbours in memory, but not in the transposed stage.
    l, i = s[turned].op.axis
    l, step = s[turned].split(l, factor=_VECTOR)
    s[turned].reorder(l, i, step)
    fused = s[turned].fuse(l, i)
    fused, tx = s[turned].split(fused, factor=tile.columns)
    _, ty = s[turned].split(fused, factor=tile.rows)
    s[turned].bind(tx, te.thread_axis((0, tile.columns), "threadIdx.x"))
    s[turned].bind(ty, te.thread_axis((0, tile.rows), "threadIdx.y"))
    s[turned].vectorize(step)
    return s


def schedule_matmul_tensorcore(
    product: te.Tensor,
    warp_rows: int = 2,
    warp_columns: int = 2,
    warp_tiles: tuple[int, int] = (2, 2),
    depth: int = 32,
) -> te.Schedule:
    """Schedule a half precision :func:`matmul` on fragments of 16 x 16 x 16.

    Parameters
    ----------
    warp_rows, warp_columns : warps of a block, as a grid.
    warp_tiles : fragments of the result a warp has, along rows and columns.
    depth : steps of the reduction whose operands are in shared memory at a time.

    Raises
    ------
    ValueError : the extents are no multiples of the tiles.
    """
    size = 16
    a, b = product.op.input_tensors
    m, n = const_shape(product.shape)
    steps = const_shape(b.shape)[0]
    block_m, block_n = warp_rows * warp_tiles[0] * size, warp_columns * warp_tiles[1] * size
    for extent, step, what in (
        (m, block_m, "rows"),
        (n, block_n, "columns"),
        (steps, depth, "steps"),
    ):
        if extent % step:
            raise ValueError(
                f"topi.cuda: {extent} {what} are no multiple of the tile's {step}; choose other "
                "tiles or pad the operands"
            )
    s = te.create_schedule(product.op)
    a_shared = s.cache_read(a, "shared", [product])
    b_shared = s.cache_read(b, "shared", [product])
    a_frag = s.cache_read(a_shared, "wmma.matrix_a", [product])
    b_frag = s.cache_read(b_shared, "wmma.matrix_b", [product])
    c_frag = s.cache_write(product, "wmma.accumulator")

    i, j = s[product].op.axis
    by, i = s[product].split(i, factor=block_m)
    bx, j = s[product].split(j, factor=block_n)
    ty, i = s[product].split(i, factor=warp_tiles[0] * size)
    tz, j = s[product].split(j, factor=warp_tiles[1] * size)
    i, i_in = s[product].split(i, factor=size)
    j, j_in = s[product].split(j, factor=size)
    s[product].reorder(by, bx, ty, tz, i, j, i_in, j_in)
    s[product].bind(by, te.thread_axis("blockIdx.y"))
    s[product].bind(bx, te.thread_axis("blockIdx.x"))
    s[product].bind(ty, te.thread_axis((0, warp_rows), "threadIdx.y"))
    s[product].bind(tz, te.thread_axis((0, warp_columns), "threadIdx.z"))
    store = intrin_wmma_store_matrix(
        [n, 1], [warp_tiles[1] * size, 1], (size,) * 3, product.dtype, (size, size), (size, size),
        "global",
    )  # fmt: skip
    s[product].tensorize(i_in, store)

    s[c_frag].compute_at(s[product], tz)
    i, j = s[c_frag].op.axis
    (k,) = s[c_frag].op.reduce_axis
    i, i_in = s[c_frag].split(i, factor=size)
    j, j_in = s[c_frag].split(j, factor=size)
    k, k_in = s[c_frag].split(k, factor=size)
    k_out, k = s[c_frag].split(k, factor=depth // size)
    s[c_frag].reorder(k_out, k, i, j, i_in, j_in, k_in)
    s[a_frag].compute_at(s[c_frag], k)
    s[b_frag].compute_at(s[c_frag], k)
    left = te.placeholder((size, size), name="left", dtype=a.dtype)
    right = te.placeholder((size, size), name="right", dtype=b.dtype)
    l = te.reduce_axis((0, size), name="l")
    block = te.compute(
        (size, size),
        lambda i, j: te.sum(
            left[i, l].astype(product.dtype) * right[l, j].astype(product.dtype), axis=l
        ),
        name="block",
    )
    ld_a, ld_b, ld_c = size, warp_tiles[1] * size, warp_tiles[1] * size
    gemm = intrin_wmma_gemm(left, right, block, [ld_a, 1], [ld_b, 1], [ld_c, 1], (size,) * 3)
    s[c_frag].tensorize(i_in, gemm)

    # Rows a few elements longer than the tile spread over the banks of shared memory.
    pad = 8
    for shared, frag, load, ld, ld_shared in (
        (a_shared, a_frag, intrin_wmma_load_matrix_A, ld_a, depth + pad),
        (b_shared, b_frag, intrin_wmma_load_matrix_W, ld_b, block_n + pad),
    ):
        i, j = s[frag].op.axis
        i, i_in = s[frag].split(i, factor=size)
        j, j_in = s[frag].split(j, factor=size)
        s[frag].reorder(i, j, i_in, j_in)
        intrin = load(
            [ld, 1], [ld_shared, 1], (size,) * 3, "row_major", (size, size), (size, size), a.dtype
        )
        s[frag].tensorize(i_in, intrin)
        s[shared].compute_at(s[c_frag], k_out)
        row = s[shared].op.axis[0]
        s[shared].storage_align(row, ld_shared, 0)
        fused = s[shared].fuse(*s[shared].op.axis)
        fused, lane = s[shared].split(fused, factor=8)
        fused, tx = s[shared].split(fused, factor=32)
        fused, tz = s[shared].split(fused, factor=warp_columns)
        turns, ty = s[shared].split(fused, factor=warp_rows)
        s[shared].pragma(turns, "async_copy")
        s[shared].bind(tx, te.thread_axis((0, 32), "threadIdx.x"))
        s[shared].bind(tz, te.thread_axis((0, warp_columns), "threadIdx.z"))
        s[shared].bind(ty, te.thread_axis((0, warp_rows), "threadIdx.y"))
        s[shared].vectorize(lane)
    return s
