"""Which block a program is about, and what branches it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir import IRModule
from tvm.ir.transform import Pass

from ..block import Block
from ..expr import Call, Select
from ..function import PrimFunc
from ..functor import StmtExprVisitor
from ..statement import IfThenElse, Stmt
from .analysis import estimate_tir_flops

__all__ = ["find_anchor_block", "get_vtcm_compaction_passes", "has_if_then_else"]


class _Reductions(StmtExprVisitor):
    """Blocks with an init, each with the outermost of its loops."""

    def __init__(self) -> None:
        self.found: list[tuple[Stmt, Block]] = []
        self._outermost: list[Stmt] = []

    def _nest(self, op: Any) -> None:
        self._outermost.append(op)
        self._visit_below(op)
        self._outermost.pop()

    visit_for_ = _nest

    def visit_block_(self, op: Block) -> None:
        if op.init is not None:
            nest = self._outermost[0] if self._outermost else op
            self.found.append((nest, op))
        # Loops around a block with blocks inside belong to it, not to those.
        outer, self._outermost = self._outermost, []
        self._visit_below(op)
        self._outermost = outer


def find_anchor_block(mod: IRModule) -> Block | None:
    """The block that a module is about: a reduction, that with the most operations of several.

    None if no block has an init, as in element-wise programs.

    Raises
    ------
    ValueError : there are several, and a loop has no constant bound.
    """
    reductions = _Reductions()
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            reductions.visit(func.body)
    if len(reductions.found) < 2:
        return reductions.found[0][1] if reductions.found else None
    return max(reductions.found, key=lambda entry: estimate_tir_flops(entry[0]))[1]


class _Branches(StmtExprVisitor):
    def __init__(self) -> None:
        self.found = False

    def visit_if_then_else_(self, op: IfThenElse) -> None:
        self.found = True

    def visit_select_(self, op: Select) -> None:
        self.found = True

    def visit_call_(self, op: Call) -> None:
        self.found = self.found or getattr(op.op, "name", "") == "tir.if_then_else"
        self._visit_below(op)


def has_if_then_else(stmt: Stmt) -> bool:
    """Whether a statement has a branch: a statement, ``T.if_then_else`` or ``T.Select``."""
    branches = _Branches()
    branches.visit(stmt)
    return branches.found


def get_vtcm_compaction_passes() -> Sequence[Pass]:
    """The passes that bring memory of Hexagon's VTCM together; none on the targets there are."""
    return []
