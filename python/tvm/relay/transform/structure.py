"""Passes that change how a program is written, not what is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm.ir import GlobalVar, IRModule, Op, RelayExpr
from tvm.ir.transform import Pass, PassContext, module_pass

from ..analysis.infer import infer_module
from ..analysis.variables import free_vars
from ..binding import bind, substituted
from ..expr import (
    Call,
    Constant,
    Function,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from ..expr_functor import PostOrderMutator, PostOrderVisitor, post_order_visit
from ..op.registry import settings_of
from .base import expression_pass, relay_functions

__all__ = [
    "DeadCodeElimination",
    "EliminateCommonSubexpr",
    "Inline",
    "LambdaLift",
    "RemoveUnusedFunctions",
]


class _Share(PostOrderMutator):
    def __init__(self, fskip: Callable[[RelayExpr], bool] | None) -> None:
        super().__init__()
        self._fskip = fskip
        self._known: dict[Any, RelayExpr] = {}

    def _shared(self, key: Any, new: RelayExpr, old: RelayExpr) -> RelayExpr:
        if self._fskip is not None and self._fskip(old):
            return new
        return self._known.setdefault(key, new)

    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        assert isinstance(new, Call)
        if not isinstance(new.op, Op) or new.op.get_attr("TOpIsStateful"):
            return new
        settings = repr(sorted(settings_of(new).items()))
        key = (str(new.op.name), settings, tuple(map(_operand_key, new.args)))
        return self._shared(key, new, call)

    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        new = super().visit_tuple_getitem(item)
        assert isinstance(new, TupleGetItem)
        return self._shared(("item", new.index, new.tuple_value), new, item)


def _operand_key(operand: RelayExpr) -> Any:
    """What two operands have in common that are the same value: the expression itself, or of
    numbers and tuples what they hold."""
    if isinstance(operand, Constant) and not len(operand.data.shape):
        return ("number", str(operand.data.dtype), operand.data.numpy().tobytes())
    if isinstance(operand, Tuple):
        return ("tuple", *map(_operand_key, operand.fields))
    return operand


def EliminateCommonSubexpr(fskip: Callable[[RelayExpr], bool] | None = None) -> Pass:
    """Compute equal calls once.

    Parameters
    ----------
    fskip : says which expressions to leave alone.
    """
    return expression_pass(lambda f, mod: _Share(fskip).visit(f), 3, "EliminateCommonSubexpr")


class _Uses(PostOrderVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.count: dict[Var, int] = {}
        self.effects: set[RelayExpr] = set()

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        # Each use of a variable counts, where what uses it is visited.
        return [part for part in super().visited_first(expr) if not isinstance(part, Var)]

    def visit(self, expr: RelayExpr) -> Any:
        if isinstance(expr, Var):
            self.count[expr] = self.count.get(expr, 0) + 1
            return None
        return super().visit(expr)

    def visit_let(self, let: Let) -> None:
        node: RelayExpr = let
        while isinstance(node, Let):
            self.count.setdefault(node.var, 0)
            self.visit(node.value)
            node = node.body
        self.visit(node)

    def visit_function(self, func: Function) -> None:
        self.visit(func.body)


def _pure(expr: RelayExpr, mod: IRModule) -> bool:
    """Whether nothing is lost when an expression is not evaluated."""
    found = []

    def look(node: RelayExpr) -> None:
        if isinstance(node, (RefWrite, RefRead, RefCreate)):
            found.append(node)
        elif isinstance(node, Call) and not isinstance(node.op, Op):
            # What a value does that is called is not known.
            found.extend([] if isinstance(node.op, Function) else [node])

    if isinstance(expr, Function):
        return True
    post_order_visit(expr, look)
    return not found


class _Dead(PostOrderMutator):
    def __init__(self, mod: IRModule, inline_once: bool, ignore_impurity: bool) -> None:
        super().__init__()
        self._mod = mod
        self._inline_once = inline_once
        self._ignore_impurity = ignore_impurity
        self.uses: dict[Var, int] = {}

    def visit_let(self, let: Let) -> RelayExpr:
        bindings = []
        node: RelayExpr = let
        while isinstance(node, Let):
            bindings.append(node)
            node = node.body
        kept = []
        for binding in bindings:
            pure = self._ignore_impurity or _pure(binding.value, self._mod)
            count = self.uses.get(binding.var, 0)
            recursive = binding.var in free_vars(binding.value)
            if pure and (count == 0 or (recursive and count == 1)):
                continue
            if self._inline_once and pure and count == 1 and not recursive:
                self.memo_map[binding.var] = self.visit(binding.value)
                continue
            kept.append((binding, self.visit(binding.value)))
        body = self.visit(node)
        for old, value in reversed(kept):
            body = Let(old.var, value, body)
        return body


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> Pass:
    """Drop bindings that nothing uses.

    Parameters
    ----------
    inline_once : write values that are used once where they are used.
    ignore_impurity : drop those with effects too.
    """

    def rewrite(func: Function, mod: IRModule) -> RelayExpr:
        while True:
            uses = _Uses()
            uses.visit(func)
            dead = _Dead(mod, inline_once, ignore_impurity)
            dead.uses = uses.count
            new = dead.visit(func)
            if tvm.ir.structural_equal(new, func):
                return new
            func = new

    return expression_pass(rewrite, 1, "DeadCodeElimination")


def _called_names(func: RelayExpr) -> list[str]:
    found: dict[str, None] = {}

    def look(node: RelayExpr) -> None:
        if isinstance(node, GlobalVar):
            found.setdefault(str(node.name_hint))

    post_order_visit(func, look)
    return list(found)


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> Pass:
    """Drop functions that the entry functions, by default "main", never call."""

    @module_pass(opt_level=1, name="RemoveUnusedFunctions")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        pending = [n for n in (entry_functions or ["main"]) if n in mod]
        used: set[str] = set()
        while pending:
            name = pending.pop()
            if name in used or name not in mod:
                continue
            used.add(name)
            if isinstance(mod[name], Function):
                pending += _called_names(mod[name])
        result = mod.clone()
        for gvar, _ in relay_functions(mod):
            if str(gvar.name_hint) not in used:
                del result[str(gvar.name_hint)]
        return result

    return run


def _is_inlined(func: Any) -> bool:
    return (isinstance(func, Function) and func.attrs is not None
            and bool(int(func.attrs.get("Inline", 0) or 0)))  # fmt: skip


class _InlineCalls(PostOrderMutator):
    def __init__(self, mod: IRModule, active: tuple[str, ...]) -> None:
        super().__init__()
        self._mod = mod
        self._active = active

    def _definition(self, gvar: RelayExpr) -> Function | None:
        if not isinstance(gvar, GlobalVar) or gvar not in self._mod:
            return None
        name = str(gvar.name_hint)
        func = self._mod[name]
        if name in self._active or not _is_inlined(func) or name in _reached(self._mod, name):
            return None
        return func

    def _expanded(self, gvar: GlobalVar, func: Function) -> Function:
        inner = _InlineCalls(self._mod, (*self._active, str(gvar.name_hint)))
        return inner.visit(func)

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        func = self._definition(gvar)
        if func is None:
            return gvar
        return self._expanded(gvar, func)

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if isinstance(expr, Call) and isinstance(expr.op, GlobalVar):
            return list(expr.args)
        return super().visited_first(expr)

    def visit_call(self, call: Call) -> RelayExpr:
        func = self._definition(call.op)
        args = [self.visit(a) for a in call.args]
        if func is None:
            return super().visit_call(call)
        expanded = self._expanded(call.op, func)
        if expanded.attrs is not None and ("Primitive" in expanded.attrs or
                                           "Compiler" in expanded.attrs):  # fmt: skip
            return Call(expanded, args, call.attrs, call.type_args)
        return bind(expanded.body, dict(zip(expanded.params, args)))


def _reached(mod: IRModule, name: str) -> set[str]:
    """Functions that a function calls, at once or through others."""
    pending, seen = _called_names(mod[name]), set()
    while pending:
        used = pending.pop()
        if used in seen or used not in mod:
            continue
        seen.add(used)
        if isinstance(mod[used], Function):
            pending += _called_names(mod[used])
    return seen


def Inline() -> Pass:
    """Write functions with the attribute "Inline" where they are called, unless they call
    themselves, and drop those that nothing calls any more. Types are to be inferred again."""

    @module_pass(opt_level=1, name="Inline")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        result = mod.clone()
        called = {used for _, func in relay_functions(mod) for used in _called_names(func)}
        for gvar, func in relay_functions(mod):
            name = str(gvar.name_hint)
            result[name] = _InlineCalls(mod, (name,)).visit(func)
        for gvar, func in relay_functions(mod):
            name = str(gvar.name_hint)
            if _is_inlined(func) and name in called and name not in _reached(mod, name):
                del result[name]
        return result

    return run


def _taking(captured: Sequence[Var], new: Function, old: Function) -> Function:
    """The function of captured values that gives a function, which itself captures nothing."""
    type_ = old.checked_type
    typed = Function(new.params, new.body, type_.ret_type, new.type_params, new.attrs)
    if not captured:
        return typed
    params = [Var(v.name, v.checked_type) for v in captured]
    body = substituted(typed, dict(zip(captured, params)))
    return Function(params, body, type_, attrs={"Closure": 1})


class _Lift(PostOrderMutator):
    def __init__(self, mod: IRModule, name: str) -> None:
        super().__init__()
        self._mod, self._name = mod, name
        self._depth = 0
        self._count = 0

    def visit_function(self, func: Function) -> RelayExpr:
        self._depth += 1
        new = super().visit_function(func)
        self._depth -= 1
        attrs = func.attrs
        if not self._depth or (attrs is not None and "Primitive" in attrs):
            return new
        assert isinstance(new, Function)
        captured = free_vars(new)
        gvar = self._new_name()
        self._mod[gvar] = _taking(captured, new, func)
        return Call(gvar, captured) if captured else gvar

    def _new_name(self) -> GlobalVar:
        name = f"lifted_name_{self._name}"
        while name in self._mod:
            self._count += 1
            name = f"lifted_name_{self._name}_{self._count}"
        return GlobalVar(name)

    def visit_let(self, let: Let) -> RelayExpr:
        bindings: list[tuple[Var, RelayExpr]] = []
        node: RelayExpr = let
        while isinstance(node, Let):
            value = node.value
            if isinstance(value, Function) and node.var in free_vars(value):
                bindings.append((node.var, self._recursive(node.var, value)))
            else:
                bindings.append((node.var, self.visit(value)))
            node = node.body
        body = self.visit(node)
        for var, value in reversed(bindings):
            body = Let(var, value, body)
        return body

    def _recursive(self, var: Var, func: Function) -> RelayExpr:
        """A function that calls itself; inside it too, it is the new function applied to what it
        captures."""
        others = [v for v in free_vars(func) if not v.same_as(var)]
        gvar = self._new_name()
        itself = Call(gvar, others) if others else gvar
        self._mod[gvar] = func
        self._depth += 1
        inner = super().visit_function(substituted(func, {var: itself}))
        self._depth -= 1
        self._mod[gvar] = _taking(others, inner, func)
        return itself


def LambdaLift() -> Pass:
    """Make functions inside of functions functions of the module. Those that use variables around
    them become functions of these variables, with the attribute "Closure", that give the
    function."""

    @module_pass(opt_level=1, name="LambdaLift")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        result = infer_module(mod).clone()
        for gvar, func in relay_functions(result):
            name = str(gvar.name_hint)
            result[name] = _Lift(result, name).visit(func)
        return infer_module(result)

    return run
