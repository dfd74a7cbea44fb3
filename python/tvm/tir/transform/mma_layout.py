"""Tiles that a warp holds together, as what each thread has of them."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import error
from tvm.arith import Analyzer
from tvm.ir import PointerType, PrimType, Range
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..block import Block
from ..buffer import Buffer, decl_buffer
from ..buffer_mutator import BufferMutator
from ..function import PrimFunc
from .function_pass import prim_func_pass

__all__ = ["TransformMmaBufferLayout"]

# Rows and columns that 32 threads hold together, and what each of them has: NVIDIA's PTX ISA,
# "Matrix Fragments for mma.m16n8k8". Operands are of four instructions, as ldmatrix brings them.
_TILES = {
    "m16n8k8.matrixA": ((32, 8), (4, 2)),
    "m16n8k8.matrixB": ((8, 32), (4, 2)),
    "m16n8k8.matrixC": ((16, 8), (2, 2)),
}


def _sums(row: Any, column: Any) -> list[Any]:
    """Tile and position of an element of the sums: rows eight apart, columns in pairs."""
    floordiv, floormod = tvm.tir.floordiv, tvm.tir.floormod
    return [
        floordiv(row, 16),
        floordiv(column, 8),
        floormod(floordiv(row, 8), 2),
        floormod(column, 2),
    ]


class _Layouts(BufferMutator):
    def __init__(self) -> None:
        super().__init__()
        self._analyzer = Analyzer()

    def map_buffer(self, buffer: Buffer) -> Buffer:
        scope = buffer.scope()
        if scope not in _TILES:
            return super().map_buffer(buffer)
        tile, own = _TILES[scope]
        outer = list(buffer.shape)[:-2]
        sizes = [n for n in list(buffer.shape)[-2:] if isinstance(n, tvm.tir.IntImm)]
        if len(sizes) != 2 or any(int(n) % t for n, t in zip(sizes, tile)):
            raise error.ValueError(
                f"TransformMmaBufferLayout: {buffer.name} in {scope} has the shape "
                f"{list(buffer.shape)}; its last axes have to be multiples of {tile[0]} and "
                f"{tile[1]}"
            )
        tiles = [int(n) // t for n, t in zip(sizes, tile)]
        return decl_buffer(
            [*outer, *tiles, *own],
            str(buffer.dtype),
            buffer.name,
            self._data(buffer),
            scope="local",
        )

    def _data(self, buffer: Buffer) -> expr.Var:
        if buffer.data not in self._vars:
            type_ = PointerType(PrimType(str(buffer.dtype)), "local")
            self._vars[buffer.data] = expr.Var(buffer.data.name, type_)
        return self._vars[buffer.data]

    def _indices(self, op: Any) -> list[Any]:
        indices = self.exprs(op.indices)
        scope = op.buffer.scope()
        if scope not in _TILES:
            return indices
        if not scope.endswith("matrixC"):
            raise error.ValueError(
                f"TransformMmaBufferLayout: an element of {op.buffer.name} in {scope} is accessed; "
                "only instructions of a warp access operands"
            )
        *outer, row, column = indices
        return [*outer, *map(self._analyzer.simplify, _sums(row, column))]

    def visit_for_(self, op: stmt.For) -> Any:
        self._analyzer.bind(op.loop_var, Range.from_min_extent(op.min, op.extent))
        return super().visit_for_(op)

    def visit_buffer_load_(self, op: expr.BufferLoad) -> Any:
        return expr.BufferLoad(self.buffer(op.buffer), self._indices(op))

    def visit_buffer_store_(self, op: stmt.BufferStore) -> Any:
        value = self.visit(op.value)
        return stmt.BufferStore(self.buffer(op.buffer), value, self._indices(op))

    def visit_block_(self, op: Block) -> Any:
        # Pointers are renewed where they are allocated, before they are used.
        for buffer in op.alloc_buffers:
            self.buffer(buffer)
        return super().visit_block_(op)

    def region(self, region: Any) -> Any:
        if region.buffer.scope() not in _TILES:
            return super().region(region)
        # Of a thread's own elements the region of a tile is all it has.
        buffer = self.buffer(region.buffer)
        return tvm.tir.BufferRegion(buffer, [Range(0, extent) for extent in buffer.shape])


@tvm._ffi.register_func("tir.transform.TransformMmaBufferLayout")
def TransformMmaBufferLayout() -> Pass:
    """Let each thread have its elements of tiles in ``m16n8k8.matrixA``, ``matrixB``, ``matrixC``.

    Such buffers become "local", with the number of tiles as axes and, of each tile, the elements
    of a thread: 2 x 2 of 16 x 8 sums, 4 x 2 of 32 x 8 or 8 x 32 operands. Element (i, j) of the
    sums is accessed by the thread that has it, at ``[i // 16, j // 8, i // 8 % 2, j % 2]``. For
    opaque blocks; lowering runs this pass where a buffer is in one of the scopes.

    Raises
    ------
    ValueError : (when run) a buffer has no whole tiles, or an element of an operand is accessed.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        return _Layouts().function(func)

    return prim_func_pass(run, opt_level=0, name="tir.TransformMmaBufferLayout")
