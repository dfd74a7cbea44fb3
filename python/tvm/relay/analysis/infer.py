"""Finding the type of every expression."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import (
    Constructor,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    IRModule,
    Op,
    RelayExpr,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeRelation,
    TypeVar,
)

from ..adt import Clause, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
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
from ..expr_functor import PostOrderFunctor, PostOrderMutator, placed_like, post_order_visit
from ..op.registry import OpRow, row_of, settings_of
from ..op.shapes import computed_type, extent_number
from ..ty import Any as AnyExtent
from ..ty import IncompleteType, RefType

__all__ = ["call_type", "infer_function", "infer_module", "unified"]


@functools.lru_cache(maxsize=8192)
def _computed(row_name: str, types: tuple[Any, ...], settings: tuple[Any, ...]) -> Type:
    row = row_of(row_name)
    return computed_type(f"relay.{row_name}", row.compute, types, dict(settings))


def _row_type(row: OpRow, types: Sequence[Type], settings: Any, args: Sequence[RelayExpr]) -> Type:
    if row.rule is not None:
        return row.rule(types, settings, args)
    return _computed(row.name, tuple(types), tuple(settings.items()))


def call_type(call: Call, types: Sequence[Type | None]) -> tuple[list[Type | None], Type]:
    """Types of the operands and of the result of an operator's call.

    Raises
    ------
    TypeError, ValueError : the operator refuses operands of these types, or one is not known.
    """
    relation = call.op.get_attr("relay.type_rel")
    if relation is not None:
        return list(types), relation(list(types), call.attrs)
    row = row_of(call.op)
    settings = settings_of(call)
    for key, default in row.settings.items():
        settings.setdefault(key, default)
    if row.fill is not None:
        types = row.fill(types, settings)
    else:
        types = _like_partner(row, types)
    for place, type_ in enumerate(types):
        if type_ is None:
            raise error.TypeError(
                f"relay.{row.name}: the type of operand {place} is not known; give its variable a "
                "type, or say what it follows from"
            )
    return list(types), _row_type(row, [t for t in types if t is not None], settings, call.args)


def _like_partner(row: OpRow, types: Sequence[Type | None]) -> list[Type | None]:
    """Operands of unknown type get that of the other operand where both are of one type."""
    if len(types) == 2 and row.pattern <= 1 and None in types:
        known = types[0] if types[0] is not None else types[1]
        return [known, known]
    return list(types)


def _same_extent(a: Any, b: Any) -> bool:
    if isinstance(a, AnyExtent) or isinstance(b, AnyExtent):
        return True
    left, right = extent_number(a), extent_number(b)
    if left is not None or right is not None:
        return left == right
    return bool(tir.analysis.expr_deep_equal(a, b))


def unified(where: str, a: Type | None, b: Type | None) -> Any:
    """The type that fits two descriptions of one value.

    Raises
    ------
    TypeError : there is none.
    """
    a, b = _applied(a), _applied(b)
    if a is None or isinstance(a, IncompleteType):
        return b
    if b is None or isinstance(b, IncompleteType):
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        same = len(a.shape) == len(b.shape) and str(a.dtype) == str(b.dtype)
        if same and all(_same_extent(x, y) for x, y in zip(a.shape, b.shape)):
            shape = [y if isinstance(x, AnyExtent) else x for x, y in zip(a.shape, b.shape)]
            return TensorType(shape, str(a.dtype))
    elif isinstance(a, TupleType) and isinstance(b, TupleType):
        if len(a.fields) == len(b.fields):
            return TupleType([unified(where, x, y) for x, y in zip(a.fields, b.fields)])
    elif isinstance(a, FuncType) and isinstance(b, FuncType):
        if len(a.arg_types) == len(b.arg_types):
            a, b = _of_same_params(a, b)
            args = [unified(where, x, y) for x, y in zip(a.arg_types, b.arg_types)]
            result = unified(where, a.ret_type, b.ret_type)
            return FuncType(args, result, list(a.type_params), list(a.type_constraints))
    elif isinstance(a, RefType) and isinstance(b, RefType):
        return RefType(unified(where, a.value, b.value))
    elif isinstance(a, TypeCall) and isinstance(b, TypeCall):
        if a.func == b.func and len(a.args) == len(b.args):
            return TypeCall(a.func, [unified(where, x, y) for x, y in zip(a.args, b.args)])
    elif a == b:
        return a
    raise error.TypeError(f"{where}: a value of type {b} where one of type {a} is expected")


def _of_same_params(a: FuncType, b: FuncType) -> tuple[FuncType, FuncType]:
    """Two types of functions with the type parameters of the first, or where only one is generic,
    with none: its instance for the types of the other."""
    if len(a.type_params) == len(b.type_params):
        renamed = _Bindings(list(b.type_params))
        renamed.values.update(zip(b.type_params, a.type_params))
        args = [renamed.apply(t) for t in b.arg_types]
        demands = [renamed.apply(t) for t in b.type_constraints]
        return a, FuncType(args, renamed.apply(b.ret_type), list(a.type_params), demands)
    if len(a.type_params):
        return (a, b) if len(b.type_params) else (_instance(a, b), b)
    return a, _instance(b, a)


def _instance(generic: FuncType, wanted: FuncType) -> FuncType:
    """A generic type of functions for the types of one that is not."""
    found = _Bindings(list(generic.type_params))
    for own, given in zip(generic.arg_types, wanted.arg_types):
        found.match(own, given)
    found.match(generic.ret_type, wanted.ret_type)
    return FuncType([found.apply(t) for t in generic.arg_types], found.apply(generic.ret_type), [])


def _applied(type_: Any) -> Any:
    """The type of values for the name of a defined type without parameters."""
    return TypeCall(type_, []) if isinstance(type_, GlobalTypeVar) else type_


def _generalised(a: Type, b: Type) -> Type:
    """The type of a value that has either of two: extents that differ are unknown.

    Raises
    ------
    TypeError : the types differ in more than extents.
    """
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        if len(a.shape) == len(b.shape) and str(a.dtype) == str(b.dtype):
            shape = [
                x if not isinstance(x, AnyExtent) and not isinstance(y, AnyExtent)
                and _same_extent(x, y) else AnyExtent()
                for x, y in zip(a.shape, b.shape)
            ]  # fmt: skip
            return TensorType(shape, str(a.dtype))
    elif isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.fields) == len(b.fields):
        return TupleType([_generalised(x, y) for x, y in zip(a.fields, b.fields)])
    return unified("relay.If", a, b)


def _is_monomorphic(expr: RelayExpr) -> bool:
    return isinstance(expr, Function) and not len(expr.type_params)


def _is_generic(type_: Type | None) -> bool:
    return isinstance(type_, FuncType) and bool(type_.type_params)


class _Bindings:
    """What type variables of a generic function stand for in one call."""

    def __init__(self, params: Sequence[TypeVar]) -> None:
        self.values: dict[TypeVar, Type | None] = dict.fromkeys(params)

    def match(self, pattern: Any, type_: Type | None) -> None:
        if type_ is None:
            return
        if isinstance(pattern, TypeVar) and pattern in self.values:
            self.values[pattern] = unified("relay.Call", self.values[pattern], type_)
        elif isinstance(pattern, TupleType) and isinstance(type_, TupleType):
            for a, b in zip(pattern.fields, type_.fields):
                self.match(a, b)
        elif isinstance(pattern, RefType) and isinstance(type_, RefType):
            self.match(pattern.value, type_.value)
        elif isinstance(pattern, TypeCall) and isinstance(type_, TypeCall):
            for a, b in zip(pattern.args, type_.args):
                self.match(a, b)
        elif isinstance(pattern, FuncType) and isinstance(type_, FuncType):
            for a, b in zip(pattern.arg_types, type_.arg_types):
                self.match(a, b)
            self.match(pattern.ret_type, type_.ret_type)

    def instance(self, pattern: FuncType, generic: FuncType) -> FuncType:
        """A generic function as one of the types that a parameter is known to take."""
        inner = _Bindings(list(generic.type_params))
        for own, wanted in zip(generic.arg_types, pattern.arg_types):
            inner.match(own, self.apply(wanted))
        arguments = [inner.apply(own) for own in generic.arg_types]
        return FuncType(arguments, inner.apply(generic.ret_type), [])

    def apply(self, pattern: Any) -> Any:
        if isinstance(pattern, TypeVar):
            found = self.values.get(pattern)
            if found is not None:
                return found
            # What nothing says yet: a list without elements is one of anything.
            return IncompleteType() if pattern in self.values else pattern
        if isinstance(pattern, TypeCall):
            return TypeCall(pattern.func, [self.apply(a) for a in pattern.args])
        if isinstance(pattern, TupleType):
            return TupleType([self.apply(f) for f in pattern.fields])
        if isinstance(pattern, RefType):
            return RefType(self.apply(pattern.value))
        if isinstance(pattern, FuncType):
            inner = _Bindings([])
            inner.values = {k: v for k, v in self.values.items() if k not in pattern.type_params}
            return FuncType([inner.apply(a) for a in pattern.arg_types],
                            inner.apply(pattern.ret_type), list(pattern.type_params),
                            [inner.apply(c) for c in pattern.type_constraints])  # fmt: skip
        if isinstance(pattern, TypeRelation):
            args = [self.apply(a) for a in pattern.args]
            return TypeRelation(pattern.func, args, pattern.num_inputs, pattern.attrs)
        return pattern

    def relate(self, relation: TypeRelation) -> None:
        """Learn the result of a relation whose operands are known.

        Raises
        ------
        TypeError, ValueError : its function refuses the operands, or gives another type than the
            one that is known.
        """
        *operands, result = relation.args
        known = [self.apply(operand) for operand in operands]
        if all(_complete(type_) for type_ in known):
            found = relation.func(known, relation.attrs)
            unified(f"relay.Call: {relation.func.name}", self.apply(result), found)
            self.match(result, found)


class _Inference(PostOrderFunctor):
    """Gives each expression a type and rebuilds what changes: variables that had none."""

    def __init__(self, mod: IRModule | None, signatures: dict[str, Type]) -> None:
        super().__init__()
        self._mod = mod
        self._signatures = signatures
        # Types that variables without annotation were found to have, and the new variables.
        self.types: dict[Var, Any] = {}
        self.changed = False

    def dispatch(self, expr: RelayExpr) -> RelayExpr:
        return placed_like(expr, super().dispatch(expr))

    def type_of(self, expr: RelayExpr) -> Any:
        """The inferred type of an expression in its new form."""
        return self.types.get(expr) if isinstance(expr, Var) else expr.checked_type_

    def _learn(self, expr: RelayExpr, type_: Type | None) -> None:
        if isinstance(expr, Var) and type_ is not None:
            known = self.types.get(expr)
            found = unified(f"relay: variable '{expr.name_hint}'", known, type_)
            if known is None or isinstance(known, IncompleteType):
                self.changed = True
            self.types[expr] = found

    def _expect(self, expr: RelayExpr, type_: Type | None) -> None:
        """Learn what variables have to be for an expression to be of a type."""
        while isinstance(expr, Let):
            expr = expr.body
        if type_ is None or self.type_of(expr) is not None:
            return
        if isinstance(expr, Var):
            self._learn(expr, type_)
        elif isinstance(expr, If):
            for branch in (expr.true_branch, expr.false_branch):
                self._expect(branch, type_)
        elif isinstance(expr, Tuple) and isinstance(type_, TupleType):
            for field, wanted in zip(expr.fields, type_.fields):
                self._expect(field, wanted)
        elif isinstance(expr, Call) and isinstance(expr.op, Var):
            args = [self.type_of(arg) for arg in expr.args]
            if all(_complete(t) for t in args):
                self._learn(expr.op, FuncType(args, type_, []))

    def visit_var(self, var: Var) -> RelayExpr:
        if var not in self.types:
            self.types[var] = _known(var.type_annotation)
        return var

    def visit_constant(self, const: Constant) -> RelayExpr:
        return set_checked_type(const, TensorType(list(const.data.shape), str(const.data.dtype)))

    def visit_op(self, op: Op) -> RelayExpr:
        return op

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        name = str(gvar.name_hint)
        if name in self._signatures:
            set_checked_type(gvar, self._signatures[name])
        return gvar

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        fields = [self.visit(f) for f in tup.fields]
        same = all(a.same_as(b) for a, b in zip(fields, tup.fields))
        new = tup if same else Tuple(fields)
        types = [self.type_of(f) for f in fields]
        if all(t is not None for t in types):
            set_checked_type(new, TupleType(types))
        return new

    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        value = self.visit(item.tuple_value)
        new = item if value.same_as(item.tuple_value) else TupleGetItem(value, item.index)
        type_ = self.type_of(value)
        if isinstance(type_, TupleType):
            if not 0 <= item.index < len(type_.fields):
                raise error.IndexError(
                    f"relay.TupleGetItem: field {item.index} of a tuple of {len(type_.fields)}"
                )
            set_checked_type(new, type_.fields[item.index])
        elif type_ is not None:
            raise error.TypeError(f"relay.TupleGetItem: a value of type {type_} has no fields")
        return new

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if isinstance(expr, Call) and isinstance(expr.op, Function):
            return list(expr.args)
        return super().visited_first(expr)

    def visit_call(self, call: Call) -> RelayExpr:
        args = [self.visit(arg) for arg in call.args]
        if isinstance(call.op, Function) and len(args) == len(call.op.params):
            # A function that is called at once has parameters of its arguments' types.
            for param, arg in zip(call.op.params, args):
                given = self.type_of(arg)
                if given is not None and self.type_of(self.visit(param)) is None:
                    self._learn(param, given)
        op = self.visit(call.op)
        if isinstance(op, Op):
            types = [self.type_of(arg) for arg in args]
            if None in types and str(op.name).startswith("annotation."):
                # A mark is of the type of what is marked, whenever that is found.
                return self._finished(call, op, args, types, None)
            probe = call if all(a.same_as(b) for a, b in zip(args, call.args)) else (
                Call(op, args, call.attrs))  # fmt: skip
            filled, result = call_type(probe, types)
            for arg, type_ in zip(args, filled):
                self._learn(arg, type_)
            return self._finished(call, op, args, filled, result)
        callee = self.type_of(op)
        if callee is None:
            return self._finished(call, op, args, list(call.type_args), None)
        if not isinstance(callee, FuncType):
            raise error.TypeError(f"relay.Call: a value of type {callee} cannot be called")
        if len(callee.arg_types) != len(args):
            raise error.TypeError(
                f"relay.Call: a function of {len(callee.arg_types)} parameters is called with "
                f"{len(args)} arguments"
            )
        bindings = _Bindings(list(callee.type_params))
        for param, given in zip(callee.type_params, call.type_args):
            bindings.match(param, given)
        types = [self.type_of(arg) for arg in args]
        for pattern, known in zip(callee.arg_types, types):
            if not _is_generic(known):
                bindings.match(pattern, known)
        for k, (pattern, known) in enumerate(zip(callee.arg_types, types)):
            if _is_generic(known) and isinstance(pattern, FuncType):
                types[k] = bindings.instance(pattern, known)
                bindings.match(pattern, types[k])
        for constraint in callee.type_constraints:
            bindings.relate(constraint)
        for k, (pattern, arg) in enumerate(zip(callee.arg_types, args)):
            wanted = bindings.apply(pattern)
            known = types[k]
            unified(f"relay.Call: argument {k}", wanted, known)
            if known is None:
                self._learn(arg, wanted)
            op_arg = call.args[k]
            if isinstance(wanted, FuncType) and _is_monomorphic(op_arg):
                for param, type_ in zip(op_arg.params, wanted.arg_types):
                    if _complete(type_):
                        self._learn(param, type_)
        # What an argument does not say yet may follow from what the result is used for.
        found = [bindings.values[p] for p in callee.type_params]
        type_args = found if all(_complete(t) for t in found) else []
        result = bindings.apply(callee.ret_type)
        return self._finished(call, op, args, type_args, result)

    def _finished(
        self, old: Call, op: RelayExpr, args: list[RelayExpr], type_args: list[Any], type_: Any
    ) -> RelayExpr:
        unchanged = op.same_as(old.op) and all(a.same_as(b) for a, b in zip(args, old.args))
        types = [t for t in type_args if t is not None]
        if unchanged and (len(old.type_args) == len(types)) and list(old.type_args) == types:
            new = old
        else:
            new = Call(op, args, old.attrs, types, old.span)
        return new if type_ is None else set_checked_type(new, type_)

    def visit_let(self, let: Let) -> RelayExpr:
        bindings = []
        node: RelayExpr = let
        while isinstance(node, Let):
            self.visit(node.var)
            annotated = self.types[node.var]
            if isinstance(node.value, Function) and annotated is None:
                # A function may call itself by the variable.
                self.types[node.var] = _signature(node.value)
            value = self.visit(node.value)
            found = self.type_of(value)
            if isinstance(node.value, Function) and annotated is None:
                self.types[node.var] = found
            else:
                self.types[node.var] = unified(
                    f"relay.Let: variable '{node.var.name_hint}'", self.types[node.var], found
                )
            if self.types[node.var] is not None and found is None:
                self._learn(value, self.types[node.var])
            bindings.append((node, value))
            node = node.body
        body = self.visit(node)
        type_ = self.type_of(body)
        for old, value in reversed(bindings):
            same = value.same_as(old.value) and body.same_as(old.body)
            body = old if same else Let(old.var, value, body)
            if type_ is not None:
                set_checked_type(body, type_)
        return body

    def visit_if(self, iff: If) -> RelayExpr:
        parts = [self.visit(part) for part in (iff.cond, iff.true_branch, iff.false_branch)]
        cond = self.type_of(parts[0])
        self._learn(parts[0], TensorType([], "bool"))
        if cond is not None and cond != TensorType([], "bool"):
            raise error.TypeError(f"relay.If: the condition must be a bool, its type is {cond}")
        same = all(
            a.same_as(b) for a, b in zip(parts, (iff.cond, iff.true_branch, iff.false_branch))
        )
        new = iff if same else If(*parts)
        a, b = self.type_of(parts[1]), self.type_of(parts[2])
        if a is not None and b is not None:
            set_checked_type(new, _generalised(a, b))
        elif a is not None or b is not None:
            set_checked_type(new, a if a is not None else b)
        return new

    def visit_constructor(self, con: Constructor) -> RelayExpr:
        definition = None if self._mod is None else self._mod[con.belong_to]
        if definition is None:
            raise error.ValueError(
                f"relay: constructor '{con.name_hint}' is of a type of a module, which is not known"
            )
        params = list(definition.type_vars)
        result = TypeCall(definition.header, params)
        return set_checked_type(con, FuncType(list(con.inputs), result, params))

    def _matched(self, pattern: Pattern, type_: Any) -> None:
        """Learn the types of a pattern's variables from that of the value."""
        if isinstance(pattern, PatternVar):
            self.visit(pattern.var)
            if _complete(type_):
                self._learn(pattern.var, type_)
        elif isinstance(pattern, PatternTuple):
            fields = type_.fields if isinstance(type_, TupleType) else [None] * len(
                pattern.patterns)  # fmt: skip
            for part, field in zip(pattern.patterns, fields):
                self._matched(part, field)
        elif isinstance(pattern, PatternConstructor):
            con = pattern.constructor
            if len(pattern.patterns) != len(con.inputs):
                raise error.TypeError(
                    f"relay.Match: constructor '{con.name_hint}' has {len(con.inputs)} parts, the "
                    f"pattern {len(pattern.patterns)}"
                )
            self.visit(con)
            signature = con.checked_type_
            bindings = _Bindings(list(signature.type_params))
            if type_ is not None:
                unified("relay.Match", bindings.apply(signature.ret_type), type_)
            bindings.match(signature.ret_type, type_)
            for part, given in zip(pattern.patterns, con.inputs):
                self._matched(part, bindings.apply(given))

    def visit_match(self, match: Match) -> RelayExpr:
        data = self.visit(match.data)
        clauses, types = [], []
        for old in match.clauses:
            self._matched(old.lhs, self.type_of(data))
            rhs = self.visit(old.rhs)
            types.append(self.type_of(rhs))
            clauses.append(old if rhs.same_as(old.rhs) else Clause(old.lhs, rhs))
        same = data.same_as(match.data) and all(
            a.same_as(b) for a, b in zip(clauses, match.clauses)
        )
        new = match if same else Match(data, clauses, match.complete)
        known = [t for t in types if t is not None]
        if known:
            set_checked_type(new, functools.reduce(_generalised, known))
        return new

    def visit_function(self, func: Function) -> RelayExpr:
        for param in func.params:
            self.visit(param)
        body = self.visit(func.body)
        self._expect(body, _known(func.ret_type))
        found = self.type_of(body)
        ret = unified("relay.Function: the result", _known(func.ret_type), found)
        same = body.same_as(func.body) and (func.ret_type is not None or ret is None)
        new = func if same else Function(
            func.params, body, ret, func.type_params, func.attrs)  # fmt: skip
        types = [self.types[p] for p in func.params]
        if ret is not None and all(t is not None for t in types):
            set_checked_type(new, FuncType(types, ret, list(func.type_params)))
        return new

    def visit_ref_create(self, ref: RefCreate) -> RelayExpr:
        value = self.visit(ref.value)
        new = ref if value.same_as(ref.value) else RefCreate(value)
        type_ = self.type_of(value)
        return new if type_ is None else set_checked_type(new, RefType(type_))

    def visit_ref_read(self, read: RefRead) -> RelayExpr:
        ref = self.visit(read.ref)
        new = read if ref.same_as(read.ref) else RefRead(ref)
        type_ = self.type_of(ref)
        return set_checked_type(new, type_.value) if isinstance(type_, RefType) else new

    def visit_ref_write(self, write: RefWrite) -> RelayExpr:
        ref, value = self.visit(write.ref), self.visit(write.value)
        same = ref.same_as(write.ref) and value.same_as(write.value)
        new = write if same else RefWrite(ref, value)
        return set_checked_type(new, TupleType([]))


def _complete(type_: Any) -> bool:
    """Whether there is nothing left to find of a type."""
    if type_ is None or isinstance(type_, IncompleteType):
        return False
    if isinstance(type_, TupleType):
        return all(_complete(f) for f in type_.fields)
    if isinstance(type_, TypeCall):
        return all(_complete(a) for a in type_.args)
    if isinstance(type_, FuncType):
        return all(_complete(t) for t in [*type_.arg_types, type_.ret_type])
    return True


def _known(type_: Any) -> Any:
    return None if isinstance(type_, IncompleteType) else type_


def _signature(func: Function) -> Type | None:
    """What a function's text says of its type, if that is all there is to know."""
    types = [_known(p.type_annotation) for p in func.params]
    if func.ret_type is None or any(t is None for t in types):
        return None
    return FuncType(types, func.ret_type, list(func.type_params))


class _Replace(PostOrderMutator):
    """Puts variables whose type was found in the place of those that had none."""

    def __init__(self, types: dict[Var, Type | None]) -> None:
        super().__init__()
        self.replaced = {
            var: placed_like(var, set_checked_type(Var(str(var.name_hint), type_), type_))
            for var, type_ in types.items()
            if type_ is not None and _known(var.type_annotation) is None
        }

    def visit_var(self, var: Var) -> RelayExpr:
        return self.replaced.get(var, var)


class _DiagnosedTypeError(error.DiagnosticError, error.TypeError):
    """A program whose parts are of types that do not fit together."""


class _DiagnosedValueError(error.DiagnosticError, error.ValueError):
    """A program with sizes or settings that do not fit together."""


class _DiagnosedIndexError(error.DiagnosticError, error.IndexError):
    """A program that asks for a part that there is not."""


_DIAGNOSED: dict[type[BaseException], type[error.DiagnosticError]] = {
    error.TypeError: _DiagnosedTypeError,
    error.ValueError: _DiagnosedValueError,
    error.IndexError: _DiagnosedIndexError,
}


def infer_function(func: RelayExpr, mod: IRModule | None, signatures: dict[str, Type]) -> RelayExpr:
    """The expression with the type of every part known.

    Raises
    ------
    TypeError, ValueError, IndexError : parts do not fit together, or a type does not follow from
        what is known. Each is a DiagnosticError too.
    """
    try:
        return _inferred(func, mod, signatures)
    except (error.TypeError, error.ValueError, error.IndexError) as err:
        if type(err) not in _DIAGNOSED:
            raise
        raise _DIAGNOSED[type(err)](str(err)) from err


def _inferred(func: RelayExpr, mod: IRModule | None, signatures: dict[str, Type]) -> RelayExpr:
    for _ in range(64):
        inference = _Inference(mod, signatures)
        func = inference.visit(func)
        for var, type_ in inference.types.items():
            if type_ is not None:
                set_checked_type(var, type_)
        if not inference.changed:
            return func
        func = _Replace(inference.types).visit(func)
    raise error.TypeError("relay.InferType: types of variables depend on each other")


def infer_module(mod: IRModule) -> IRModule:
    """The module with every relay function's types known; see :func:`infer_function`."""
    signatures: dict[str, Type] = {}
    functions = {str(gv.name_hint): f for gv, f in mod.functions.items() if isinstance(f, Function)}
    for name, func in functions.items():
        known = _signature(func)
        if known is not None:
            signatures[name] = known
    result = mod.clone()
    for name in _callees_first(functions):
        new = infer_function(functions[name], mod, signatures)
        type_ = new.checked_type_
        if type_ is not None:
            signatures[name] = type_
            set_checked_type(result.get_global_var(name), type_)
        result[name] = new
    return result


def _callees_first(functions: dict[str, Function]) -> list[str]:
    uses: dict[str, list[str]] = {}
    for name, func in functions.items():
        found: list[str] = []
        post_order_visit(
            func, lambda e, out=found: out.append(str(e.name_hint)) if isinstance(e, GlobalVar)
            else None
        )  # fmt: skip
        uses[name] = found
    order: dict[str, None] = {}

    def add(name: str, path: tuple[str, ...]) -> None:
        if name in order or name in path or name not in functions:
            return
        for used in uses[name]:
            add(used, (*path, name))
        order.setdefault(name)

    for name in functions:
        add(name, ())
    return list(order)
