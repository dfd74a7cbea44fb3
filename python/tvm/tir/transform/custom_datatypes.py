"""Types that users define, held as integers and computed with by functions of theirs."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import error
from tvm.ir import PointerType, PrimExpr, PrimType
from tvm.ir.transform import Pass
from tvm.runtime import DataType

from .. import expr, stmt
from ..buffer import Buffer, decl_buffer
from ..buffer_mutator import BufferMutator
from ..function import PrimFunc
from .function_pass import prim_func_pass

__all__ = ["LowerCustomDatatypes"]


_COMPARISONS = (expr.EQ, expr.NE, expr.LT, expr.LE, expr.GT, expr.GE)


def _is_custom(dtype: Any) -> bool:
    return str(dtype).startswith("custom[")


def _type_name(dtype: Any) -> str:
    """As lowering functions are registered: "myfloat", or "float" of the machine's types."""
    kind = DataType(str(dtype)).kind
    return kind[len("custom[") : -1] if kind.startswith("custom") else kind


def _held_as(dtype: Any) -> str:
    parts = DataType(str(dtype))
    return f"uint{parts.bits}" + (f"x{parts.lanes}" if parts.lanes > 1 else "")


def _operands(node: Any) -> list[PrimExpr]:
    if isinstance(node, tvm.tir.FloatImm):
        return []
    if isinstance(node, expr.Cast):
        return [node.value]
    return list(node.args) if isinstance(node, expr.Call) else [node.a, node.b]


def _with_operands(node: Any, operands: list[PrimExpr], dtype: Any) -> PrimExpr:
    """The operator of that type over what its operands are held as."""
    if isinstance(node, tvm.tir.FloatImm):
        return node
    if isinstance(node, expr.Cast):
        return expr.Cast(str(dtype), *operands)
    if isinstance(node, expr.Call):
        return expr.Call(str(dtype), node.op, operands)
    return type(node)(*operands)


def _lane(vector: PrimExpr, lane: int) -> PrimExpr:
    """One number of a vector; a number that all lanes share as it is."""
    return vector if DataType(str(vector.dtype)).lanes == 1 else expr.Shuffle([vector], [lane])


class _Lowerer(BufferMutator):
    def __init__(self, target: str) -> None:
        super().__init__()
        self._target = target

    def bind_var(self, var: expr.Var) -> expr.Var:
        if _is_custom(var.dtype):
            return expr.Var(var.name, _held_as(var.dtype))
        pointer = var.type_annotation
        element = getattr(pointer, "element_type", None)
        if isinstance(element, PrimType) and _is_custom(element.dtype):
            held = PointerType(PrimType(_held_as(element.dtype)), str(pointer.storage_scope))
            return expr.Var(var.name, held)
        return var

    def map_buffer(self, buffer: Buffer) -> Buffer:
        if not _is_custom(buffer.dtype):
            return super().map_buffer(buffer)
        known = buffer.data in self._vars
        data = self._vars[buffer.data] if known else self.bound(buffer.data)
        return decl_buffer(
            self.exprs(buffer.shape),
            _held_as(buffer.dtype),
            buffer.name,
            data,
            self.exprs(buffer.strides),
            self.visit(buffer.elem_offset),
            buffer.scope(),
            buffer.data_alignment,
            buffer.offset_factor,
        )

    def visit_allocate_(self, op: stmt.Allocate) -> stmt.Stmt:
        if not _is_custom(op.dtype):
            return super().visit_allocate_(op)
        data = self.bound(op.buffer_var)
        extents, condition = self.exprs(op.extents), self.visit(op.condition)
        held = _held_as(op.dtype)
        return stmt.Allocate(data, held, extents, condition, self.visit(op.body), op.annotations)

    def visit_expr(self, node: PrimExpr) -> PrimExpr:
        lowering = self._lowering(node)
        if lowering is None:
            return super().visit_expr(node)
        name, what = lowering
        found = tvm.get_global_func(f"tvm.datatype.lower.{self._target}.{name}", allow_missing=True)
        if found is None:
            raise error.ValueError(
                f"LowerCustomDatatypes: nobody says what {what} is on the target {self._target}; "
                "register a function with tvm.target.datatype.register_op"
            )
        lanes = DataType(str(node.dtype)).lanes
        if lanes == 1:
            return found(_with_operands(node, [self.visit(x) for x in _operands(node)], node.dtype))
        # Functions of users take one number at a time.
        operands = [self.visit(operand) for operand in _operands(node)]
        names = [expr.Var("operand", operand.dtype) for operand in operands]
        element = str(node.dtype).removesuffix(f"x{lanes}")
        result: PrimExpr = expr.Shuffle(
            [
                found(_with_operands(node, [_lane(name, i) for name in names], element))
                for i in range(lanes)
            ],
            list(range(lanes)),
        )
        for name, operand in zip(names, operands):
            result = expr.Let(name, operand, result)
        return result

    def _lowering(self, node: PrimExpr) -> tuple[str, str] | None:
        """The name of the function that says what an operator is; None for what needs none."""
        custom = _is_custom(node.dtype)
        if isinstance(node, expr.Cast):
            source = node.value.dtype
            if not custom and not _is_custom(source):
                return None
            to, of = _type_name(node.dtype), _type_name(source)
            return f"Cast.{to}.{of}", f"the cast from {source} to {node.dtype}"
        if isinstance(node, _COMPARISONS) and _is_custom(node.a.dtype):
            kind, dtype = type(node).__name__, node.a.dtype
            return f"{kind}.{_type_name(dtype)}", f"{kind} of {dtype}"
        if not custom:
            return None
        kind, name = type(node).__name__, _type_name(node.dtype)
        if isinstance(node, expr.Call):
            operator = str(getattr(node.op, "name", node.op))
            if operator in ("tir.reinterpret", "tir.call_pure_extern", "tir.call_extern"):
                # Calls by name give what holds the value, as functions for operators do.
                return None
            return f"Call.intrin.{operator}.{name}", f"{operator} of {node.dtype}"
        if isinstance(node, (expr.BinaryOpExpr, tvm.tir.FloatImm)):
            return f"{kind}.{name}", f"{kind} of {node.dtype}"
        return None

    # What only moves values has the type that these are held as.

    def visit_broadcast_(self, op: expr.Broadcast) -> PrimExpr:
        if not _is_custom(op.dtype):
            return self._visit_below(op)
        return expr.Broadcast(self.visit(op.value), op.lanes)

    def visit_shuffle_(self, op: expr.Shuffle) -> PrimExpr:
        if not _is_custom(op.dtype):
            return self._visit_below(op)
        return expr.Shuffle(self.exprs(op.vectors), op.indices)

    def visit_select_(self, op: expr.Select) -> PrimExpr:
        if not _is_custom(op.dtype):
            return self._visit_below(op)
        operands = (op.condition, op.true_value, op.false_value)
        return expr.Select(*(self.visit(operand) for operand in operands))

    def visit_call_(self, op: expr.Call) -> PrimExpr:
        args = self.exprs(op.args)
        if _is_custom(op.dtype):
            return expr.Call(_held_as(op.dtype), op.op, args)
        same = all(new.same_as(old) for new, old in zip(args, op.args))
        return op if same else expr.Call(str(op.dtype), op.op, args)


@tvm._ffi.register_func("tir.transform.LowerCustomDatatypes")
def LowerCustomDatatypes() -> Pass:
    """Replace types that users define by unsigned integers, and their operators by what they say.

    The functions are those that ``tvm.target.datatype.register_op`` was told for the kind of the
    function's target. Builds run this pass once a type has operators. Parameters that are arrays
    keep their type, as callers pass it.

    Raises
    ------
    ValueError : (when run) an operator of such a type has no function.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        target = None if func.attrs is None else func.attrs.get("target")
        current = tvm.target.Target.current(allow_none=True) if target is None else target
        if current is None:
            raise error.ValueError(
                "LowerCustomDatatypes: a function has no target; run BindTarget before"
            )
        lowerer = _Lowerer(str(current.kind.name))
        body = lowerer.visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.LowerCustomDatatypes")
