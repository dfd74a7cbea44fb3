"""Functions that hand their result to another function instead of returning it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import error
from tvm.ir import (
    Constructor,
    FuncType,
    GlobalVar,
    IRModule,
    Op,
    RelayExpr,
    Type,
    TypeCall,
    TypeVar,
)
from tvm.ir.transform import Pass, PassContext, module_pass

from ..adt import Clause, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from ..analysis.infer import infer_module
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
from ..ty import RefType
from ..type_functor import TypeMutator
from .normal_forms import ToANormalForm

__all__ = ["ToCPS", "holds_functions", "is_kernel_function", "to_cps", "un_cps"]


class _Types(TypeMutator):
    """Types of functions with one more parameter: what takes the result and gives the answer.

    Type variables stay themselves, so that a program and its types go on to agree.
    """

    def __init__(self, answer: TypeVar) -> None:
        super().__init__()
        self._answer = answer

    def visit_type_var(self, tv: TypeVar) -> Type:
        return tv

    def continuation(self, result: Type) -> FuncType:
        """The type of what takes a result of a type of the new program."""
        return FuncType([result], self._answer)

    def visit_func_type(self, ft: FuncType) -> Type:
        args = [self.visit(arg) for arg in ft.arg_types]
        args.append(self.continuation(self.visit(ft.ret_type)))
        return FuncType(args, self._answer, list(ft.type_params))


class _Put(TypeMutator):
    """Types with one type in the place of a variable."""

    def __init__(self, var: TypeVar, type_: Type) -> None:
        super().__init__()
        self._var, self._type = var, type_

    def visit_type_var(self, tv: TypeVar) -> Type:
        return self._type if tv.same_as(self._var) else tv


def is_kernel_function(func: Function) -> bool:
    """Whether a function computes without calling any of the program: kernels, other compilers."""
    return func.attrs is not None and any(k in func.attrs for k in ("Primitive", "Compiler"))


def holds_functions(type_: Type) -> bool:
    """Whether values of a type have functions inside."""
    if isinstance(type_, TypeCall):
        return any(holds_functions(arg) for arg in type_.args)
    if isinstance(type_, RefType):
        return holds_functions(type_.value)
    return isinstance(type_, FuncType) or any(map(holds_functions, getattr(type_, "fields", ())))


class _Conversion:
    """One function of a program, whose values have names and types, and those inside of it.

    Parameters
    ----------
    mod : has the functions that it calls by name.
    named : the new name of such a function.
    """

    def __init__(self, mod: IRModule, named: Callable[[GlobalVar], GlobalVar]) -> None:
        self._mod, self._named = mod, named
        self._answer = TypeVar("answer")
        self._types = _Types(self._answer)
        self._vars: dict[Var, RelayExpr] = {}
        self._kernels: set[Var] = set()

    def whole(self, func: Function) -> Function:
        """The function for every type of answer."""
        new = self._function(func)
        return Function(
            new.params, new.body, new.ret_type, [*new.type_params, self._answer], new.attrs
        )

    def _function(self, func: Function) -> Function:
        if is_kernel_function(func):
            return func
        params = [self._var(p) for p in func.params]
        signature = func.checked_type
        k = Var("k", self._types.continuation(self._types.visit(signature.ret_type)))
        return Function(
            [*params, k], self._block(func.body, k), self._answer, func.type_params, func.attrs
        )

    def _var(self, var: Var) -> Var:
        new = self._vars[var] = Var(str(var.name_hint), self._types.visit(var.checked_type))
        return new

    def _is_kernel(self, op: RelayExpr) -> bool:
        if isinstance(op, GlobalVar):
            func = self._mod[op]
            return not isinstance(func, Function) or is_kernel_function(func)
        if isinstance(op, Function):
            return is_kernel_function(op)
        return isinstance(op, (Op, Constructor)) or op in self._kernels

    def _jumps(self, expr: RelayExpr) -> bool:
        """Whether the value of an expression comes from a function or a branch."""
        if isinstance(expr, Call):
            return not self._is_kernel(expr.op)
        return isinstance(expr, (If, Match))

    def _block(self, expr: RelayExpr, k: RelayExpr) -> RelayExpr:
        """What hands the value of an expression to `k`."""
        # Parts between jumps: bindings, the jump behind them, the variable of its value.
        parts: list[tuple[list[tuple[Var, RelayExpr]], RelayExpr, Var]] = []
        bound: list[tuple[Var, RelayExpr]] = []
        while isinstance(expr, Let):
            if self._jumps(expr.value):
                parts.append((bound, expr.value, self._var(expr.var)))
                bound = []
            else:
                bound.extend(self._binding(expr))
            expr = expr.body
        end = self._jump(expr, k) if self._jumps(expr) else Call(k, [self._value(expr)])
        result = _let(bound, end)
        for before, jump, var in reversed(parts):
            rest = Function([var], result, self._answer)
            result = _let(before, self._jump(jump, rest))
        return result

    def _binding(self, let: Let) -> list[tuple[Var, RelayExpr]]:
        if isinstance(let.value, (Function, GlobalVar)) and self._is_kernel(let.value):
            self._kernels.add(let.var)
            self._vars[let.var] = let.var
            return [(let.var, let.value)]
        if isinstance(let.value, GlobalVar):
            # Its type is for every answer, so that each use says for which.
            self._vars[let.var] = self._named(let.value)
            return []
        new = self._var(let.var)  # before the value, which may be a function that calls itself
        return [(new, self._value(let.value))]

    def _jump(self, expr: RelayExpr, k: RelayExpr) -> RelayExpr:
        if isinstance(expr, Call):
            args = [self._value(arg) for arg in expr.args]
            return Call(self._value(expr.op), [*args, k], None, (), expr.span)
        if isinstance(k, Var):
            return self._branches(expr, k)
        # Each branch goes on with the same rest, which is written once.
        rest = Var("rest", self._types.continuation(k.params[0].type_annotation))
        return Let(rest, k, self._branches(expr, rest))

    def _branches(self, expr: RelayExpr, k: Var) -> RelayExpr:
        if isinstance(expr, If):
            return If(
                self._value(expr.cond),
                self._block(expr.true_branch, k),
                self._block(expr.false_branch, k),
            )
        assert isinstance(expr, Match)
        clauses = [Clause(self._pattern(c.lhs), self._block(c.rhs, k)) for c in expr.clauses]
        return Match(self._value(expr.data), clauses, expr.complete)

    def _pattern(self, pattern: Pattern) -> Pattern:
        if isinstance(pattern, PatternVar):
            return PatternVar(self._var(pattern.var))
        if isinstance(pattern, PatternTuple):
            return PatternTuple([self._pattern(p) for p in pattern.patterns])
        if isinstance(pattern, PatternConstructor):
            self._check(pattern.constructor)
            return PatternConstructor(
                pattern.constructor, [self._pattern(p) for p in pattern.patterns]
            )
        return pattern

    def _check(self, constructor: Constructor) -> None:
        if any(holds_functions(part) for part in constructor.inputs):
            raise error.ValueError(
                f"relay.transform.ToCPS: constructor '{constructor.name_hint}' holds functions, "
                "whose type is in the definition; make it a parameter of the defined type"
            )

    def _value(self, expr: RelayExpr) -> RelayExpr:
        """The new form of an expression that does not jump."""
        if isinstance(expr, Var):
            if expr not in self._vars:
                raise error.ValueError(
                    f"relay.transform.ToCPS: variable '{expr.name_hint}' is free"
                )
            return self._vars[expr]
        if isinstance(expr, Function):
            return self._function(expr)
        if isinstance(expr, GlobalVar):
            return expr if self._is_kernel(expr) else self._named(expr)
        if isinstance(expr, (Constant, Op)):
            return expr
        if isinstance(expr, Call):
            if isinstance(expr.op, Constructor):
                self._check(expr.op)
                op: RelayExpr = expr.op
            else:
                op = self._value(expr.op)
            return Call(op, [self._value(a) for a in expr.args], expr.attrs, (), expr.span)
        if isinstance(expr, Tuple):
            return Tuple([self._value(f) for f in expr.fields])
        if isinstance(expr, TupleGetItem):
            return TupleGetItem(self._value(expr.tuple_value), expr.index)
        if isinstance(expr, RefCreate):
            return RefCreate(self._value(expr.value))
        if isinstance(expr, RefRead):
            return RefRead(self._value(expr.ref))
        if isinstance(expr, RefWrite):
            return RefWrite(self._value(expr.ref), self._value(expr.value))
        if isinstance(expr, Constructor):
            raise error.ValueError(
                f"relay.transform.ToCPS: constructor '{expr.name_hint}' is used as a function; run "
                "relay.transform.EtaExpand(expand_constructor=True) before"
            )
        raise error.TypeError(f"relay.transform.ToCPS: no form for a {type(expr).__name__}")


def _let(bindings: Sequence[tuple[Var, RelayExpr]], body: RelayExpr) -> RelayExpr:
    for var, value in reversed(bindings):
        body = Let(var, value, body)
    return body


def _prepared(mod: IRModule) -> IRModule:
    """The module with names for all values, and with their types."""
    return ToANormalForm()(infer_module(mod))


def ToCPS() -> Pass:
    """Give each function a parameter behind its own, a function that takes the result, and what
    that gives as its result (continuation passing style); see :func:`to_cps`."""

    @module_pass(opt_level=1, name="ToCPS")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        named = _prepared(mod)
        # Functions of one name have another type now: a new variable that knows none yet.
        result = IRModule({}, mod.type_definitions)
        new = {str(gv.name_hint): GlobalVar(str(gv.name_hint)) for gv in mod.functions}
        for gvar, func in named.functions.items():
            if isinstance(func, Function) and not is_kernel_function(func):
                func = _Conversion(named, lambda gv: new[str(gv.name_hint)]).whole(func)
            result[new[str(gvar.name_hint)]] = func
        return infer_module(result if mod.attrs is None else result.with_attrs(mod.attrs))

    return run


def to_cps(func: Function, mod: IRModule | None = None) -> Function:
    """A function in continuation passing style: of (A, B) -> C it becomes one of
    (A, B, (C) -> answer) -> answer, for every type of answer.

    Operators and kernels go on to give their results; functions do so by calling what they are
    given, so that every call of a function is the last thing that another one does.

    Parameters
    ----------
    mod : has the functions that `func` calls; their new forms are added to it as ``<name>_cps``.

    Raises
    ------
    ValueError : constructors are used as functions, or hold functions.
    """
    around = IRModule() if mod is None else mod.clone()
    entry = GlobalVar("to_cps.entry")
    around[entry] = func
    around = _prepared(around)
    new: dict[str, GlobalVar] = {}
    pending: list[GlobalVar] = []

    def named(gvar: GlobalVar) -> GlobalVar:
        name = str(gvar.name_hint)
        if name not in new:
            new[name] = GlobalVar(f"{name}_cps")
            pending.append(gvar)
        return new[name]

    result = _Conversion(around, named).whole(around[entry])
    typed = around.clone()
    while pending:
        gvar = pending.pop()
        typed[named(gvar)] = _Conversion(around, named).whole(around[gvar])
    typed[entry] = result
    typed = infer_module(typed)
    if mod is not None:
        for gvar in new.values():
            mod[gvar] = typed[gvar]
    return typed[entry]


def un_cps(func: Function) -> Function:
    """A function that gives its result, of one that :func:`to_cps` made.

    Raises
    ------
    TypeError : the last parameter takes no result.
    """
    last = func.params[-1].type_annotation if len(func.params) else None
    if not isinstance(last, FuncType) or len(last.arg_types) != 1 or not len(func.type_params):
        raise error.TypeError(
            "relay.transform.un_cps: the function's last parameter is no continuation; take one "
            "that to_cps made"
        )
    result = last.arg_types[0]
    put = _Put(func.type_params[-1], result)
    result = put.visit(result)
    params = [Var(str(p.name_hint), put.visit(p.type_annotation)) for p in func.params[:-1]]
    value = Var("value", result)
    args = [*params, Function([value], value, result)]
    type_args = [*func.type_params[:-1], result]
    body = Call(func, args, None, type_args)
    return Function(params, body, result, func.type_params[:-1])
