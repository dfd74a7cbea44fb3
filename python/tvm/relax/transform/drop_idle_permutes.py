"""Changes of axes that move no element."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Var
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["DropIdlePermutes"]


class _Dropper(FunctionRewriter):
    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if (
            not isinstance(value, Call)
            or str(getattr(value.op, "name", "")) != "relax.permute_dims"
        ):
            return value
        shape, result = settled_shape(value.args[0]), settled_shape(value)
        if shape is None or result is None:
            return value
        axes, rank = op.attrs_of(value).get("axes"), len(shape)
        order = range(rank)[::-1] if axes is None else [int(axis) % rank for axis in axes]
        long = [axis for axis in order if shape[axis] != 1]
        return op.reshape(value.args[0], result) if long == sorted(long) else value


@graph_pass("relax.DropIdlePermutes")
def DropIdlePermutes(mod: IRModule) -> IRModule:
    """The module with ``permute_dims`` that only move dimensions of one element as views.

    Products of several dimensions (``einsum``) and the layout of images with one channel have them.
    """
    return map_functions(mod, lambda func: _Dropper(func).run())
