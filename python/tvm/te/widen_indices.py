"""Index arithmetic of a whole function in one type."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import IntImm, IRModule, PrimExpr, Range
from tvm.tir import Buffer, PrimFunc, Var, expr, stmt, transform
from tvm.tir.buffer_mutator import BufferMutator

__all__ = ["with_index_dtype"]

_WIDE, _NARROW = "int64", "int32"

# Calls whose value has the type of their operands from this one on.
_SAME_TYPE = {
    "tir.if_then_else": 1,
    "tir.likely": 0,
    "tir.bitwise_and": 0,
    "tir.bitwise_or": 0,
    "tir.bitwise_xor": 0,
    "tir.shift_left": 0,
    "tir.shift_right": 0,
}


def _as(value: PrimExpr, dtype: str) -> PrimExpr:
    if str(value.dtype) == dtype:
        return value
    if isinstance(value, IntImm):
        return IntImm(dtype, value.value)
    return expr.Cast(dtype, value)


class _Widener(BufferMutator):
    """Loops, block axes, extents and indices become 64 bits wide, and arithmetic with them follows.

    What a program computes keeps its type: a value of 32 bits that an index is part of is cast
    where it is stored or handed to a function.
    """

    def __init__(self) -> None:
        super().__init__()
        # Inside of an index every number is one.
        self._indexing = False

    def bind_var(self, var: Var) -> Var:
        return type(var)(var.name, _WIDE) if var.dtype == _NARROW else var

    def function(self, func: PrimFunc) -> PrimFunc:
        # Scalar parameters are a part of the interface, and keep their types.
        self._kept = {param for param in func.params if param not in func.buffer_map}
        return super().function(func)

    def bound(self, var: Var) -> Var:
        return var if var in self._kept else super().bound(var)

    def _index(self, value: PrimExpr) -> PrimExpr:
        outer, self._indexing = self._indexing, True
        new = self.visit(value)
        self._indexing = outer
        return _as(new, _WIDE) if new.dtype == _NARROW else new

    def _indices(self, values: Any) -> list[PrimExpr]:
        return [self._index(value) for value in values]

    def range(self, domain: Range) -> Range:
        return Range.from_min_extent(self._index(domain.min), self._index(domain.extent))

    def map_buffer(self, buffer: Buffer) -> Buffer:
        return Buffer(
            self.visit(buffer.data),
            str(buffer.dtype),
            self._indices(buffer.shape),
            self._indices(buffer.strides),
            # Nothing says of which type the offset of a single element is.
            self._index(buffer.elem_offset) if buffer.shape else buffer.elem_offset,
            buffer.name,
            buffer.data_alignment,
            buffer.offset_factor,
            buffer.axis_separators,
        )

    def visit_var_(self, op: Var) -> PrimExpr:
        # A variable that nothing binds is an extent of a buffer.
        if self._indexing and op.dtype == _NARROW and op not in self._vars:
            self.bound(op)
        return super().visit_var_(op)

    visit_size_var_ = visit_var_

    def visit_int_imm_(self, op: IntImm) -> PrimExpr:
        return _as(op, _WIDE) if self._indexing and op.dtype == _NARROW else op

    def visit_cast_(self, op: expr.Cast) -> PrimExpr:
        outer, self._indexing = self._indexing, False
        value = self.visit(op.value)
        self._indexing = outer
        return _as(value, str(op.dtype))

    def visit_buffer_load_(self, op: expr.BufferLoad) -> PrimExpr:
        return expr.BufferLoad(self.buffer(op.buffer), self._indices(op.indices))

    def visit_select_(self, op: expr.Select) -> PrimExpr:
        condition = self.visit(op.condition)
        return expr.Select(condition, *self._alike(op.true_value, op.false_value))

    def _alike(self, *operands: PrimExpr) -> list[PrimExpr]:
        new = self.exprs(operands)
        wide = any(value.dtype == _WIDE for value in new)
        return [_as(value, _WIDE) if wide and value.dtype == _NARROW else value for value in new]

    def visit_ramp_(self, op: expr.Ramp) -> PrimExpr:
        base, stride = self._alike(op.base, op.stride)
        return expr.Ramp(base, stride, op.lanes)

    def visit_call_(self, op: expr.Call) -> PrimExpr:
        first = _SAME_TYPE.get(str(getattr(op.op, "name", "")))
        if first is None or op.dtype != _NARROW:
            args = [
                _as(new, str(old.dtype)) if old.dtype == _NARROW else new
                for old, new in zip(op.args, self.exprs(op.args))
            ]
            return expr.Call(str(op.dtype), op.op, args)
        args = [*self.exprs(op.args[:first]), *self._alike(*op.args[first:])]
        return expr.Call(str(args[-1].dtype), op.op, args)

    def visit_let_(self, op: expr.Let) -> PrimExpr:
        value = _as(self.visit(op.value), str(op.var.dtype))
        return expr.Let(op.var, value, self.visit(op.body))

    def let_binding(self, op: stmt.LetStmt) -> tuple[Var, PrimExpr]:
        return op.var, _as(self.visit(op.value), str(op.var.dtype))

    def visit_buffer_store_(self, op: stmt.BufferStore) -> stmt.Stmt:
        value = self.visit(op.value)
        if op.value.dtype == _NARROW:
            value = _as(value, _NARROW)
        return stmt.BufferStore(self.buffer(op.buffer), value, self._indices(op.indices))

    def visit_allocate_(self, op: stmt.Allocate) -> stmt.Stmt:
        extents = self._indices(op.extents)
        condition, body = self.visit(op.condition), self.visit(op.body)
        return stmt.Allocate(op.buffer_var, str(op.dtype), extents, condition, body, op.annotations)

    def visit_for_(self, op: stmt.For) -> stmt.Stmt:
        low, extent = self._indices([op.min, op.extent])
        var = self.bound(op.loop_var)
        thread = None if op.thread_binding is None else self.axis(op.thread_binding)
        return stmt.For(var, low, extent, op.kind, self.visit(op.body), thread, op.annotations)

    def visit_block_realize_(self, op: Any) -> stmt.Stmt:
        values = self._indices(op.iter_values)
        return type(op)(values, self.visit(op.predicate), self.visit(op.block))


def _arithmetic(self: _Widener, op: Any) -> PrimExpr:
    return type(op)(*self._alike(op.a, op.b))


for _name in (
    *("add", "sub", "mul", "div", "mod", "floor_div", "floor_mod", "min", "max"),
    *("eq", "ne", "lt", "le", "gt", "ge"),
):
    setattr(_Widener, f"visit_{_name}_", _arithmetic)


def with_index_dtype(func: PrimFunc, dtype: str) -> PrimFunc:
    """The function with loops, block axes, extents and indices of a type.

    Scalar parameters and what is stored keep their types.

    Raises
    ------
    ValueError : the type is neither "int64" nor "int32", or a constant does not fit.
    """
    if dtype == _WIDE:
        return _Widener().function(func)
    if dtype == _NARROW:
        narrow = transform.ForceNarrowIndexToInt32()
        return narrow(IRModule({"main": func}))["main"]
    raise error.ValueError(f"create_prim_func: indices are int32 or int64, not {dtype}")
