"""Bindings without effects as dataflow blocks."""

from __future__ import annotations

from tvm.ir import IRModule

from ..analysis import contains_impure_call, free_vars
from ..expr import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    SeqExpr,
    Var,
)
from ..expr_functor import PyExprMutator
from .graph_pass import graph_pass

__all__ = ["ConvertToDataflow"]


def _is_pure(binding: Binding) -> bool:
    value = binding.value
    return not isinstance(value, If | Function) and not contains_impure_call(value)


def _runs(block: BindingBlock, min_size: int) -> list[BindingBlock]:
    """The block in pieces: bindings without effects that follow each other, and what is between."""
    runs: list[tuple[bool, list[Binding]]] = []
    for binding in block.bindings:
        pure = _is_pure(binding)
        if not runs or runs[-1][0] != pure:
            runs.append((pure, []))
        runs[-1][1].append(binding)
    pieces: list[BindingBlock] = []
    for pure, bindings in runs:
        if pure and len(bindings) >= min_size:
            pieces.append(DataflowBlock(bindings))
        elif pieces and not isinstance(pieces[-1], DataflowBlock):
            pieces[-1] = BindingBlock([*pieces[-1].bindings, *bindings])
        else:
            pieces.append(BindingBlock(bindings))
    return pieces


class _Localised(PyExprMutator):
    """Variables that only their own dataflow block reads become local to it."""

    def __init__(self, local: set[Var]) -> None:
        super().__init__()
        self._local = local

    def visit_var_def_(self, var: Var) -> Var:
        new = super().visit_var_def_(var)
        if var not in self._local:
            return new
        made = DataflowVar(str(new.name_hint), new.struct_info)
        self.set_var_remap(var, made)
        return made


def _local_vars(func: Function) -> set[Var]:
    body = func.body
    read_at: dict[Var, set[int]] = {}
    for number, block in enumerate(body.blocks):
        for binding in block.bindings:
            for var in free_vars(binding.value):
                read_at.setdefault(var, set()).add(number)
    result = set(free_vars(body.body))
    return {
        binding.var
        for number, block in enumerate(body.blocks)
        if isinstance(block, DataflowBlock)
        for binding in block.bindings
        if not isinstance(binding.var, DataflowVar)
        and binding.var not in result
        and read_at.get(binding.var, set()) <= {number}
    }


def _converted(func: Function, min_size: int) -> Function:
    blocks: list[BindingBlock] = []
    for block in func.body.blocks:
        blocks += [block] if isinstance(block, DataflowBlock) else _runs(block, min_size)
    body = SeqExpr(blocks, func.body.body)
    made = Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)
    return _Localised(_local_vars(made)).visit_expr(made)


@graph_pass("ConvertToDataflow")
def ConvertToDataflow(mod: IRModule, min_size: int = 2) -> IRModule:
    """The module with bindings that have no effects, and follow each other, in dataflow blocks.

    Parameters
    ----------
    min_size : how many there have to be.
    """
    functions = {
        gvar: _converted(func, min_size)
        if isinstance(func, Function) and isinstance(func.body, SeqExpr)
        else func
        for gvar, func in mod.functions.items()
    }
    return mod.with_functions(functions)
