"""A mutator that also asks for the buffers of a program, and for variables where they are bound."""

from __future__ import annotations

from typing import Any

from tvm.ir import Range

from . import expr, stmt
from .block import Block, BlockRealize, MatchBufferRegion
from .buffer import Buffer, BufferRegion
from .function import PrimFunc
from .functor import StmtExprMutator

__all__ = ["BufferMutator"]


class BufferMutator(StmtExprMutator):
    """Rewrites variables and buffers wherever they stand, also where they are bound.

    A derived class says in `bind_var` what a variable becomes at its binding, and the uses follow;
    in `map_buffer` what else changes about a buffer.
    """

    def __init__(self) -> None:
        self._vars: dict[expr.Var, expr.PrimExpr] = {}
        self._buffers: dict[Buffer, Buffer] = {}

    def bind_var(self, var: expr.Var) -> expr.Var:
        """The variable bound in place of `var`."""
        return var

    def map_buffer(self, buffer: Buffer) -> Buffer:
        """The buffer in place of `buffer`, asked for once: by default its parts rewritten."""
        data = self.visit(buffer.data)
        shape = [self.visit(extent) for extent in buffer.shape]
        strides = [self.visit(stride) for stride in buffer.strides]
        offset = self.visit(buffer.elem_offset)
        before = [buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset]
        after = [data, *shape, *strides, offset]
        if all(new.same_as(old) for new, old in zip(after, before)):
            return buffer
        return Buffer(
            data,
            str(buffer.dtype),
            shape,
            strides,
            offset,
            buffer.name,
            buffer.data_alignment,
            buffer.offset_factor,
            buffer.axis_separators,
        )

    def function(self, func: PrimFunc) -> PrimFunc:
        """The function with parameters, buffers and body rewritten."""
        params = [self.bound(param) for param in func.params]
        buffers = {}
        for old, new in zip(func.params, params):
            if old in func.buffer_map:
                buffers[new] = self.buffer(func.buffer_map[old])
        body = self.visit(func.body)
        same = all(new.same_as(old) for new, old in zip(params, func.params)) and all(
            buffers[param].same_as(buffer) for param, buffer in func.buffer_map.items()
        )
        if same and body.same_as(func.body):
            return func
        return PrimFunc(params, body, func.ret_type, buffers, func.attrs)

    def bound(self, var: expr.Var) -> expr.Var:
        """What `bind_var` says, remembered for the uses."""
        fresh = self.bind_var(var)
        if not fresh.same_as(var):
            self._vars[var] = fresh
        return fresh

    def buffer(self, buffer: Buffer) -> Buffer:
        """The buffer in place of `buffer`, the same one at all its uses."""
        if buffer not in self._buffers:
            self._buffers[buffer] = self.map_buffer(buffer)
        return self._buffers[buffer]

    def exprs(self, values: Any) -> list[expr.PrimExpr]:
        """Each expression rewritten."""
        return [self.visit(value) for value in values]

    def range(self, domain: Range) -> Range:
        """A range with its ends rewritten."""
        low, extent = self.visit(domain.min), self.visit(domain.extent)
        same = low.same_as(domain.min) and extent.same_as(domain.extent)
        return domain if same else Range.from_min_extent(low, extent)

    def region(self, region: BufferRegion) -> BufferRegion:
        """A region of the buffer in place of that of `region`."""
        return BufferRegion(
            self.buffer(region.buffer), [self.range(axis) for axis in region.region]
        )

    def axis(self, axis: expr.IterVar) -> expr.IterVar:
        """An axis with its variable bound and its domain rewritten."""
        dom = None if axis.dom is None else self.range(axis.dom)
        var = self._vars[axis.var] if axis.var in self._vars else self.bound(axis.var)
        if var.same_as(axis.var) and (dom is None or dom.same_as(axis.dom)):
            return axis
        return expr.IterVar(dom, var, axis.iter_type, axis.thread_tag)

    def visit_var_(self, op: expr.Var) -> expr.PrimExpr:
        return self._vars.get(op, op)

    visit_size_var_ = visit_var_

    def visit_buffer_load_(self, op: expr.BufferLoad) -> expr.PrimExpr:
        return expr.BufferLoad(self.buffer(op.buffer), self.exprs(op.indices))

    def visit_let_(self, op: expr.Let) -> expr.PrimExpr:
        value = self.visit(op.value)
        return expr.Let(self.bound(op.var), value, self.visit(op.body))

    def let_binding(self, op: stmt.LetStmt) -> tuple[expr.Var, expr.PrimExpr]:
        """The variable and the value of a binding."""
        value = self.visit(op.value)
        return self.bound(op.var), value

    def visit_let_stmt_(self, op: stmt.LetStmt) -> stmt.Stmt:
        # Straight programs are hundreds of bindings within each other, more than Python's stack.
        bindings: list[tuple[expr.Var, expr.PrimExpr]] = []
        body: stmt.Stmt = op
        while isinstance(body, stmt.LetStmt):
            bindings.append(self.let_binding(body))
            body = body.body
        body = self.visit(body)
        for var, value in reversed(bindings):
            body = stmt.LetStmt(var, value, body)
        return body

    def visit_buffer_store_(self, op: stmt.BufferStore) -> stmt.Stmt:
        value = self.visit(op.value)
        return stmt.BufferStore(self.buffer(op.buffer), value, self.exprs(op.indices))

    def visit_buffer_realize_(self, op: stmt.BufferRealize) -> stmt.Stmt:
        bounds = [self.range(bound) for bound in op.bounds]
        condition = self.visit(op.condition)
        return stmt.BufferRealize(self.buffer(op.buffer), bounds, condition, self.visit(op.body))

    def visit_decl_buffer_(self, op: stmt.DeclBuffer) -> stmt.Stmt:
        return stmt.DeclBuffer(self.buffer(op.buffer), self.visit(op.body))

    def visit_allocate_(self, op: stmt.Allocate) -> stmt.Stmt:
        extents = self.exprs(op.extents)
        condition = self.visit(op.condition)
        var = self.bound(op.buffer_var)
        body = self.visit(op.body)
        return stmt.Allocate(var, str(op.dtype), extents, condition, body, op.annotations)

    def visit_for_(self, op: stmt.For) -> stmt.Stmt:
        low, extent = self.visit(op.min), self.visit(op.extent)
        var = self.bound(op.loop_var)
        thread = None if op.thread_binding is None else self.axis(op.thread_binding)
        body = self.visit(op.body)
        return stmt.For(var, low, extent, op.kind, body, thread, op.annotations)

    def visit_attr_stmt_(self, op: stmt.AttrStmt) -> stmt.Stmt:
        node = op.node
        if isinstance(node, expr.IterVar):
            node = self.axis(node)
        elif isinstance(node, Buffer):
            node = self.buffer(node)
        elif isinstance(node, expr.Var):
            node = self.visit(node)
        return stmt.AttrStmt(node, op.attr_key, self.visit(op.value), self.visit(op.body))

    def visit_block_realize_(self, op: BlockRealize) -> stmt.Stmt:
        values = self.exprs(op.iter_values)
        return BlockRealize(values, self.visit(op.predicate), self.visit(op.block))

    def visit_block_(self, op: Block) -> stmt.Stmt:
        return Block(
            [self.axis(axis) for axis in op.iter_vars],
            [self.region(region) for region in op.reads],
            [self.region(region) for region in op.writes],
            op.name_hint,
            self.visit(op.body),
            None if op.init is None else self.visit(op.init),
            [self.buffer(buffer) for buffer in op.alloc_buffers],
            [
                MatchBufferRegion(self.buffer(match.buffer), self.region(match.source))
                for match in op.match_buffers
            ],
            op.annotations,
        )
