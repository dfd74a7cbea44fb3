"""Reverse mode differentiation of programs with functions as values, matches, cells and recursion.

A tensor becomes a pair: itself, and a cell for its derivative. One cell holds what is to be done
backward: a function that each operator replaces by one which adds to the cells of its operands and
then calls the one before. Everything that is no operator stays as it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error
from tvm.ir import (
    Constructor,
    FuncType,
    GlobalVar,
    IRModule,
    Op,
    RelayExpr,
    TensorType,
    TupleType,
    Type,
    TypeCall,
)

from ..adt import Match
from ..analysis.infer import infer_module
from ..analysis.variables import free_vars
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
    set_checked_type,
)
from ..expr_functor import PostOrderMutator, post_order_visit
from ..op import elementwise as ew
from ..ty import RefType
from .normal_forms import ToANormalForm
from .structure import RemoveUnusedFunctions

__all__ = ["differentiated", "is_straight"]

PullBack = Callable[[Call, dict[tuple[int, ...], RelayExpr], Any], None]

_DONE = TupleType([])
_STEPS = RefType(FuncType([], _DONE))
_MAIN = "__differentiated__"


def is_straight(func: Function, mod: IRModule | None) -> bool:
    """Whether a program has no matches, cells or recursion, and calls only what it names."""
    pending: list[tuple[RelayExpr, tuple[str, ...]]] = [(func.body, ())]
    while pending:
        expr, active = pending.pop()
        found: list[RelayExpr] = []
        post_order_visit(expr, found.append)
        passed: set[RelayExpr] = set()
        for node in found:
            if isinstance(node, (Match, RefCreate, RefRead, RefWrite)):
                return False
            if isinstance(node, Let) and isinstance(node.value, Function):
                if node.var in free_vars(node.value):
                    return False
            elif isinstance(node, Call):
                passed.update(node.args)
                if not isinstance(node.op, (Op, Function, GlobalVar, Var)):
                    return False
        if any(isinstance(node, (Function, GlobalVar)) for node in passed):
            return False
        for node in found:
            if isinstance(node, GlobalVar) and mod is not None and node in mod:
                name = str(node.name_hint)
                if name in active:
                    return False
                pending.append((mod[name].body, (*active, name)))
    return True


def differentiated(func: Function, mod: IRModule | None, pull_back: PullBack) -> Function:
    """What `gradient` makes of a program of any kind.

    Parameters
    ----------
    mod : has the functions that it calls by name, and gets theirs that go backward: "f_grad".
    pull_back : takes a call of an operator with typed variables as operands, the derivatives by the
        tensors of its result, and a function that it gives those by tensors of operands.

    Raises
    ------
    TypeError : a parameter or the result is no tensor or tuple of them.
    """
    whole = IRModule() if mod is None else mod.clone()
    whole[_MAIN] = func
    whole = infer_module(ToANormalForm()(RemoveUnusedFunctions([_MAIN])(infer_module(whole))))
    found = _Program(whole, mod)
    main = whole[_MAIN]
    whole[_MAIN] = _entry(main, found, pull_back)
    for name, gvar in found.backward.items():
        steps = Var("steps", _STEPS)
        new = _Backward(found, steps, pull_back).function(whole[name])
        whole[gvar] = Function(
            [steps, *new.params], new.body, new.ret_type, new.type_params, new.attrs
        )
    typed = infer_module(whole)
    if mod is not None:
        for gvar in found.backward.values():
            mod.update_func(gvar, typed[str(gvar.name_hint)])
    return typed[_MAIN]


class _Program:
    """The functions that a program calls by name, and the names of those that go backward."""

    def __init__(self, whole: IRModule, mod: IRModule | None) -> None:
        self.backward: dict[str, GlobalVar] = {}
        for gvar in whole.get_global_vars():
            name = str(gvar.name_hint)
            if name == _MAIN or not isinstance(whole[name], Function):
                continue
            new, count = f"{name}_grad", 1
            while new in whole or (mod is not None and new in mod):
                count += 1
                new = f"{name}_grad{count}"
            self.backward[name] = GlobalVar(new)


def _paired(type_: Any) -> Any:
    """The type of what a value becomes."""
    if isinstance(type_, TensorType):
        return TupleType([type_, RefType(type_)])
    if isinstance(type_, TupleType):
        return TupleType([_paired(f) for f in type_.fields])
    if isinstance(type_, FuncType):
        args = [_paired(a) for a in type_.arg_types]
        return FuncType(args, _paired(type_.ret_type), list(type_.type_params))
    if isinstance(type_, RefType):
        return RefType(_paired(type_.value))
    if isinstance(type_, TypeCall):
        return TypeCall(type_.func, [_paired(a) for a in type_.args])
    return type_


def _with_cells(value: RelayExpr, type_: Type) -> RelayExpr:
    """Tensors of a value with cells for their derivatives, which are zero."""
    if isinstance(type_, TupleType):
        fields = [_with_cells(TupleGetItem(value, k), f) for k, f in enumerate(type_.fields)]
        return Tuple(fields)
    if not isinstance(type_, TensorType):
        raise error.TypeError(f"relay.gradient: values of type {type_} have no derivative")
    return Tuple([value, RefCreate(ew.zeros_like(value))])


def _part(pairs: RelayExpr, type_: Type, place: int) -> RelayExpr:
    """The tensors of pairs (0), or what their cells hold (1)."""
    if isinstance(type_, TupleType):
        fields = [_part(TupleGetItem(pairs, k), f, place) for k, f in enumerate(type_.fields)]
        return Tuple(fields)
    found = TupleGetItem(pairs, place)
    return RefRead(found) if place else found


def _at(value: RelayExpr, path: Sequence[int]) -> RelayExpr:
    for k in path:
        value = TupleGetItem(value, k)
    return value


def _real(type_: Any, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Where a value has tensors of real numbers."""
    if isinstance(type_, TupleType):
        return [leaf for k, f in enumerate(type_.fields) for leaf in _real(f, (*path, k))]
    return [path] if "float" in str(type_.dtype) else []


class _Bindings:
    """Values named in order, in front of a result."""

    def __init__(self) -> None:
        self._values: list[tuple[Var, RelayExpr]] = []

    def name(self, value: RelayExpr, hint: str = "t") -> Var:
        self._values.append((Var(hint), value))
        return self._values[-1][0]

    def around(self, result: RelayExpr) -> RelayExpr:
        for var, value in reversed(self._values):
            result = Let(var, value, result)
        return result


def _entry(func: Function, program: _Program, pull_back: PullBack) -> Function:
    """The function that goes forward, then backward, and gives the result and all derivatives."""
    steps, scope = Var("steps"), _Bindings()
    backward = _Backward(program, steps, pull_back)
    params = [Var(str(p.name_hint), p.checked_type) for p in func.params]
    for old, new in zip(func.params, params):
        backward.memo_map[old] = scope.name(_with_cells(new, old.checked_type), "pair")
    type_ = func.body.checked_type
    _with_cells(func.body, type_)  # refuses results that have no derivative
    result = scope.name(backward.visit(func.body), "result")
    for path in _real(type_):
        pair = _at(result, path)
        scope.name(RefWrite(TupleGetItem(pair, 1), ew.ones_like(TupleGetItem(pair, 0))), "head")
    scope.name(Call(RefRead(steps), []), "done")
    found = Tuple([_part(backward.memo_map[p], p.checked_type, 1) for p in func.params])
    body = scope.around(Tuple([_part(result, type_, 0), found]))
    return Function(params, Let(steps, RefCreate(Function([], Tuple([]))), body))


class _Backward(PostOrderMutator):
    def __init__(self, program: _Program, steps: Var, pull_back: PullBack) -> None:
        super().__init__()
        self._program = program
        self._steps = steps
        self._pull_back = pull_back
        # What operators take as it is: settings are constants.
        self._constants: dict[RelayExpr, Constant] = {}
        # Other names of functions of the module.
        self._functions: dict[RelayExpr, GlobalVar] = {}

    def function(self, func: Function) -> Function:
        """A function of pairs."""
        params = [self.visit(p) for p in func.params]
        result = _paired(func.checked_type.ret_type)
        return Function(params, self.visit(func.body), result, func.type_params, func.attrs)

    def visit_function(self, func: Function) -> RelayExpr:
        return self.function(func)

    def visit_var(self, var: Var) -> RelayExpr:
        if var in self._functions:
            return self.visit_global_var(self._functions[var])
        type_ = var.type_annotation if var.checked_type_ is None else var.checked_type_
        return Var(str(var.name_hint), _paired(type_))

    def visit_let(self, let: Let) -> RelayExpr:
        bindings = []
        node: RelayExpr = let
        while isinstance(node, Let):
            if isinstance(node.value, GlobalVar):
                self._functions[node.var] = node.value
            else:
                if isinstance(node.value, Constant):
                    self._constants[node.var] = node.value
                bindings.append((self.visit(node.var), self.visit(node.value)))
            node = node.body
        result = self.visit(node)
        for var, value in reversed(bindings):
            result = Let(var, value, result)
        return result

    def visit_constant(self, const: Constant) -> RelayExpr:
        return _with_cells(const, const.checked_type)

    def visit_if(self, iff: If) -> RelayExpr:
        cond = TupleGetItem(self.visit(iff.cond), 0)
        return If(cond, self.visit(iff.true_branch), self.visit(iff.false_branch))

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        """A function as a value, which knows the steps."""
        type_ = gvar.checked_type
        typed = not len(type_.type_params)
        params = [Var(f"x{k}", _paired(a) if typed else None)
                  for k, a in enumerate(type_.arg_types)]  # fmt: skip
        return Function(params, self._called(gvar, params))

    def _called(self, gvar: GlobalVar, args: Sequence[RelayExpr]) -> Call:
        return Call(self._program.backward[str(gvar.name_hint)], [self._steps, *args])

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        return list(expr.args) if isinstance(expr, Call) else super().visited_first(expr)

    def visit_call(self, call: Call) -> RelayExpr:
        args = [self.visit(a) for a in call.args]
        if isinstance(call.op, Op):
            return self._operator(call, args)
        callee: RelayExpr = self._functions.get(call.op) or call.op
        if isinstance(callee, GlobalVar):
            return self._called(callee, args)
        op = callee if isinstance(callee, Constructor) else self.visit(callee)
        return Call(op, args)

    def _operator(self, call: Call, args: list[RelayExpr]) -> RelayExpr:
        scope = _Bindings()
        pairs: list[RelayExpr | None] = []
        operands: list[RelayExpr] = []
        for old, new in zip(call.args, args):
            known = old if isinstance(old, Constant) else self._constants.get(old)
            if known is None:
                pair = scope.name(new, "pair")
                operand = scope.name(_part(pair, old.checked_type, 0), "x")
                pairs.append(pair)
                operands.append(set_checked_type(operand, old.checked_type))
            else:
                pairs.append(None)
                operands.append(known)
        primal = set_checked_type(Call(call.op, operands, call.attrs), call.checked_type)
        result = scope.name(_with_cells(scope.name(primal, "value"), call.checked_type), "result")
        step = self._step(primal, pairs, result)
        if step is not None:
            before = scope.name(RefRead(self._steps), "before")
            whole = Function([], step.around(Call(before, [])), _DONE)
            scope.name(RefWrite(self._steps, whole), "after")
        return scope.around(result)

    def _step(
        self, primal: Call, pairs: Sequence[RelayExpr | None], result: RelayExpr
    ) -> _Bindings | None:
        """Adding what the derivative by a result is by the operands, if it is by any."""
        real = [
            pair is not None and bool(_real(arg.checked_type))
            for pair, arg in zip(pairs, primal.args)
        ]
        leaves = _real(primal.checked_type)
        if not leaves or not any(real):
            return None
        scope = _Bindings()
        heads: dict[tuple[int, ...], RelayExpr] = {
            path: scope.name(RefRead(TupleGetItem(_at(result, path), 1)), "head") for path in leaves
        }
        places = {arg: place for place, arg in enumerate(primal.args)}

        def give(operand: RelayExpr, path: tuple[int, ...], head: RelayExpr) -> None:
            pair = pairs[places[operand]]
            if pair is not None:
                cell = TupleGetItem(_at(pair, path), 1)
                scope.name(RefWrite(cell, ew.add(RefRead(cell), head)), "added")

        self._pull_back(primal, heads, give)
        return scope
