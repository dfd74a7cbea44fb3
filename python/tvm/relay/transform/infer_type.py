"""Type inference as a pass."""

from __future__ import annotations

from tvm.ir import IRModule
from tvm.ir.transform import Pass, PassContext, module_pass

from ..analysis.infer import infer_module

__all__ = ["InferType"]


def InferType() -> Pass:
    """Find the type of every expression, which its ``checked_type`` then is.

    Raises, when it runs
    --------------------
    TypeError, ValueError : parts of a program do not fit together; the message names the operator.
    """

    @module_pass(opt_level=0, name="InferType")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return infer_module(mod)

    return run
