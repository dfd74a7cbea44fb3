"""Index arithmetic of a whole function in 32 bits."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import IntImm, Range
from tvm.ir.transform import Pass

from .. import expr
from ..buffer import Buffer
from ..buffer_mutator import BufferMutator
from ..function import PrimFunc
from ..op import call_intrin
from .function_pass import prim_func_pass

__all__ = ["ForceNarrowIndexToInt32"]

_WIDE, _NARROW = "int64", "int32"
_LIMIT = 2**31
_BINARY = (
    *("add", "sub", "mul", "div", "mod", "floor_div", "floor_mod", "min", "max"),
    *("eq", "ne", "lt", "le", "gt", "ge"),
)


class _Narrower(BufferMutator):
    def bind_var(self, var: expr.Var) -> expr.Var:
        if var.dtype != _WIDE:
            return var
        return type(var)(var.name, _NARROW)

    def range(self, domain: Range) -> Range:
        return Range.from_min_extent(self.visit(domain.min), self.visit(domain.extent))

    def map_buffer(self, buffer: Buffer) -> Buffer:
        if str(buffer.dtype) == _WIDE:
            raise error.ValueError(
                f"ForceNarrowIndexToInt32: buffer {buffer.name} holds int64, which may be more "
                "than indices; cast its values where they are stored"
            )
        return super().map_buffer(buffer)

    def visit_var_(self, op: expr.Var) -> expr.PrimExpr:
        # A variable that nothing binds here is an extent of a buffer.
        if op.dtype == _WIDE and op not in self._vars:
            self.bound(op)
        return super().visit_var_(op)

    visit_size_var_ = visit_var_

    def visit_int_imm_(self, op: IntImm) -> expr.PrimExpr:
        if op.dtype != _WIDE:
            return op
        if not -_LIMIT <= op.value < _LIMIT:
            raise error.ValueError(f"ForceNarrowIndexToInt32: {op.value} does not fit into 32 bits")
        return IntImm(_NARROW, op.value)

    def visit_cast_(self, op: expr.Cast) -> expr.PrimExpr:
        value = self.visit(op.value)
        dtype = _NARROW if op.dtype == _WIDE else str(op.dtype)
        if value.dtype == dtype:
            return value
        return op if value.same_as(op.value) and dtype == op.dtype else expr.Cast(dtype, value)

    def visit_select_(self, op: expr.Select) -> expr.PrimExpr:
        return expr.Select(*self.exprs([op.condition, op.true_value, op.false_value]))

    def visit_ramp_(self, op: expr.Ramp) -> expr.PrimExpr:
        return expr.Ramp(self.visit(op.base), self.visit(op.stride), op.lanes)

    def visit_broadcast_(self, op: expr.Broadcast) -> expr.PrimExpr:
        return expr.Broadcast(self.visit(op.value), op.lanes)

    def visit_call_(self, op: expr.Call) -> expr.PrimExpr:
        args = self.exprs(op.args)
        if all(new.same_as(old) for new, old in zip(args, op.args)) and op.dtype != _WIDE:
            return op
        dtype = _NARROW if op.dtype == _WIDE else str(op.dtype)
        made = call_intrin(dtype, op.op, *args) if not args else expr.Call(dtype, op.op, args)
        if op.op.name == "tir.clz" and op.args[0].dtype == _WIDE:
            # The count was among 64 bits, of which the upper 32 are zero.
            return expr.Add(expr.Sub(made, IntImm(_NARROW, 32)), IntImm(_NARROW, 64))
        return made


def _rebuild(self: _Narrower, op: Any) -> expr.PrimExpr:
    a, b = self.visit(op.a), self.visit(op.b)
    return op if a.same_as(op.a) and b.same_as(op.b) else type(op)(a, b)


for _name in _BINARY:
    setattr(_Narrower, f"visit_{_name}_", _rebuild)


def ForceNarrowIndexToInt32() -> Pass:
    """Make all index arithmetic 32 bits wide, parameters and shapes included.

    Raises
    ------
    ValueError : (when run) a buffer holds int64, or a constant does not fit.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        return _Narrower().function(func)

    return prim_func_pass(run, opt_level=0, name="tir.ForceNarrowIndexToInt32")
