"""Accesses outside of buffers, and the memory that programs allocate."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from tvm.arith import Analyzer, detect_linear_equation
from tvm.error import ScheduleError
from tvm.ir import IntImm, IRModule, PrimExpr, Range
from tvm.ir.transform import Pass, module_pass
from tvm.runtime import DataType

from ..block import Block, BlockRealize
from ..buffer import Buffer
from ..expr import BufferLoad, Call, Not, Var
from ..function import PrimFunc
from ..functor import StmtExprVisitor
from ..statement import Allocate, BufferRealize, BufferStore, For, IfThenElse
from .analysis import undefined_vars

__all__ = ["OOBChecker", "calculate_allocated_bytes"]


class _Accesses(StmtExprVisitor):
    """Accesses that are certainly outside of their buffers, in some iteration or in all."""

    def __init__(self) -> None:
        self.outside: list[str] = []
        self._analyzer = Analyzer()
        # Loops around, with constant bounds, and conditions under which not all iterations run.
        self._loops: list[tuple[Var, int, int]] = []
        self._conditions: list[PrimExpr] = []

    def visit_for_(self, op: For) -> None:
        self._analyzer.bind(op.loop_var, Range.from_min_extent(op.min, op.extent))
        constant = isinstance(op.min, IntImm) and isinstance(op.extent, IntImm)
        if not constant or int(op.extent) < 1:
            self._visit_below(op)
            return
        self._loops.append((op.loop_var, int(op.min), int(op.min) + int(op.extent) - 1))
        self._visit_below(op)
        self._loops.pop()

    def visit_block_realize_(self, op: BlockRealize) -> None:
        for axis, value in zip(op.block.iter_vars, op.iter_values):
            self._analyzer.bind(axis.var, value)
        with self._under(op.predicate):
            self._visit_below(op)

    @contextlib.contextmanager
    def _under(self, condition: PrimExpr) -> Iterator[None]:
        # In terms of loops, as indices are.
        self._conditions.append(self._analyzer.simplify(condition))
        with self._analyzer.constraint_scope(condition):
            yield
        self._conditions.pop()

    def visit_block_(self, op: Block) -> None:
        # What a block says of its regions is checked where it makes the accesses.
        if op.init is not None:
            self.visit(op.init)
        for match in op.match_buffers:
            for axis, extent in zip(match.source.region, match.source.buffer.shape):
                last = axis.min + axis.extent - 1
                self._check(match.source.buffer, axis.min, extent)
                self._check(match.source.buffer, last, extent)
        self.visit(op.body)

    def visit_if_then_else_(self, op: IfThenElse) -> None:
        self.visit(op.condition)
        with self._under(op.condition):
            self.visit(op.then_case)
        if op.else_case is not None:
            with self._under(Not(op.condition)):
                self.visit(op.else_case)

    def visit_call_(self, op: Call) -> None:
        if str(getattr(op.op, "name", "")) != "tir.if_then_else":
            self._visit_below(op)
            return
        self.visit(op.args[0])
        for condition, value in ((op.args[0], op.args[1]), (Not(op.args[0]), op.args[2])):
            with self._under(condition):
                self.visit(value)

    def visit_buffer_load_(self, op: BufferLoad) -> None:
        self._access(op)

    def visit_buffer_store_(self, op: BufferStore) -> None:
        self._access(op)

    def _access(self, op: Any) -> None:
        for index, extent in zip(op.indices, op.buffer.shape):
            self._check(op.buffer, index, extent)
        self._visit_below(op)

    def _check(self, buffer: Buffer, index: PrimExpr, extent: PrimExpr) -> None:
        if DataType(str(index.dtype)).lanes != 1:
            return
        least, most = self._extremes(index)
        outside = (
            self._analyzer.can_prove(index >= extent)
            or self._analyzer.can_prove(index < 0)
            or (most is not None and isinstance(extent, IntImm) and most >= int(extent))
            or (least is not None and least < 0)
        )
        if outside:
            self.outside.append(
                f"index {index} of buffer {buffer.name} is outside of [0, {extent})"
            )

    def _extremes(self, index: PrimExpr) -> tuple[int | None, int | None]:
        """The least and the greatest value that an index has; None where that is not certain."""
        index = self._analyzer.simplify(index)
        used = [loop for loop in self._loops if _uses(index, loop[0])]
        if any(_uses(condition, var) for condition in self._conditions for var, _, _ in used):
            return None, None
        # A sum of loops that run on their own has its extremes where each of them has.
        parts = detect_linear_equation(index, [var for var, _, _ in used])
        factors = [int(part) for part in parts if isinstance(part, IntImm)]
        if not factors or len(factors) != len(parts):
            return None, None
        *slopes, offset = factors
        ends = [
            sorted((slope * first, slope * last)) for slope, (_, first, last) in zip(slopes, used)
        ]
        return offset + sum(low for low, _ in ends), offset + sum(high for _, high in ends)


def _uses(expr: PrimExpr, var: Var) -> bool:
    return any(var.same_as(used) for used in undefined_vars(expr))


def OOBChecker() -> Pass:
    """A pass that changes nothing, and refuses accesses that are certainly outside of a buffer.

    Raises
    ------
    ScheduleError : (when run) names index and buffer.
    """

    @module_pass(opt_level=0, name="tir.analysis.OOBChecker")
    def check(mod: IRModule, ctx: Any) -> IRModule:
        for var, func in mod.functions.items():
            if not isinstance(func, PrimFunc):
                continue
            accesses = _Accesses()
            accesses.visit(func.body)
            if accesses.outside:
                raise ScheduleError(f"{var.name_hint}: {'; '.join(accesses.outside)}")
        return mod

    return check


class _Memory(StmtExprVisitor):
    """The most bytes that are allocated at a time, by scope."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self._now: dict[str, int] = {}

    def visit_allocate_(self, op: Allocate) -> None:
        scope = str(op.buffer_var.type_annotation.storage_scope) or "global"
        self._held(scope, op.extents, str(op.dtype), op)

    def visit_buffer_realize_(self, op: BufferRealize) -> None:
        extents = [bound.extent for bound in op.bounds]
        self._held(str(op.buffer.scope), extents, str(op.buffer.dtype), op)

    def _held(self, scope: str, extents: Any, dtype: str, op: Any) -> None:
        # Memory whose size only the program knows does not count.
        known = all(isinstance(extent, IntImm) for extent in extents)
        count = math.prod(int(extent) for extent in extents) if known else 0
        size = count * DataType(dtype).itemsize
        self._now[scope] = self._now.get(scope, 0) + size
        self.most[scope] = max(self.most.get(scope, 0), self._now[scope])
        self._visit_below(op)
        self._now[scope] -= size


def calculate_allocated_bytes(func_or_mod: PrimFunc | IRModule) -> dict[str, dict[str, int]]:
    """The most bytes that a function has allocated at a time, by its name and by scope.

    Allocations whose sizes are not constant do not count.

    Raises
    ------
    TypeError : the argument is neither a PrimFunc nor a module.
    """
    if isinstance(func_or_mod, PrimFunc):
        functions: dict[str, Any] = {"main": func_or_mod}
    elif isinstance(func_or_mod, IRModule):
        functions = {var.name_hint: func for var, func in func_or_mod.functions.items()}
    else:
        raise TypeError(
            f"calculate_allocated_bytes: expected a PrimFunc or an IRModule, got {func_or_mod!r}"
        )
    result = {}
    for name, func in functions.items():
        if isinstance(func, PrimFunc):
            memory = _Memory()
            memory.visit(func.body)
            result[str(name)] = memory.most
    return result
