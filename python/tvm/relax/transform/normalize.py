"""Graph functions in normal form."""

from __future__ import annotations

from tvm.ir import IRModule

from ..block_builder import BlockBuilder
from ..expr import Function
from .graph_pass import graph_pass

__all__ = ["Normalize"]


@graph_pass("Normalize")
def Normalize(mod: IRModule) -> IRModule:
    """The module with every graph function in normal form.

    Operands that are calls get a variable, bodies and branches become sequences of blocks, and what
    follows about values is written down.
    """
    builder = BlockBuilder(mod)
    functions = {}
    for gvar, func in mod.functions.items():
        functions[gvar] = builder.normalize(func) if isinstance(func, Function) else func
    return mod.with_functions(functions)
