"""Products of a single row with a matrix that is stored by its columns."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Var
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["TurnRowProducts"]


class _Turner(FunctionRewriter):
    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or str(getattr(value.op, "name", "")) != "relax.matmul":
            return value
        row, right = value.args
        shape, source = settled_shape(row), self._turned(right)
        factors = settled_shape(source) if source is not None else None
        if source is None or shape is None or factors is None:
            return value
        if shape[-2:-1] != (1,) or shape[:-2] != factors[:-2]:
            return value
        column = self.emit(op.reshape(row, (*shape[:-2], shape[-1], 1)))
        product = self.emit(op.make_call("matmul", source, column, **op.attrs_of(value)))
        return op.reshape(product, (*shape[:-1], factors[-2]))

    def _turned(self, value: RelayExpr) -> RelayExpr | None:
        """What a value has the last two dimensions of in the other order."""
        move = self.values.get(value) if isinstance(value, Var) else None
        if not isinstance(move, Call) or str(getattr(move.op, "name", "")) != "relax.permute_dims":
            return None
        shape, axes = settled_shape(move), op.attrs_of(move).get("axes")
        if shape is None or isinstance(move.args[0], Constant):
            return None
        rank = len(shape)
        order = range(rank)[::-1] if axes is None else [int(axis) % rank for axis in axes]
        turned = [*range(rank - 2), rank - 1, rank - 2]
        return move.args[0] if list(order) == turned else None


@graph_pass("TurnRowProducts")
def TurnRowProducts(mod: IRModule) -> IRModule:
    """The module with ``matmul(row, permute_dims(x))`` as products of the rows of x with a column.

    The scores of one query, as generation computes them word by word, read each key where it is; to
    lay all keys out anew takes longer than the product.
    """
    return map_functions(mod, lambda func: _Turner(func).run())
