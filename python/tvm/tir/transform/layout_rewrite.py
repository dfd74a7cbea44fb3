"""Layouts that functions ask of their buffers: stored beforehand, or applied to the function."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import error
from tvm.arith import Analyzer
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..block import Block
from ..buffer import Buffer, decl_buffer
from ..buffer_mutator import BufferMutator
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from ..index_map import IndexMap
from .function_pass import prim_func_pass

__all__ = ["ApplyLayoutTransforms", "RemoveWeightLayoutRewriteBlock"]

_PREPROC = "meta_schedule.layout_rewrite_preproc"
_LAYOUTS = "layout_transform_map"


class _Copies(StmtExprVisitor):
    """Blocks that bring an operand into another layout, and how often each buffer is read."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.reads: dict[expr.Var, int] = {}
        self.constants: dict[expr.Var, stmt.AllocateConst] = {}

    def visit_block_(self, op: Block) -> None:
        if op.annotations.get(_PREPROC):
            self.blocks.append(op)
        self._visit_below(op)

    def visit_buffer_load_(self, op: expr.BufferLoad) -> None:
        self.reads[op.buffer.data] = self.reads.get(op.buffer.data, 0) + 1
        self._visit_below(op)

    def visit_allocate_const_(self, op: stmt.AllocateConst) -> None:
        self.constants[op.buffer_var] = op
        self._visit_below(op)


class _Remover(StmtExprMutator):
    def __init__(self, copies: dict[Block, Buffer], constants: dict[expr.Var, Any]) -> None:
        self._blocks = copies
        self._made = set(copies.values())
        self._constants = constants

    def visit_block_(self, op: Block) -> Any:
        if op in self._blocks:
            nothing = stmt.Evaluate(0)
            return Block(op.iter_vars, [], [], op.name_hint, nothing, annotations=op.annotations)
        allocated = [buffer for buffer in op.alloc_buffers if buffer not in self._made]
        block = self._visit_below(op)
        if len(allocated) == len(op.alloc_buffers):
            return block
        return Block(
            block.iter_vars,
            block.reads,
            block.writes,
            block.name_hint,
            block.body,
            block.init,
            allocated,
            block.match_buffers,
            block.annotations,
        )

    def visit_allocate_const_(self, op: stmt.AllocateConst) -> Any:
        if op.buffer_var not in self._constants:
            return self._visit_below(op)
        buffer, data = self._constants[op.buffer_var]
        body = self.visit(op.body)
        return stmt.AllocateConst(
            buffer.data, str(op.dtype), list(buffer.shape), data, body, op.annotations
        )

    def visit_decl_buffer_(self, op: stmt.DeclBuffer) -> Any:
        if op.buffer.data not in self._constants:
            return self._visit_below(op)
        return stmt.DeclBuffer(self._constants[op.buffer.data][0], self.visit(op.body))


def _layout_of(block: Block) -> tuple[Buffer, Buffer, IndexMap] | None:
    """What a block copies to what, and where each element goes."""
    store = block.body
    if not isinstance(store, stmt.BufferStore) or not isinstance(store.value, expr.BufferLoad):
        return None
    load = store.value
    places = list(load.indices)
    if not all(isinstance(place, expr.Var) for place in places) or len(set(places)) != len(places):
        return None
    return load.buffer, store.buffer, IndexMap(places, list(store.indices))


@tvm._ffi.register_func("tir.transform.RemoveWeightLayoutRewriteBlock")
def RemoveWeightLayoutRewriteBlock(skip_ndarray_rewrite: bool = False) -> Pass:
    """Let the callers of functions lay their operands out, instead of copies inside.

    A block with the annotation ``meta_schedule.layout_rewrite_preproc`` copies an operand element
    by element into a buffer that the rest reads. The parameter becomes that buffer, with its
    shape, and the block is left empty. Constants inside of the function are laid out here. Copies
    of operands that other blocks read too stay as they are.

    Parameters
    ----------
    skip_ndarray_rewrite : give constants their new shape without moving the elements, which is
        enough where only the time counts.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        copies = _Copies()
        copies.visit(func.body)
        params = {buffer.data: param for param, buffer in func.buffer_map.items()}
        blocks: dict[Block, Buffer] = {}
        constants: dict[expr.Var, Any] = {}
        buffer_map = dict(func.buffer_map.items())
        for block in copies.blocks:
            layout = _layout_of(block)
            if layout is None or copies.reads[layout[0].data] != 1:
                continue
            source, made, index_map = layout
            if source.data in params:
                buffer_map[params[source.data]] = made
            elif source.data in copies.constants:
                data = copies.constants[source.data].data
                if skip_ndarray_rewrite:
                    shape = [int(extent) for extent in made.shape]
                    data = tvm.nd.array(data.numpy().reshape(shape))
                else:
                    data = index_map.map_ndarray(data)
                constants[source.data] = (made, data)
            else:
                continue
            blocks[block] = made
        if not blocks:
            return func
        body = _Remover(blocks, constants).visit(func.body)
        return PrimFunc(func.params, body, func.ret_type, buffer_map, func.attrs)

    return prim_func_pass(run, opt_level=0, name="tir.RemoveWeightLayoutRewriteBlock")


class _Relayout(BufferMutator):
    """Buffers in other layouts, and their accesses."""

    def __init__(self, layouts: dict[Buffer, list[IndexMap]]) -> None:
        super().__init__()
        self._layouts = layouts
        self._analyzer = Analyzer()

    def map_buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._layouts:
            return super().map_buffer(buffer)
        if buffer.strides:
            raise error.ValueError(
                f"ApplyLayoutTransforms: buffer {buffer.name} has strides, which another layout "
                "would not keep; declare it compact"
            )
        shape = list(buffer.shape)
        for index_map in self._layouts[buffer]:
            shape = list(index_map.map_shape(shape))
        return decl_buffer(
            shape,
            str(buffer.dtype),
            buffer.name,
            buffer.data,
            buffer.strides,
            buffer.elem_offset,
            buffer.scope(),
            buffer.data_alignment,
            buffer.offset_factor,
        )

    def _places(self, op: Any) -> list[Any]:
        places = self.exprs(op.indices)
        for index_map in self._layouts.get(op.buffer, ()):
            places = [self._analyzer.simplify(place) for place in index_map.map_indices(places)]
        return places

    def visit_buffer_load_(self, op: expr.BufferLoad) -> Any:
        return expr.BufferLoad(self.buffer(op.buffer), self._places(op))

    def visit_buffer_store_(self, op: stmt.BufferStore) -> Any:
        return stmt.BufferStore(self.buffer(op.buffer), self.visit(op.value), self._places(op))

    def visit_buffer_realize_(self, op: stmt.BufferRealize) -> Any:
        if op.buffer not in self._layouts:
            return super().visit_buffer_realize_(op)
        if not all(self._analyzer.can_prove_equal(bound.min, 0) for bound in op.bounds):
            raise error.ValueError(
                f"ApplyLayoutTransforms: a part of buffer {op.buffer.name} is realized, which has "
                "no place in another layout; realize all of it, from zero"
            )
        buffer = self.buffer(op.buffer)
        bounds = [tvm.ir.Range(0, extent) for extent in buffer.shape]
        return stmt.BufferRealize(buffer, bounds, self.visit(op.condition), self.visit(op.body))


def ApplyLayoutTransforms() -> Pass:
    """Give buffers the layouts that the attribute ``layout_transform_map`` of a function says.

    The attribute is a map from buffers to lists of index maps, applied one after the other. Shapes
    of parameters change too: callers lay the arrays out. The attribute goes.

    Raises
    ------
    ValueError : (when run) such a buffer has strides, or only a part of it is realized.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        layouts = None if func.attrs is None else func.attrs.get(_LAYOUTS)
        if layouts is None:
            return func
        mutator = _Relayout({buffer: list(maps) for buffer, maps in layouts.items()})
        return mutator.function(func).without_attr(_LAYOUTS)

    return prim_func_pass(run, opt_level=0, name="tir.ApplyLayoutTransforms")
