"""What a program does that follows from what is known of it, done beforehand.

Values are followed through the program together with the expressions that compute them: fields of
tuples, functions, constructors and contents of references are known where they are made. What
remains is a chain of lets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tvm.ir import Constructor, GlobalVar, IRModule, Op, RelayExpr, Type, TypeVar
from tvm.ir.transform import Pass

from ..adt import (
    Clause,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)
from ..analysis.variables import free_type_vars
from ..expr import (
    Call,
    Constant,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from .base import expression_pass
from .of_expressions import FoldConstantExpr

__all__ = ["PartialEvaluate"]

# Calls of one function inside of each other that are written out, where arguments are known.
_DEPTH = 64

Env = Mapping[Var, "_Value"]


@dataclass(eq=False)
class _Tuple:
    fields: Sequence[_Value]


@dataclass(eq=False)
class _Made:
    constructor: Constructor
    fields: Sequence[_Value]


@dataclass(eq=False)
class _Closure:
    """A function; ``name`` tells calls of it inside of each other."""

    func: Function
    env: dict[Var, _Value]
    name: object


@dataclass(eq=False)
class _Reference:
    """A place that can be written."""


Known = _Tuple | _Made | _Closure | _Reference | Constant | None


@dataclass(eq=False)
class _Value:
    """An expression that needs no computing, and what is known of its value."""

    expr: RelayExpr
    known: Known = None


@dataclass
class _Scope:
    """Lets in the order in which they run, and what references hold now."""

    bindings: list[tuple[Var, RelayExpr]] = field(default_factory=list)
    contents: dict[_Reference, _Value] = field(default_factory=dict)

    def name(self, expr: RelayExpr, known: Known = None) -> _Value:
        """Bind an expression."""
        if isinstance(expr, (Var, Constant, GlobalVar, Op, Constructor)):
            return _Value(expr, known)
        var = Var("x")
        self.bindings.append((var, expr))
        return _Value(var, known)

    def closed(self, result: RelayExpr) -> RelayExpr:
        """The result behind all lets."""
        for var, value in reversed(self.bindings):
            result = Let(var, value, result)
        return result


def _said(type_: Type | None, own: Sequence[TypeVar]) -> Type | None:
    """A type that is written somewhere else too, where only some type parameters are known."""
    if type_ is None or any(var not in own for var in free_type_vars(type_)):
        return None
    return type_


def _is_foreign(func: Function) -> bool:
    attrs = func.attrs or {}
    return "Primitive" in attrs or "Compiler" in attrs


class _Evaluator:
    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._active: list[object] = []

    def function(self, func: Function, env: Env) -> Function:
        """A function with its body evaluated, of parameters of which nothing is known."""
        if _is_foreign(func):
            return func
        inner = _Scope()
        own = list(func.type_params)
        params = {p: Var(str(p.name_hint), _said(p.type_annotation, own)) for p in func.params}
        known = {**env, **{p: _Value(v) for p, v in params.items()}}
        result = self.value(func.body, known, inner)
        body = inner.closed(result.expr)
        ret_type = _said(func.ret_type, own)
        return Function(list(params.values()), body, ret_type, func.type_params, func.attrs)

    def value(self, expr: RelayExpr, env: Env, scope: _Scope) -> _Value:
        """The value of an expression, computed by lets of the scope."""
        while isinstance(expr, Let):
            env = {**env, expr.var: self._let(expr, env, scope)}
            expr = expr.body
        if isinstance(expr, Var):
            return env.get(expr, _Value(expr))
        if isinstance(expr, Constant):
            return _Value(expr, expr)
        method: Callable[..., _Value] | None = _METHODS.get(type(expr))
        return _Value(expr) if method is None else method(self, expr, env, scope)

    def _let(self, let: Let, env: Env, scope: _Scope) -> _Value:
        if not isinstance(let.value, Function) or _is_foreign(let.value):
            return self.value(let.value, env, scope)
        # A function may call itself by the name that it gets.
        var = Var(str(let.var.name_hint))
        own = _Closure(let.value, dict(env), object())
        value = _Value(var, own)
        own.env[let.var] = value
        self._active.append(own.name)
        written = self.function(let.value, own.env)
        self._active.pop()
        scope.bindings.append((var, written))
        return value

    def _function(self, expr: Function, env: Env, scope: _Scope) -> _Value:
        if _is_foreign(expr):
            return scope.name(expr)
        known = _Closure(expr, dict(env), object())
        self._active.append(known.name)
        written = self.function(expr, env)
        self._active.pop()
        return scope.name(written, known)

    def _tuple(self, expr: Tuple, env: Env, scope: _Scope) -> _Value:
        fields = [self.value(part, env, scope) for part in expr.fields]
        return scope.name(Tuple([f.expr for f in fields]), _Tuple(fields))

    def _item(self, expr: TupleGetItem, env: Env, scope: _Scope) -> _Value:
        of = self.value(expr.tuple_value, env, scope)
        if isinstance(of.known, _Tuple):
            return of.known.fields[int(expr.index)]
        return scope.name(TupleGetItem(of.expr, int(expr.index)))

    def _global(self, expr: GlobalVar, env: Env, scope: _Scope) -> _Value:
        func = self._mod.functions.get(expr)
        if not isinstance(func, Function) or _is_foreign(func):
            return _Value(expr)
        return _Value(expr, _Closure(func, {}, str(expr.name_hint)))

    def _if(self, expr: If, env: Env, scope: _Scope) -> _Value:
        cond = self.value(expr.cond, env, scope)
        if isinstance(cond.known, Constant):
            chosen = expr.true_branch if bool(cond.known.data.numpy()) else expr.false_branch
            return self.value(chosen, env, scope)
        branches = [
            self._branch(branch, env, scope) for branch in (expr.true_branch, expr.false_branch)
        ]
        scope.contents.clear()
        return scope.name(If(cond.expr, *branches))

    def _branch(self, expr: RelayExpr, env: Env, scope: _Scope) -> RelayExpr:
        inner = _Scope(contents=dict(scope.contents))
        return inner.closed(self.value(expr, env, inner).expr)

    def _match(self, expr: Match, env: Env, scope: _Scope) -> _Value:
        data = self.value(expr.data, env, scope)
        clauses: list[Clause] = []
        for clause in expr.clauses:
            found: dict[Var, _Value] = {}
            fits = _fits(clause.lhs, data, found)
            if fits is True and not clauses:
                return self.value(clause.rhs, {**env, **found}, scope)
            if fits is False:
                continue
            clauses.append(self._clause(clause, env, scope))
        scope.contents.clear()
        return scope.name(Match(data.expr, clauses, expr.complete))

    def _clause(self, clause: Clause, env: Env, scope: _Scope) -> Clause:
        renamed: dict[Var, _Value] = {}
        lhs = _renamed(clause.lhs, renamed)
        return Clause(lhs, self._branch(clause.rhs, {**env, **renamed}, scope))

    def _ref_create(self, expr: RefCreate, env: Env, scope: _Scope) -> _Value:
        value = self.value(expr.value, env, scope)
        place = _Reference()
        made = scope.name(RefCreate(value.expr), place)
        scope.contents[place] = value
        return made

    def _ref_read(self, expr: RefRead, env: Env, scope: _Scope) -> _Value:
        ref = self.value(expr.ref, env, scope)
        if isinstance(ref.known, _Reference) and ref.known in scope.contents:
            return scope.contents[ref.known]
        return scope.name(RefRead(ref.expr))

    def _ref_write(self, expr: RefWrite, env: Env, scope: _Scope) -> _Value:
        ref, value = (self.value(part, env, scope) for part in (expr.ref, expr.value))
        if isinstance(ref.known, _Reference):
            scope.contents[ref.known] = value
        else:
            # Any reference may be meant.
            scope.contents.clear()
        return scope.name(RefWrite(ref.expr, value.expr), _Tuple([]))

    def _call(self, expr: Call, env: Env, scope: _Scope) -> _Value:
        callee = self.value(expr.op, env, scope)
        args = [self.value(arg, env, scope) for arg in expr.args]
        if isinstance(callee.expr, Op):
            return self._operator(expr, args, scope)
        call = Call(callee.expr, [a.expr for a in args], expr.attrs)
        if isinstance(callee.expr, Constructor):
            return scope.name(call, _Made(callee.expr, args))
        closure = callee.known
        if isinstance(closure, _Closure) and self._may_write_out(closure, args):
            self._active.append(closure.name)
            bound = {**closure.env, **dict(zip(closure.func.params, args))}
            result = self.value(closure.func.body, bound, scope)
            self._active.pop()
            return result
        # What is called may write any reference.
        scope.contents.clear()
        return scope.name(call)

    def _may_write_out(self, closure: _Closure, args: Sequence[_Value]) -> bool:
        """Whether a call ends: the function does not run, or knows what decides."""
        depth = self._active.count(closure.name)
        if depth == 0:
            return True
        decides = any(isinstance(a.known, (_Made, _Tuple, Constant)) for a in args)
        return decides and depth < _DEPTH

    def _operator(self, expr: Call, args: Sequence[_Value], scope: _Scope) -> _Value:
        operands = []
        for arg in args:
            whole = _as_constant(arg)
            operands.append(arg.expr if whole is None else whole)
        call = Call(expr.op, operands, expr.attrs)
        if args and all(_as_constant(arg) is not None for arg in args):
            # The call names no functions, so those of the module need not be looked at.
            folded = FoldConstantExpr(call, IRModule())
            if isinstance(folded, Constant):
                return _Value(folded, folded)
            if isinstance(folded, Tuple) and all(isinstance(f, Constant) for f in folded.fields):
                fields = [_Value(f, f) for f in folded.fields]
                return scope.name(folded, _Tuple(fields))
        return scope.name(Call(expr.op, [a.expr for a in args], expr.attrs))


def _as_constant(value: _Value) -> RelayExpr | None:
    """A value that is a constant, or a tuple of such; else None."""
    if isinstance(value.known, Constant):
        return value.known
    if isinstance(value.known, _Tuple):
        fields = [_as_constant(f) for f in value.known.fields]
        whole = [f for f in fields if f is not None]
        return Tuple(whole) if len(whole) == len(fields) else None
    return None


def _fits(pattern: Pattern, value: _Value, found: dict[Var, _Value]) -> bool | None:
    """Whether a value matches, with the variables of the pattern; None if that is not known."""
    if isinstance(pattern, PatternWildcard):
        return True
    if isinstance(pattern, PatternVar):
        found[pattern.var] = value
        return True
    parts: Sequence[_Value]
    if isinstance(pattern, PatternTuple) and isinstance(value.known, _Tuple):
        parts = value.known.fields
    elif isinstance(pattern, PatternConstructor) and isinstance(value.known, _Made):
        if not value.known.constructor.same_as(pattern.constructor):
            return False
        parts = value.known.fields
    else:
        return None
    each = [_fits(inner, part, found) for inner, part in zip(pattern.patterns, parts)]
    if False in each:
        return False
    return None if None in each else True


def _renamed(pattern: Pattern, found: dict[Var, _Value]) -> Pattern:
    """A pattern with variables of its own."""
    if isinstance(pattern, PatternVar):
        var = Var(str(pattern.var.name_hint), _said(pattern.var.type_annotation, ()))
        found[pattern.var] = _Value(var)
        return PatternVar(var)
    if isinstance(pattern, PatternConstructor):
        inner = [_renamed(p, found) for p in pattern.patterns]
        return PatternConstructor(pattern.constructor, inner)
    if isinstance(pattern, PatternTuple):
        return PatternTuple([_renamed(p, found) for p in pattern.patterns])
    return pattern


_METHODS: dict[type, Callable[..., _Value]] = {
    Call: _Evaluator._call,
    Function: _Evaluator._function,
    GlobalVar: _Evaluator._global,
    If: _Evaluator._if,
    Match: _Evaluator._match,
    RefCreate: _Evaluator._ref_create,
    RefRead: _Evaluator._ref_read,
    RefWrite: _Evaluator._ref_write,
    Tuple: _Evaluator._tuple,
    TupleGetItem: _Evaluator._item,
}


def PartialEvaluate() -> Pass:
    """Do beforehand what follows from what is known.

    Fields of tuples that are made here, contents of references, branches whose condition and
    matches whose value is known, and calls of functions that are known are written out; operators
    over constants are computed. A function that calls itself is written out as far as constants,
    tuples or made values are among the arguments, 64 calls deep at most. What is left is in
    A-normal form; `DeadCodeElimination` takes away what nobody reads.

    Writing functions out may lengthen a program without end where they call themselves often.
    """

    def evaluated(func: Function, mod: IRModule) -> Function:
        return _Evaluator(mod).function(func, {})

    return expression_pass(evaluated, 1, "PartialEvaluate")
