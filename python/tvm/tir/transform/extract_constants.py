"""Constants of functions, kept by their module."""

from __future__ import annotations

from tvm.ir import IRModule, structural_equal
from tvm.ir.transform import Pass, PassContext, module_pass
from tvm.runtime import NDArray

from .. import stmt
from ..function import PrimFunc
from ..functor import StmtExprMutator

__all__ = ["ExtractPrimFuncConstants"]


class _Extractor(StmtExprMutator):
    def __init__(self, constants: list[NDArray]) -> None:
        self.constants = constants

    def _place_of(self, data: NDArray) -> int:
        for place, known in enumerate(self.constants):
            if structural_equal(known, data):
                return place
        self.constants.append(data)
        return len(self.constants) - 1

    def visit_allocate_const_(self, op: stmt.AllocateConst) -> stmt.Stmt:
        op = self._visit_below(op)
        if op.data is None:
            return op
        place = self._place_of(op.data)
        return stmt.AllocateConst(
            op.buffer_var, op.dtype, op.extents, place, op.body, op.annotations
        )


def ExtractPrimFuncConstants() -> Pass:
    """Move the data of ``AllocateConst`` to the attribute ``constants`` of the module.

    The statements keep its place there, ``irmod_storage_idx``; equal constants are kept once.
    """

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        attrs = mod.attrs or {}
        extractor = _Extractor(list(attrs["constants"]) if "constants" in attrs else [])
        changed = {}
        for name, func in mod.functions.items():
            if isinstance(func, PrimFunc):
                body = extractor.visit(func.body)
                if not body.same_as(func.body):
                    changed[name] = func.with_body(body)
        if not changed:
            return mod
        result = mod.with_attr("constants", extractor.constants)
        result.update(changed)
        return result

    return module_pass(run, opt_level=0, name="tir.ExtractPrimFuncConstants")
