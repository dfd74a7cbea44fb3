"""Bodies of functions in the place of their calls."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import GlobalVar, IRModule
from tvm.ir.transform import Pass, module_pass

from .. import expr, stmt
from ..block import BlockRealize
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from ..stmt_functor import substitute
from .transform import ConvertSSA

__all__ = ["InlinePrivateFunctions"]


class _Callees(StmtExprVisitor):
    """Functions of the module that a function calls."""

    def __init__(self, func: PrimFunc) -> None:
        self.found: set[GlobalVar] = set()
        self.visit(func.body)

    def visit_call_(self, op: expr.Call) -> None:
        if isinstance(op.op, GlobalVar):
            self.found.add(op.op)
        self._visit_below(op)


def _recursive(callees: dict[GlobalVar, set[GlobalVar]]) -> set[GlobalVar]:
    """The functions that call themselves, perhaps by way of others."""
    reached = {var: set(found) for var, found in callees.items()}
    changed = True
    while changed:
        changed = False
        for found in reached.values():
            further = found.union(*(reached.get(var, set()) for var in found))
            changed = changed or len(further) > len(found)
            found |= further
    return {var for var, found in reached.items() if var in found}


class _Inliner(StmtExprMutator):
    """Replaces calls that are statements; remembers the callees of the others."""

    def __init__(self, bodies: dict[GlobalVar, PrimFunc]) -> None:
        self._bodies = bodies
        self._target: str | None = None
        self.still_called: set[GlobalVar] = set()

    def function(self, func: PrimFunc) -> PrimFunc:
        self._target = _target_of(func)
        body = self.visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    def visit_evaluate_(self, op: stmt.Evaluate) -> stmt.Stmt:
        call = op.value
        callee = self._bodies.get(call.op) if isinstance(call, expr.Call) else None
        if callee is None or not self._same_target(callee):
            return self._visit_below(op)
        if len(callee.params) != len(call.args):
            raise error.ValueError(
                f"InlinePrivateFunctions: {call.op.name_hint} takes {len(callee.params)} "
                f"parameters and is called with {len(call.args)} arguments"
            )
        return self.visit(substitute(callee.body, dict(zip(callee.params, call.args))))

    def visit_call_(self, op: expr.Call) -> expr.PrimExpr:
        if isinstance(op.op, GlobalVar):
            self.still_called.add(op.op)
        return self._visit_below(op)

    def _same_target(self, callee: PrimFunc) -> bool:
        targets = {self._target, _target_of(callee)} - {None}
        return len(targets) <= 1


def _target_of(func: PrimFunc) -> str | None:
    attrs = func.attrs or {}
    return str(attrs["target"]) if "target" in attrs else None


def _can_be_inlined(func: Any) -> bool:
    return (
        isinstance(func, PrimFunc)
        and "global_symbol" not in (func.attrs or {})
        and len(func.buffer_map) == 0
        # Names of blocks are those of their function.
        and not isinstance(func.body, BlockRealize)
    )


def InlinePrivateFunctions() -> Pass:
    """Write functions without a global symbol out where they are called.

    That is for calls that are statements, of functions of the same target that take no buffers
    but pointers and numbers, have no root block, and do not call themselves. Functions that
    nothing calls any more are dropped.

    Raises
    ------
    ValueError : (when run) a call has another number of arguments than the function.
    """

    def run(mod: IRModule, ctx: Any) -> IRModule:
        programs = {var: f for var, f in mod.functions.items() if isinstance(f, PrimFunc)}
        recursive = _recursive({var: _Callees(func).found for var, func in programs.items()})
        bodies = {
            var: func
            for var, func in programs.items()
            if var not in recursive and _can_be_inlined(func)
        }
        inliner = _Inliner(bodies)
        after = dict(mod.functions.items())
        for var, func in programs.items():
            after[var] = inliner.function(func)
        if all(after[var].same_as(func) for var, func in programs.items()):
            return mod
        kept = {
            var: func
            for var, func in after.items()
            if var not in bodies or var in inliner.still_called
        }
        return ConvertSSA()(mod.with_functions(kept))

    return module_pass(run, opt_level=0, name="tir.InlinePrivateFunctions")
