"""One form for the digits of an index."""

from __future__ import annotations

from typing import Any

from tvm.ir import PrimExpr
from tvm.ir.expr import IntImm
from tvm.ir.transform import Pass

from .. import expr
from ..function import PrimFunc
from ..functor import StmtExprMutator
from ..op import floordiv, floormod
from .function_pass import prim_func_pass

__all__ = ["RenormalizeSplitPattern"]


class _Renormalizer(StmtExprMutator):
    def visit_floor_div_(self, op: expr.FloorDiv) -> PrimExpr:
        a, b = self.visit(op.a), self.visit(op.b)
        if (
            isinstance(a, expr.FloorMod)
            and isinstance(a.b, IntImm)
            and isinstance(b, IntImm)
            and b.value > 0
            and a.b.value % b.value == 0
        ):
            return floormod(floordiv(a.a, b), IntImm(b.dtype, a.b.value // b.value))
        return op if a.same_as(op.a) and b.same_as(op.b) else floordiv(a, b)


def RenormalizeSplitPattern() -> Pass:
    """Write a digit of an index as ``x // c % d``, where it is ``x % (c * d) // c``.

    >>> i, A = tir.Var("i", "int32"), tir.decl_buffer((4,))
    >>> func = tir.PrimFunc([i, A], tir.BufferStore(A, 1.0, [i % 32 // 8]))
    >>> tir.transform.RenormalizeSplitPattern()(tvm.IRModule({"main": func}))["main"].body
    A[i//8%4] = 1.0
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        body = _Renormalizer().visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.RenormalizeSplitPattern")
