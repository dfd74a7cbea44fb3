"""Conditions and bindings that a loop does not change, outside of the loop."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag
from typing import Any

from tvm.ir import PrimExpr, structural_equal
from tvm.ir.transform import Pass, PassContext

from .. import expr, stmt
from ..analysis import CallEffectKind, side_effect, undefined_vars
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from ..op import if_then_else
from ..stmt_functor import renew_bindings
from .function_pass import prim_func_pass

__all__ = ["HoistExpression", "HoistIfThenElse", "HoistedConditionals", "HoistedLetBindings"]


class HoistedConditionals(Flag):
    """Which conditions are tested outside of loops that do not change them."""

    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4
    UsingBlockVar = 8
    All = IfElseStmt | IfElseExpr | BooleanExpression | UsingBlockVar


class HoistedLetBindings(Flag):
    """Which bindings are made outside of loops that do not change them."""

    Never = 0
    RequiredByConditional = 1
    LetStmt = 2
    LetExpr = 4
    All = RequiredByConditional | LetStmt | LetExpr


@dataclass
class _Options:
    conditionals: HoistedConditionals
    bindings: HoistedLetBindings
    # Only out of loops that hold no statement beside what moves.
    alone: bool = False


class _Finder(StmtExprVisitor):
    """The first thing in the body of a loop that does not depend on anything bound in it."""

    def __init__(self, loop: stmt.For, options: _Options, threads: set[expr.Var]) -> None:
        self._options = options
        self._threads = threads
        self._bound = {loop.loop_var}
        # Bindings that only conditions may take outside, by variable.
        self._optional: dict[expr.Var, stmt.LetStmt] = {}
        self.condition: PrimExpr | None = None
        self.binding: stmt.LetStmt | expr.Let | None = None

    def _is_free(self, value: PrimExpr) -> bool:
        if side_effect(value) > CallEffectKind.Pure:
            return False
        variables = undefined_vars(value)
        if not (HoistedConditionals.UsingBlockVar & self._options.conditionals) and any(
            var in self._threads for var in variables
        ):
            return False
        return not any(var in self._bound for var in variables)

    def _done(self) -> bool:
        return self.condition is not None or self.binding is not None

    def visit_stmt(self, node: stmt.Stmt) -> None:
        if not self._done():
            super().visit_stmt(node)

    def visit_expr(self, node: PrimExpr) -> None:
        if not self._done():
            super().visit_expr(node)

    def _consider(self, condition: PrimExpr) -> None:
        parts = [condition]
        if HoistedConditionals.BooleanExpression & self._options.conditionals:
            parts += _conjuncts(condition)
        for part in parts:
            test = _unlikely(part)
            if self._done() or isinstance(test, (expr.IntImm, expr.StringImm)):
                continue
            if self._is_free(test):
                self.condition = test
                return
            for var in undefined_vars(test):
                binding = self._optional.get(var)
                needed = HoistedLetBindings.RequiredByConditional & self._options.bindings
                if binding is not None and needed and self._is_free(binding.value):
                    self.binding = binding
                    return

    def visit_seq_stmt_(self, op: stmt.SeqStmt) -> None:
        if not self._options.alone:
            self._visit_below(op)

    def visit_if_then_else_(self, op: stmt.IfThenElse) -> None:
        if HoistedConditionals.IfElseStmt & self._options.conditionals:
            self._consider(op.condition)
        self._visit_below(op)

    def visit_call_(self, op: expr.Call) -> None:
        is_choice = getattr(op.op, "name", "") == "tir.if_then_else"
        if is_choice and HoistedConditionals.IfElseExpr & self._options.conditionals:
            self._consider(op.args[0])
        self._visit_below(op)

    def visit_select_(self, op: expr.Select) -> None:
        if HoistedConditionals.IfElseExpr & self._options.conditionals:
            self._consider(op.condition)
        self._visit_below(op)

    def visit_let_stmt_(self, op: stmt.LetStmt) -> None:
        if HoistedLetBindings.LetStmt & self._options.bindings and self._is_free(op.value):
            self.binding = op
            return
        self._optional[op.var] = op
        self._bind(op)

    def visit_let_(self, op: expr.Let) -> None:
        if HoistedLetBindings.LetExpr & self._options.bindings and self._is_free(op.value):
            self.binding = op
            return
        self._bind(op)

    def _bind(self, op: Any) -> None:
        self.visit(op.value)
        self._bound.add(op.var)
        self.visit(op.body)

    def visit_for_(self, op: stmt.For) -> None:
        self.visit(op.min)
        self.visit(op.extent)
        self._bound.add(op.loop_var)
        self.visit(op.body)

    def visit_attr_stmt_(self, op: stmt.AttrStmt) -> None:
        if isinstance(op.node, expr.IterVar):
            self._bound.add(op.node.var)
        self._visit_below(op)

    def visit_allocate_(self, op: stmt.Allocate) -> None:
        self._bound.add(op.buffer_var)
        self._visit_below(op)

    def visit_block_(self, op: Any) -> None:
        # The variables of a block have no place outside of it.
        self._bound.update(axis.var for axis in op.iter_vars)
        self._visit_below(op)


def _conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    condition = _unlikely(condition)
    if isinstance(condition, expr.And):
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [condition]


def _unlikely(condition: PrimExpr) -> PrimExpr:
    is_call = isinstance(condition, expr.Call)
    if is_call and getattr(condition.op, "name", "") == "tir.likely":
        return condition.args[0]
    return condition


class _Assume(StmtExprMutator):
    """The program where a condition is known; what is never reached goes."""

    def __init__(self, condition: PrimExpr, holds: bool) -> None:
        self._condition, self._holds = condition, holds

    def _known(self, condition: PrimExpr) -> bool | PrimExpr:
        test = _unlikely(condition)
        if structural_equal(test, self._condition):
            return self._holds
        if isinstance(test, expr.And):
            a, b = self._known(test.a), self._known(test.b)
            if a is False or b is False:
                return False
            if a is True or b is True:
                return b if a is True else a
            return condition if a is test.a and b is test.b else expr.And(a, b)
        if isinstance(test, expr.Not):
            inner = self._known(test.a)
            return not inner if isinstance(inner, bool) else condition
        return condition

    def visit_if_then_else_(self, op: stmt.IfThenElse) -> stmt.Stmt:
        known = self._known(op.condition)
        if known is True:
            return self.visit(op.then_case)
        if known is False:
            return stmt.Evaluate(0) if op.else_case is None else self.visit(op.else_case)
        otherwise = None if op.else_case is None else self.visit(op.else_case)
        return stmt.IfThenElse(known, self.visit(op.then_case), otherwise)

    def visit_call_(self, op: expr.Call) -> PrimExpr:
        if getattr(op.op, "name", "") != "tir.if_then_else":
            return self._visit_below(op)
        known = self._known(op.args[0])
        if isinstance(known, bool):
            return self.visit(op.args[1 if known else 2])
        return if_then_else(known, self.visit(op.args[1]), self.visit(op.args[2]))

    def visit_select_(self, op: expr.Select) -> PrimExpr:
        known = self._known(op.condition)
        if isinstance(known, bool):
            return self.visit(op.true_value if known else op.false_value)
        return expr.Select(known, self.visit(op.true_value), self.visit(op.false_value))


class _Unbind(StmtExprMutator):
    """The program without one binding, which stands around it."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def visit_let_stmt_(self, op: stmt.LetStmt) -> stmt.Stmt:
        if op.same_as(self._binding):
            return op.body
        return self._visit_below(op)

    def visit_let_(self, op: expr.Let) -> PrimExpr:
        return op.body if op.same_as(self._binding) else self._visit_below(op)


class _Hoister(StmtExprMutator):
    def __init__(self, options: _Options) -> None:
        self._options = options
        self._threads: set[expr.Var] = set()
        self._extents: dict[expr.Var, PrimExpr] = {}

    def visit_attr_stmt_(self, op: stmt.AttrStmt) -> stmt.Stmt:
        if op.attr_key != "thread_extent":
            return self._visit_below(op)
        axis = op.node.var
        self._threads.add(axis)
        around = self._extents.get(axis)
        # What a test says of an axis is decided by its extent, so there has to be one.
        if around is not None and not structural_equal(around, op.value):
            raise ValueError(
                f"hoisting: {op.node.thread_tag} ({axis.name}) is launched with {around} threads, "
                f"and inside of that with {op.value}; give one axis one extent"
            )
        self._extents.setdefault(axis, op.value)
        try:
            return self._visit_below(op)
        finally:
            if around is None:
                del self._extents[axis]

    def visit_for_(self, op: stmt.For) -> stmt.Stmt:
        is_thread = op.kind == stmt.ForKind.THREAD_BINDING
        if is_thread:
            self._threads.add(op.loop_var)
        if is_thread and not HoistedConditionals.UsingBlockVar & self._options.conditionals:
            return self._visit_below(op)
        finder = _Finder(op, self._options, self._threads)
        finder.visit(op.body)
        if finder.binding is not None:
            binding = finder.binding
            rest = loop_with_body(op, _Unbind(binding).visit(op.body))
            return stmt.LetStmt(binding.var, binding.value, self.visit(rest))
        if finder.condition is None:
            return self._visit_below(op)
        bodies = [_Assume(finder.condition, holds).visit(op.body) for holds in (True, False)]
        loops = [None if _is_nothing(body) else loop_with_body(op, body) for body in bodies]
        then_case, else_case = loops
        if then_case is not None and else_case is not None:
            else_case = renew_bindings(else_case)
        return stmt.IfThenElse(
            finder.condition,
            stmt.Evaluate(0) if then_case is None else self.visit(then_case),
            None if else_case is None else self.visit(else_case),
        )


def loop_with_body(loop: stmt.For, body: stmt.Stmt) -> stmt.For:
    """The loop around another body."""
    return stmt.For(
        loop.loop_var,
        loop.min,
        loop.extent,
        loop.kind,
        body,
        loop.thread_binding,
        loop.annotations,
    )


def _is_nothing(node: stmt.Stmt) -> bool:
    if isinstance(node, stmt.Evaluate):
        return isinstance(node.value, expr.IntImm)
    if isinstance(node, (stmt.For, stmt.LetStmt)):
        return _is_nothing(node.body)
    return False


def HoistExpression() -> Pass:
    """Test conditions and bind variables outside of loops that do not change them.

    A loop is written once for each outcome of a condition. The option ``tir.HoistExpression`` is a
    dict of ``hoisted_conditionals`` and ``hoisted_let_bindings``, the values of
    :class:`HoistedConditionals` and :class:`HoistedLetBindings`; without it all are hoisted that
    are not in terms of threads.
    """

    def run(func: PrimFunc, mod: Any, ctx: PassContext) -> PrimFunc:
        config = ctx.config
        given = dict(config["tir.HoistExpression"]) if "tir.HoistExpression" in config else {}
        unknown = set(given) - {"hoisted_conditionals", "hoisted_let_bindings"}
        if unknown:
            raise ValueError(
                f"tir.HoistExpression has no option {sorted(unknown)[0]}; there are "
                "hoisted_conditionals and hoisted_let_bindings"
            )
        usual = HoistedConditionals.All & ~HoistedConditionals.UsingBlockVar
        options = _Options(
            HoistedConditionals(int(given.get("hoisted_conditionals", usual.value))),
            HoistedLetBindings(
                int(given.get("hoisted_let_bindings", HoistedLetBindings.All.value))
            ),
        )
        body = _Hoister(options).visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.HoistExpression")


def HoistIfThenElse(variant: str | None = None) -> Pass:
    """Make the tests of ``if`` statements outside of loops that hold nothing beside them.

    The loop is written once for each outcome. The option ``tir.HoistIfThenElse`` is a dict;
    ``support_block_scope_hoisting`` (``hosting`` in TVM) also moves tests in terms of the threads
    of a launch. :func:`UnswitchLoops`, which lowering runs, copies more.

    Parameters
    ----------
    variant : "basic" for a pass that leaves tests in terms of threads where they are, whatever the
        option says.

    Raises
    ------
    ValueError : there is no such variant.
    """
    if variant not in (None, "basic"):
        raise ValueError(f'HoistIfThenElse: the variant is "basic" or None, got {variant!r}')

    def run(func: PrimFunc, mod: Any, ctx: PassContext) -> PrimFunc:
        config = ctx.config
        given = dict(config["tir.HoistIfThenElse"]) if "tir.HoistIfThenElse" in config else {}
        spellings = {"support_block_scope_hoisting", "support_block_scope_hosting"}
        unknown = set(given) - spellings
        if unknown:
            raise ValueError(
                f"tir.HoistIfThenElse has no option {sorted(unknown)[0]}; there is "
                "support_block_scope_hoisting"
            )
        conditionals = HoistedConditionals.IfElseStmt
        if variant is None and any(bool(value) for value in given.values()):
            conditionals |= HoistedConditionals.UsingBlockVar
        options = _Options(conditionals, HoistedLetBindings.Never, alone=True)
        body = _Hoister(options).visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.HoistIfThenElse")
