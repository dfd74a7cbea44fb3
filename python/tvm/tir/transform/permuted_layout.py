"""Shared memory with its vectors permuted, so that the rows of a matrix are in all banks."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import error
from tvm.arith import Analyzer
from tvm.ir import PrimExpr, Range
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..block import Block, BlockRealize
from ..buffer import Buffer
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from .function_pass import prim_func_pass

__all__ = ["InjectPermutedLayout"]

_ANNOTATION = "permuted_layout"
# What a thread gives ldmatrix, and one access of the widest kind: 16 bytes.
_VECTOR_BYTES = 16


class _Places(StmtExprVisitor):
    """Shared buffers by their pointers, and who accesses them: blocks that ask for it, others."""

    def __init__(self) -> None:
        self.buffers: dict[expr.Var, Buffer] = {}
        self.inside: set[expr.Var] = set()
        self.outside: set[expr.Var] = set()
        self._asked = False

    def visit_block_(self, op: Block) -> None:
        for buffer in op.alloc_buffers:
            if buffer.scope().startswith("shared"):
                self.buffers[buffer.data] = buffer
        outer, self._asked = self._asked, self._asked or bool(op.annotations.get(_ANNOTATION))
        # What a block says of its regions is no access.
        if op.init is not None:
            self.visit(op.init)
        self.visit(op.body)
        self._asked = outer

    def visit_var_(self, op: expr.Var) -> None:
        (self.inside if self._asked else self.outside).add(op)

    def _access(self, op: Any) -> None:
        self.visit_var_(op.buffer.data)
        self._visit_below(op)

    visit_buffer_load_ = _access
    visit_buffer_store_ = _access


class _Permuter(StmtExprMutator):
    def __init__(self, buffers: dict[expr.Var, Buffer]) -> None:
        self._buffers = buffers
        self._analyzer = Analyzer()

    def visit_for_(self, op: stmt.For) -> Any:
        self._analyzer.bind(op.loop_var, Range.from_min_extent(op.min, op.extent))
        return self._visit_below(op)

    def visit_block_realize_(self, op: BlockRealize) -> Any:
        # Blocks are visited here, so that the regions they name stay as they are.
        block = op.block
        init = None if block.init is None else self.visit(block.init)
        annotations = {k: v for k, v in block.annotations.items() if k != _ANNOTATION}
        made = Block(
            block.iter_vars,
            block.reads,
            block.writes,
            block.name_hint,
            self.visit(block.body),
            init,
            block.alloc_buffers,
            block.match_buffers,
            annotations,
        )
        return BlockRealize(op.iter_values, op.predicate, made)

    def visit_buffer_load_(self, op: expr.BufferLoad) -> Any:
        indices = [self.visit(index) for index in op.indices]
        return expr.BufferLoad(op.buffer, self._indices(op.buffer, indices))

    def visit_buffer_store_(self, op: stmt.BufferStore) -> Any:
        indices = [self.visit(index) for index in op.indices]
        return stmt.BufferStore(op.buffer, self.visit(op.value), self._indices(op.buffer, indices))

    def _indices(self, buffer: Buffer, indices: list[PrimExpr]) -> list[PrimExpr]:
        if buffer.data not in self._buffers:
            return indices
        *outer, row, column = indices
        return [*outer, row, self._column(buffer, row, column)]

    def _column(self, buffer: Buffer, row: PrimExpr, column: PrimExpr) -> PrimExpr:
        """Where the element of a column is in a row: its vector is another one of the row's.

        Eight rows one after the other have the vectors of a column at eight different places of
        128 bytes, which are all the banks.
        """
        lanes = _VECTOR_BYTES // tvm.DataType(str(buffer.dtype)).itemsize
        vectors = int(buffer.shape[-1]) // lanes
        simplify = self._analyzer.simplify
        if vectors % 8 == 0:
            key = simplify(tvm.tir.floormod(row, 8))
        else:
            # Two rows of four vectors are 128 bytes.
            key = simplify(tvm.tir.floormod(tvm.tir.floordiv(row, 2), 4))
        vector = simplify(tvm.tir.floordiv(column, lanes))
        within = simplify(tvm.tir.floormod(column, lanes))
        return (vector ^ key) * lanes + within

    def visit_call_(self, op: expr.Call) -> Any:
        name = str(getattr(op.op, "name", ""))
        data = _pointer_of(op)
        if data is None or data not in self._buffers:
            return self._visit_below(op)
        buffer = self._buffers[data]
        if name != "tir.ptx_ldmatrix":
            raise error.ValueError(
                f"InjectPermutedLayout: {name} takes the address of {buffer.name}, whose layout is "
                "permuted; only ptx_ldmatrix and accesses of elements know of that"
            )
        args = [self.visit(arg) for arg in op.args[:5]]
        pointer, offset = op.args[5], self.visit(op.args[6])
        if isinstance(pointer, expr.Call):
            offset = self.visit(pointer.args[2]) + offset
            begin = expr.Call(
                str(pointer.dtype),
                pointer.op,
                [pointer.args[0], data, tvm.tir.const(0, str(offset.dtype)), *pointer.args[3:]],
            )
        else:
            begin = pointer
        row_size = int(buffer.shape[-1])
        simplify = self._analyzer.simplify
        row = simplify(tvm.tir.floordiv(offset, row_size))
        column = simplify(tvm.tir.floormod(offset, row_size))
        place = simplify(row * row_size) + self._column(buffer, row, column)
        return expr.Call(str(op.dtype), op.op, [*args, begin, place])


def _pointer_of(op: expr.Call) -> expr.Var | None:
    """The memory that an instruction takes the address of, by its pointer."""
    for argument in op.args:
        if isinstance(argument, expr.Var) and str(argument.dtype) == "handle":
            scope = getattr(argument.type_annotation, "storage_scope", "")
            if str(scope).startswith("shared"):
                return argument
        elif isinstance(argument, expr.Call) and (
            getattr(argument.op, "name", "") == "tir.tvm_access_ptr"
        ):
            data = argument.args[1]
            if str(data.type_annotation.storage_scope).startswith("shared"):
                return data
    return None


def _check(buffer: Buffer, places: _Places) -> None:
    if buffer.data in places.outside:
        raise error.ValueError(
            f"InjectPermutedLayout: {buffer.name} is accessed in blocks with the annotation "
            f"{_ANNOTATION} and in others, which would find its elements elsewhere; annotate all"
        )
    row = buffer.shape[-1]
    size = tvm.DataType(str(buffer.dtype)).itemsize
    lanes = _VECTOR_BYTES // size
    fits = isinstance(row, tvm.tir.IntImm) and len(buffer.shape) >= 2 and not buffer.strides
    if not fits or _VECTOR_BYTES % size or int(row) % (4 * lanes):
        raise error.ValueError(
            f"InjectPermutedLayout: rows of {buffer.name}, of shape {list(buffer.shape)} and type "
            f"{buffer.dtype}, are not four or a multiple of eight vectors of 16 bytes long"
        )
    if int(row) % (8 * lanes) and int(row) != 4 * lanes:
        raise error.ValueError(
            f"InjectPermutedLayout: rows of {buffer.name} have {int(row) // lanes} vectors of 16 "
            "bytes; make it four or a multiple of eight"
        )


@tvm._ffi.register_func("tir.transform.InjectPermutedLayout")
def InjectPermutedLayout() -> Pass:
    """Permute the vectors of shared memory, so that reading a column of it meets all banks.

    For shared buffers of two axes or more that blocks with the annotation ``permuted_layout``
    access: of row r, the vector of 16 bytes number v is at the place of number ``v ^ (r % 8)``,
    or ``v ^ (r // 2 % 4)`` where rows have four vectors. Accesses of elements and addresses that
    ``ptx_ldmatrix`` takes follow. Lowering runs this pass where a block asks for it.

    Raises
    ------
    ValueError : (when run) blocks without the annotation access such a buffer, its rows do not
        have four vectors or a multiple of eight, or another instruction takes its address.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        places = _Places()
        places.visit(func.body)
        buffers = {d: b for d, b in places.buffers.items() if d in places.inside}
        if not buffers:
            return func
        for buffer in buffers.values():
            _check(buffer, places)
        return func.with_body(_Permuter(buffers).visit(func.body))

    return prim_func_pass(run, opt_level=0, name="tir.InjectPermutedLayout")
