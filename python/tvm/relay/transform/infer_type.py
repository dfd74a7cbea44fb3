"""What is noted of expressions as passes: their types, and their places in the text."""

from __future__ import annotations

from tvm.ir import IRModule
from tvm.ir.transform import Pass, PassContext, module_pass

from ..analysis.infer import infer_module
from ..parser import with_spans

__all__ = ["AnnotateSpans", "InferType"]


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


def AnnotateSpans() -> Pass:
    """Give calls the lines and columns that they have in the module's text as spans, which messages
    and profiles then show."""

    @module_pass(opt_level=0, name="AnnotateSpans")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return infer_module(with_spans(mod, "GeneratedSource"))

    return run
