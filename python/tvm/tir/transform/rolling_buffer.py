"""Buffers whose trips keep what the next ones need again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import error
from tvm.arith import Analyzer, detect_linear_equation
from tvm.ir import PrimExpr, Range
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..buffer import Buffer
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from ..op import likely
from .function_pass import prim_func_pass

__all__ = ["InjectRollingBuffer"]

_SCOPE = "rolling_buffer_scope"
_PRAGMA = "pragma_rolling_buffer"


class _Asked(StmtExprVisitor):
    """The buffers that are to roll: those stored to under a request."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._inside = False

    def visit_attr_stmt_(self, op: stmt.AttrStmt) -> None:
        outer = self._inside
        if str(op.attr_key) == _SCOPE and isinstance(op.node, Buffer):
            self._add(op.node)
        elif str(op.attr_key) in (_PRAGMA, _SCOPE):
            self._inside = True
        self._visit_below(op)
        self._inside = outer

    def visit_buffer_store_(self, op: stmt.BufferStore) -> None:
        if self._inside:
            self._add(op.buffer)
        self._visit_below(op)

    def _add(self, buffer: Buffer) -> None:
        if not any(buffer.same_as(known) for known in self.buffers):
            self.buffers.append(buffer)


@dataclass
class _Roll:
    """How a buffer rolls: over which loop, along which axis, and what is realized instead."""

    loop: stmt.For
    axis: int
    low: PrimExpr
    extent: int
    overlap: int
    bounds: list[Range]


class _Places(StmtExprVisitor):
    """How each buffer of a list rolls."""

    def __init__(self, buffers: list[Buffer]) -> None:
        self.rolls: dict[Buffer, _Roll] = {}
        self._buffers = buffers
        self._loops: list[stmt.For] = []
        self._analyzer = Analyzer()

    def visit_for_(self, op: stmt.For) -> None:
        self._loops.append(op)
        self._visit_below(op)
        self._loops.pop()

    def visit_buffer_realize_(self, op: stmt.BufferRealize) -> None:
        if any(op.buffer.same_as(buffer) for buffer in self._buffers):
            self.rolls[op.buffer] = self._roll(op)
        self._visit_below(op)

    def _roll(self, op: stmt.BufferRealize) -> _Roll:
        for at, loop in enumerate(self._loops):
            for axis, bound in enumerate(op.bounds):
                step = self._step(bound.min, loop.loop_var)
                extent = bound.extent
                if step is None or not isinstance(extent, tvm.tir.IntImm):
                    continue
                overlap = int(extent) - step
                if step <= 0 or overlap <= 0:
                    continue
                if loop.kind != stmt.ForKind.SERIAL:
                    raise error.ValueError(
                        f"InjectRollingBuffer: {op.buffer.name} would roll over the loop "
                        f"{loop.loop_var.name}, whose trips do not follow each other; make it "
                        "serial"
                    )
                inner = self._loops[at + 1 :]
                bounds = [
                    Range(0, int(extent)) if d == axis else self._over(other, inner, op.buffer)
                    for d, other in enumerate(op.bounds)
                ]
                return _Roll(loop, axis, bound.min, int(extent), overlap, bounds)
        raise error.ValueError(
            f"InjectRollingBuffer: no trip of a loop needs of {op.buffer.name} what the trip "
            "before needed; compute it at a loop along which its regions overlap"
        )

    def _step(self, low: PrimExpr, var: expr.Var) -> int | None:
        """By how much a bound moves each trip; None where that is no constant."""
        parts = detect_linear_equation(low, [var])
        if len(parts) != 2:
            return None
        step = self._analyzer.simplify(parts[0])
        return int(step) if isinstance(step, tvm.tir.IntImm) else None

    def _over(self, bound: Range, loops: list[stmt.For], buffer: Buffer) -> Range:
        """What a bound reaches in all trips of the loops."""
        low, extent = bound.min, bound.extent
        for loop in reversed(loops):
            step = self._step(low, loop.loop_var)
            if step == 0:
                continue
            if step is None or step < 0:
                raise error.ValueError(
                    f"InjectRollingBuffer: what is needed of {buffer.name} does not move evenly "
                    f"with the loop {loop.loop_var.name}, which is inside of the rolling one"
                )
            low = tvm.tir.stmt_functor.substitute(low, {loop.loop_var: loop.min})
            extent = extent + step * (loop.extent - 1)
        simplify = self._analyzer.simplify
        return Range.from_min_extent(simplify(low), simplify(extent))


class _Roller(StmtExprMutator):
    def __init__(self, rolls: dict[Buffer, _Roll]) -> None:
        self._rolls = rolls

    def visit_for_(self, op: stmt.For) -> Any:
        made = self._visit_below(op)
        for buffer, roll in self._rolls.items():
            if roll.loop.same_as(op):
                made = stmt.BufferRealize(buffer, roll.bounds, tvm.tir.const(True, "bool"), made)
        return made

    def visit_buffer_realize_(self, op: stmt.BufferRealize) -> Any:
        return self.visit(op.body) if op.buffer in self._rolls else self._visit_below(op)

    def visit_attr_stmt_(self, op: stmt.AttrStmt) -> Any:
        if str(op.attr_key) in (_SCOPE, _PRAGMA):
            return self.visit(op.body)
        return self._visit_below(op)

    def _indices(self, op: Any) -> list[PrimExpr]:
        indices = [self.visit(index) for index in op.indices]
        roll = self._rolls.get(op.buffer)
        if roll is not None:
            indices[roll.axis] = tvm.tir.floormod(indices[roll.axis], roll.extent)
        return indices

    def visit_buffer_load_(self, op: expr.BufferLoad) -> Any:
        return expr.BufferLoad(op.buffer, self._indices(op))

    def visit_buffer_store_(self, op: stmt.BufferStore) -> Any:
        made = stmt.BufferStore(op.buffer, self.visit(op.value), self._indices(op))
        roll = self._rolls.get(op.buffer)
        if roll is None:
            return made
        # The trip before left the elements of the overlap behind.
        fresh = op.indices[roll.axis] >= roll.low + roll.overlap
        first = expr.EQ(roll.loop.loop_var, roll.loop.min)
        return stmt.IfThenElse(likely(tvm.tir.any(first, fresh)), made, None)


def InjectRollingBuffer() -> Pass:
    """Compute only what is new of a buffer in each trip of a loop, and keep the rest.

    For functions as a te schedule gives them (``realize`` statements), of whose stages
    ``Stage.rolling_buffer`` asks for it, or the attribute ``rolling_buffer_scope``. The buffer
    lives around the outermost loop along which the regions that its trips need overlap, and its
    elements are at their index modulo the extent of the region. As a pass of one's own in phase 0:
    ``PassContext(config={"tir.add_lower_pass": [(0, InjectRollingBuffer())]})``.

    Raises
    ------
    ValueError : (when run) regions do not overlap along any loop, or that loop is not serial.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        asked = _Asked()
        asked.visit(func.body)
        if not asked.buffers:
            return func
        places = _Places(asked.buffers)
        places.visit(func.body)
        return func.with_body(_Roller(places.rolls).visit(func.body))

    return prim_func_pass(run, opt_level=0, name="tir.InjectRollingBuffer")
