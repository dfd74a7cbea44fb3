"""How tensor intrinsics are written down: one block of a description, one of an implementation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir import Range

from ..analysis import get_block_access_region
from ..block import Block, BlockRealize
from ..buffer import Buffer, BufferRegion, decl_buffer
from ..expr import BufferLoad, Cast, IterVar, PrimExpr, Ramp, Var, const
from ..function import PrimFunc
from ..statement import BufferStore, For, ForKind, Stmt

__all__ = ["dot_product", "function_of_block", "load_lanes", "nest", "operand", "whole"]


def operand(
    name: str,
    shape: Sequence[int],
    dtype: str,
    scope: str = "global",
    strides: Sequence[Any] | None = None,
) -> Buffer:
    """A parameter that may begin anywhere in the buffer it is a part of."""
    return decl_buffer(tuple(shape), dtype, name, scope=scope, strides=strides, offset_factor=1)


def whole(buffer: Buffer) -> BufferRegion:
    """All of a buffer."""
    return BufferRegion(buffer, [Range(0, extent) for extent in buffer.shape])


def function_of_block(
    params: Sequence[Buffer], reads: Sequence[Buffer], writes: Sequence[Buffer], body: Stmt
) -> PrimFunc:
    """A function whose body is one block that accesses buffers as wholes."""
    regions = [whole(buffer) for buffer in reads], [whole(buffer) for buffer in writes]
    block = Block([], *regions, "root", body)
    return PrimFunc(list(params), BlockRealize([], True, block))


def nest(extents: Sequence[int], kinds: str, name: str, body: Callable[..., Stmt]) -> Stmt:
    """Loops around a block of one variable each; `kinds` has an S or R for each."""
    types = {"S": IterVar.DataPar, "R": IterVar.CommReduce}
    loops = [Var(f"i{d}", "int32") for d in range(len(extents))]
    iters = [
        IterVar(Range(0, extent), Var(f"v{d}", "int32"), types[kinds[d]])
        for d, extent in enumerate(extents)
    ]
    stmt = body(*[axis.var for axis in iters])
    reads, writes = _regions(stmt)
    realize: Stmt = BlockRealize(loops, True, Block(iters, reads, writes, name, stmt))
    for loop, extent in reversed(list(zip(loops, extents, strict=True))):
        realize = For(loop, 0, extent, ForKind.SERIAL, realize)
    return realize


def _regions(stmt: Stmt) -> tuple[list[BufferRegion], list[BufferRegion]]:
    reads, writes, _ = get_block_access_region(Block([], [], [], "", stmt))
    return reads, writes


def load_lanes(buffer: Buffer, indices: Sequence[Any], lanes: int) -> PrimExpr:
    """`lanes` neighbours in memory as one vector, which may go on in the next row."""
    first = [const(index, "int32") for index in indices]
    return BufferLoad(buffer, [*first[:-1], Ramp(first[-1], const(1, "int32"), lanes)])


def dot_product(
    rows: int,
    depth: int,
    dtypes: tuple[str, str, str],
    implement: Callable[[Buffer, Buffer, Buffer], Stmt],
    scopes: tuple[str, str, str] = ("global", "global", "global"),
) -> tuple[PrimFunc, PrimFunc]:
    """``C[i] += A[k] * B[i, k]`` and a statement that does it; without rows, ``C[0]`` and ``B[k]``.

    Parameters
    ----------
    rows : elements of the result; 0 for one, without an axis of the second operand for it.
    depth : products that an element sums up.
    dtypes : of A, B and C; products are of the type of C.
    implement : what does it, given A, B and C.

    Returns
    -------
    Description and implementation.
    """
    shapes = ((depth,), (rows, depth), (rows,)) if rows else ((depth,), (depth,), (1,))

    def params() -> list[Buffer]:
        return [
            operand(name, shape, dtype, scope)
            for name, shape, dtype, scope in zip("ABC", shapes, dtypes, scopes, strict=True)
        ]

    def update(a: Buffer, b: Buffer, c: Buffer, *at: Var) -> Stmt:
        row, k = (at[:1], at[-1]) if rows else ((0,), at[-1])
        product = _as(dtypes[2], a[k]) * _as(dtypes[2], b[at if rows else k])
        return BufferStore(c, c[row[0]] + product, list(row))

    a, b, c = params()
    extents = [rows, depth] if rows else [depth]
    body = nest(extents, "SR" if rows else "R", "update", lambda *at: update(a, b, c, *at))
    desc = function_of_block([a, b, c], [c, a, b], [c], body)
    x, y, z = params()
    impl = function_of_block([x, y, z], [z, x, y], [z], implement(x, y, z))
    return desc, impl


def _as(dtype: str, value: PrimExpr) -> PrimExpr:
    return value if value.dtype == dtype else Cast(dtype, value)
