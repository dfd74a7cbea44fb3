"""Loops over the same thread axis of a kernel, made one loop around all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import error
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from .function_pass import prim_func_pass

__all__ = ["LiftThreadBinding"]


@dataclass
class _Axis:
    """The loops over one thread axis."""

    first: stmt.For
    # Loops around all of them, outermost first; the last one is where they meet.
    path: list[stmt.For]
    var: expr.Var
    loops: list[stmt.For] = field(default_factory=list)


def _common(one: Sequence[stmt.For], other: Sequence[stmt.For]) -> list[stmt.For]:
    shared = []
    for left, right in zip(one, other):
        if not left.same_as(right):
            break
        shared.append(left)
    return shared


class _Finder(StmtExprVisitor):
    """The thread axes below a loop."""

    def __init__(self) -> None:
        self.axes: dict[str, _Axis] = {}
        self._around: list[stmt.For] = []

    def visit_for_(self, op: stmt.For) -> None:
        self._around.append(op)
        if op.kind == stmt.ForKind.THREAD_BINDING:
            self._add(op)
        self._visit_below(op)
        self._around.pop()

    def _add(self, op: stmt.For) -> None:
        tag = op.thread_binding.thread_tag
        axis = self.axes.get(tag)
        if axis is None:
            var = expr.Var(tag, str(op.loop_var.dtype))
            axis = self.axes[tag] = _Axis(op, list(self._around), var)
        elif not tvm.ir.structural_equal(
            [axis.first.min, axis.first.extent], [op.min, op.extent], map_free_vars=False
        ):
            raise error.ValueError(
                f"LiftThreadBinding: {tag} has extent {axis.first.extent} in one loop and "
                f"{op.extent} in another; a kernel has one extent for each thread axis"
            )
        axis.path = _common(axis.path, self._around)
        axis.loops.append(op)


class _Lifter(StmtExprMutator):
    def __init__(self) -> None:
        self._in_kernel = False
        self._vars: dict[expr.Var, expr.Var] = {}
        # Axes by the loop inside of which they are bound.
        self._bound_in: list[tuple[stmt.For, _Axis]] = []

    def visit_var_(self, op: expr.Var) -> expr.PrimExpr:
        return self._vars.get(op, op)

    def visit_for_(self, op: stmt.For) -> stmt.Stmt:
        bound = op.kind == stmt.ForKind.THREAD_BINDING
        if self._in_kernel or not bound:
            return self._rewrite(op, bound)
        finder = _Finder()
        finder.visit(op)
        axes = [finder.axes[tag] for tag in sorted(finder.axes)]
        self._vars = {loop.loop_var: axis.var for axis in axes for loop in axis.loops}
        self._bound_in = [(axis.path[-1], axis) for axis in axes]
        self._in_kernel = True
        result = self._rewrite(op, bound)
        self._in_kernel = False
        self._vars, self._bound_in = {}, []
        return result

    def _rewrite(self, op: stmt.For, bound: bool) -> stmt.Stmt:
        body = self.visit(op.body)
        # Blocks outside of threads, and x outside of y.
        for _, axis in reversed([item for item in self._bound_in if item[0].same_as(op)]):
            body = self._loop(axis, body)
        if bound:
            return body
        extent, begin = self.visit(op.extent), self.visit(op.min)
        same = extent.same_as(op.extent) and begin.same_as(op.min) and body.same_as(op.body)
        if same:
            return op
        return stmt.For(op.loop_var, begin, extent, op.kind, body, None, op.annotations)

    def _loop(self, axis: _Axis, body: stmt.Stmt) -> stmt.For:
        annotations: dict[str, Any] = {}
        for loop in axis.loops:
            annotations.update(loop.annotations)
        first = axis.first
        return stmt.For(
            axis.var,
            self.visit(first.min),
            self.visit(first.extent),
            stmt.ForKind.THREAD_BINDING,
            body,
            first.thread_binding,
            annotations,
        )


@tvm._ffi.register_func("tir.transform.LiftThreadBinding")
def LiftThreadBinding() -> Pass:
    """Bind each thread axis of a kernel once, in the innermost loop around all loops over it.

    What stood beside such a loop is then done by each of its threads, as hardware does.

    Raises
    ------
    ValueError : (when run) loops over one thread axis differ in their extent.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        body = _Lifter().visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.LiftThreadBinding")
