"""Products with a matrix that is stored by its columns, as kernels that read it so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, topi
from tvm.ir import IRModule, RelayExpr

from ..analysis import remove_all_unused
from ..expr import Call, Function, Var
from ..expr_functor import PyExprMutator
from ..op import attrs_of, get_op
from ..struct_info import TensorStructInfo
from .graph_pass import graph_pass

__all__ = ["FuseTransposeMatmul"]


def _product_of_rows(out_dtype: str) -> Callable[[te.Tensor, te.Tensor], te.Tensor]:
    def transposed_matmul(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        """Inner products of the rows of a (.., m, k) with those of b (.., n, k)."""
        batch = topi.broadcast_shape(a.shape[:-2], b.shape[:-2])
        rows = [] if len(a.shape) == 1 else [a.shape[-2]]
        k = te.reduce_axis((0, a.shape[-1]), name="k")

        def element(*at: Any) -> te.Tensor:
            *outer, column = at
            row = [outer.pop()] if rows else []
            left = topi.read_broadcast(a, [*outer, *row, k], [*batch, *rows, a.shape[-1]])
            right = topi.read_broadcast(b, [*outer, column, k], [*batch, *b.shape[-2:]])
            return te.sum(left.astype(out_dtype) * right.astype(out_dtype), axis=k)

        return te.compute([*batch, *rows, b.shape[-2]], element, name="NT_matmul")

    return transposed_matmul


class _Fuser(PyExprMutator):
    def visit_call_(self, op: Call) -> RelayExpr:
        call = super().visit_call_(op)
        if not isinstance(call, Call) or not call.op.same_as(get_op("matmul")):
            return call
        left, right = call.args
        stored = self._turned(right)
        info = left.struct_info
        if stored is None or not isinstance(info, TensorStructInfo) or info.shape is None:
            return call
        dtype = str(attrs_of(call).get("out_dtype") or "void")
        compute = _product_of_rows(str(info.dtype) if dtype == "void" else dtype)
        return self.builder_.call_te(compute, left, stored, primfunc_name_hint="NT_matmul")

    def _turned(self, value: RelayExpr) -> RelayExpr | None:
        """What a value has the last two dimensions of in the other order."""
        move = self.lookup_binding(value) if isinstance(value, Var) else None
        if not isinstance(move, Call) or not move.op.same_as(get_op("permute_dims")):
            return None
        info = move.args[0].struct_info
        if not isinstance(info, TensorStructInfo) or info.ndim < 2 or info.shape is None:
            return None
        given, rank = attrs_of(move).get("axes"), info.ndim
        axes = list(range(rank))[::-1] if given is None else [int(axis) % rank for axis in given]
        return move.args[0] if axes == [*range(rank - 2), rank - 1, rank - 2] else None


@graph_pass("FuseTransposeMatmul")
def FuseTransposeMatmul(mod: IRModule) -> IRModule:
    """The module with ``matmul(x, permute_dims(w))`` as one kernel, "NT_matmul".

    Sums are of the type of the result. The kernel has no schedule: it is for passes that give it
    one, such as `tvm.dlight.ApplyDefaultSchedule`. Builds read transposed operands in place by
    themselves, so programs that are only built need no such pass.
    """
    fuser = _Fuser(mod)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            fused = fuser.visit_expr(func)
            if not fused.same_as(func):
                fuser.builder_.update_func(gvar, remove_all_unused(fused))
    return fuser.builder_.get()
