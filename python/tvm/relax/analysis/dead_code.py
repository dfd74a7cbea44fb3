"""Functions without bindings whose value nobody reads."""

from __future__ import annotations

from tvm.ir import RelayExpr

from ..expr import Binding, DataflowBlock, Function, If, MatchCast, SeqExpr, Var
from .purity import contains_impure_call
from .variables import free_vars

__all__ = ["remove_all_unused", "without_dead_code"]


def _needed(binding: Binding, in_dataflow: bool, read: set[Var]) -> bool:
    # A cast checks its value and names extents, whether anybody reads the variable or not.
    if binding.var in read or isinstance(binding, MatchCast):
        return True
    return not in_dataflow and contains_impure_call(binding.value)


def _live_sequence(expr: SeqExpr, read: set[Var]) -> SeqExpr:
    """The sequence with what is needed for its result; `read` gets the variables that reads."""
    read.update(free_vars(expr.body))
    blocks = []
    for block in reversed(list(expr.blocks)):
        in_dataflow = isinstance(block, DataflowBlock)
        kept: list[Binding] = []
        for binding in reversed(list(block.bindings)):
            if not _needed(binding, in_dataflow, read):
                continue
            new = _with_live_value(binding)
            read.update(free_vars(new.value))
            if isinstance(new, MatchCast):
                read.update(free_vars(new.var))
            kept.append(new)
        if kept:
            same = len(kept) == len(block.bindings) and all(
                a.same_as(b) for a, b in zip(kept[::-1], block.bindings)
            )
            blocks.append(block if same else type(block)(kept[::-1]))
    same = len(blocks) == len(expr.blocks) and all(
        a.same_as(b) for a, b in zip(blocks[::-1], expr.blocks)
    )
    return expr if same else SeqExpr(blocks[::-1], expr.body)


def _with_live_value(binding: Binding) -> Binding:
    value = binding.value
    new: RelayExpr = value
    if isinstance(value, Function):
        new = without_dead_code(value)
    elif isinstance(value, If):
        branches = [
            _live_sequence(branch, set()) if isinstance(branch, SeqExpr) else branch
            for branch in (value.true_branch, value.false_branch)
        ]
        if not all(a.same_as(b) for a, b in zip(branches, (value.true_branch, value.false_branch))):
            new = If(value.cond, branches[0], branches[1], value.struct_info)
    return binding if new.same_as(value) else type(binding)(binding.var, new)


def without_dead_code(func: Function) -> Function:
    """The function without bindings that no result and no effect depends on."""
    body = func.body
    if not isinstance(body, SeqExpr):
        return func
    new = _live_sequence(body, set())
    if new.same_as(body):
        return func
    return Function(func.params, new, func.ret_struct_info, func.is_pure, func.attrs)


remove_all_unused = without_dead_code
"""TVM's name."""
