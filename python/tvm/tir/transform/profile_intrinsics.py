"""Marks around loops, which a device's code generator turns into reads of its clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm.ir.transform import Pass, PassContext

from .. import stmt
from ..expr import Call
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from .function_pass import prim_func_pass

__all__ = ["InstrumentProfileIntrinsics"]


@dataclass
class _Loop:
    number: int
    depth: int
    in_parallel: bool
    has_siblings: bool = False
    height: int = 0
    children: list[_Loop] = field(default_factory=list)


class _Loops(StmtExprVisitor):
    """Numbers the loops of a function in the order of their text, from `first` on."""

    def __init__(self, first: int) -> None:
        self.next = first
        self.found: dict[stmt.For, _Loop] = {}
        self._around: list[_Loop] = []
        self._parallel = 0
        self.top: list[_Loop] = []

    def visit_for_(self, op: stmt.For) -> None:
        loop = _Loop(self.next, len(self._around) + 1, self._parallel > 0)
        self.next += 1
        self.found[op] = loop
        (self._around[-1].children if self._around else self.top).append(loop)
        self._around.append(loop)
        is_parallel = op.kind == stmt.ForKind.PARALLEL
        self._parallel += is_parallel
        self._visit_below(op)
        self._parallel -= is_parallel
        self._around.pop()
        loop.height = 1 + max((child.height for child in loop.children), default=-1)
        for child in loop.children:
            child.has_siblings = len(loop.children) > 1


class _Marker(StmtExprMutator):
    def __init__(self, numbers: dict[stmt.For, int]) -> None:
        self._numbers = numbers

    def visit_for_(self, op: stmt.For) -> stmt.Stmt:
        return _marked(self._visit_below(op), self._numbers.get(op))


def _marked(body: stmt.Stmt, number: int | None) -> stmt.Stmt:
    if number is None:
        return body
    ends = (Call("handle", f"tir.{end}_profile_intrinsic", [number]) for end in ("start", "end"))
    first, last = ends
    return stmt.stmt_seq(stmt.Evaluate(first), body, stmt.Evaluate(last))


_next_number = 0


def InstrumentProfileIntrinsics() -> Pass:
    """Put ``start_profile_intrinsic(n)``, ``end_profile_intrinsic(n)`` around functions and loops.

    The function is the first number, its loops have the following ones in the order of their text.
    Loops inside of parallel ones are left alone. The options, all of them in the context:

    ``tir.instrument_lwp`` : whether anything is done; False.
    ``tir.lwp_disable_func_prof`` : leave the function itself out; False.
    ``tir.instr_siblings`` : only loops beside others; True.
    ``tir.lwp_max_depth`` : without siblings, only that many loops of a nest; 0 for all.
    ``tir.lwp_min_height`` : only loops with that many levels of loops inside; 1.
    ``tir.reset_start_id`` : begin at 0, not where the last function ended; False.
    """

    def run(func: PrimFunc, mod: Any, ctx: PassContext) -> PrimFunc:
        global _next_number
        config = ctx.config

        def option(name: str, default: Any) -> Any:
            return config.get(f"tir.{name}", default)

        if not option("instrument_lwp", False):
            return func
        start = 0 if option("reset_start_id", False) else _next_number
        loops = _Loops(start + 1)
        loops.visit(func.body)
        for loop in loops.top:
            loop.has_siblings = len(loops.top) > 1
        _next_number = loops.next
        siblings, depth = option("instr_siblings", True), int(option("lwp_max_depth", 0))
        height = int(option("lwp_min_height", 1))
        chosen = {
            op: loop.number
            for op, loop in loops.found.items()
            if not loop.in_parallel
            and loop.height >= height
            and (loop.has_siblings if siblings else depth in (0, *range(loop.depth, depth + 1)))
        }
        body = _Marker(chosen).visit(func.body)
        body = _marked(body, None if option("lwp_disable_func_prof", False) else start)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.InstrumentProfileIntrinsics")
