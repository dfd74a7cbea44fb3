"""Reshapes of what was reshaped already."""

from __future__ import annotations

from typing import TypeGuard

from tvm.ir import IRModule, RelayExpr

from ..analysis import remove_all_unused
from ..expr import Call, Function, Var
from ..op import get_op, reshape
from ..op.rules import equal, known_shape
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import TensorStructInfo
from .graph_pass import graph_pass

__all__ = ["RemoveRedundantReshape"]


def _is_reshape(value: RelayExpr | None) -> TypeGuard[Call]:
    return isinstance(value, Call) and value.op.same_as(get_op("reshape"))


def _keeps_shape(call: Call) -> bool:
    before, after = call.args[0].struct_info, call.struct_info
    if not isinstance(before, TensorStructInfo) or not isinstance(after, TensorStructInfo):
        return False
    old, new = known_shape(before), known_shape(after)
    if old is None or new is None or len(old) != len(new):
        return False
    return all(equal(a, b) for a, b in zip(old, new))


class _Remover(FunctionRewriter):
    changed = False

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not _is_reshape(value):
            return value
        before = self.values.get(value.args[0])
        if _is_reshape(before):
            self.changed = True
            value = reshape(before.args[0], value.args[1])
        if _keeps_shape(value):
            self.changed = True
            return value.args[0]
        return value


def _without(func: Function) -> Function:
    remover = _Remover(func)
    result = remover.run()
    return remove_all_unused(result) if remover.changed else func


@graph_pass("RemoveRedundantReshape")
def RemoveRedundantReshape(mod: IRModule) -> IRModule:
    """The module with one reshape in the place of several that follow each other, and none where
    the shape stays."""
    return map_functions(mod, _without)
