"""Programs without functions as values: each becomes a value of a defined type.

After J. C. Reynolds, "Definitional interpreters for higher-order programming languages", 1972.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error
from tvm.ir import (
    Constructor,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    IRModule,
    Op,
    RelayExpr,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
)

from ..adt import Clause, Match, PatternConstructor, PatternVar
from ..analysis.infer import infer_function, infer_module
from ..analysis.variables import free_vars
from ..expr import Call, Function, Let, Var
from ..expr_functor import PostOrderMutator
from ..type_functor import TypeMutator
from .continuations import holds_functions, is_kernel_function

__all__ = ["Defunctionalization"]

_NAME = "relay.transform.Defunctionalization"


class _Put(TypeMutator):
    """Types with others in the place of their variables."""

    def __init__(self, values: Mapping[TypeVar, Type]) -> None:
        super().__init__()
        self._values = values

    def visit_type_var(self, tv: TypeVar) -> Type:
        return self._values.get(tv, tv)


class _Instance(PostOrderMutator):
    """A generic function for types of its parameters, whose other types are found anew."""

    def __init__(self, values: Mapping[TypeVar, Type]) -> None:
        super().__init__()
        self._put = _Put(values)

    def visit_var(self, var: Var) -> RelayExpr:
        known = var.type_annotation
        return Var(str(var.name_hint), None if known is None else self._put.visit(known))

    def visit_call(self, call: Call) -> RelayExpr:
        args = [self.visit(arg) for arg in call.args]
        return Call(self.visit(call.op), args, call.attrs, (), call.span)

    def visit_function(self, func: Function) -> RelayExpr:
        params = [self.visit(param) for param in func.params]
        own = [p for p in func.type_params if p not in self._put._values]
        result = None if func.ret_type is None else self._put.visit(func.ret_type)
        return Function(params, self.visit(func.body), result, own, func.attrs)


class _FirstOrderTypes(TypeMutator):
    def __init__(self, program: _Program) -> None:
        super().__init__()
        self._program = program

    def visit_type_var(self, tv: TypeVar) -> Type:
        return tv

    def visit_func_type(self, ft: FuncType) -> Type:
        return TypeCall(self._program.kind_of(ft).header, [])


class _Kind:
    """What stands for the functions of one type: a defined type, and the function that calls."""

    def __init__(self, name: str, signature: FuncType) -> None:
        self.signature = signature
        self.header = GlobalTypeVar(f"Function{name}")
        self.apply = GlobalVar(f"apply{name}")
        self.constructors: list[Constructor] = []
        self.clauses: list[Clause] = []
        self.args: list[Var] = []

    def constructor(self, inputs: Sequence[Type]) -> Constructor:
        name = f"{self.header.name_hint}_{len(self.constructors)}"
        self.constructors.append(Constructor(name, inputs, self.header))
        return self.constructors[-1]


class _Program:
    """What is found while a function is converted, with all that it calls.

    Parameters
    ----------
    mod : whose types are known.
    """

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.types = _FirstOrderTypes(self)
        self.kinds: dict[FuncType, _Kind] = {}
        self.functions: dict[GlobalVar, Function] = {}
        self._copies: dict[tuple[str, tuple[Type, ...]], GlobalVar] = {}
        self._constants: dict[tuple[str, Type], Constructor] = {}
        self._signatures = {
            str(gv.name_hint): f.checked_type
            for gv, f in mod.functions.items()
            if isinstance(f, Function)
        }
        self._taken = {
            *(str(gv.name_hint) for gv in mod.functions),
            *map(str, mod.type_definitions),
        }

    def _free(self, wanted: str) -> str:
        name, k = wanted, 0
        while name in self._taken:
            k += 1
            name = f"{wanted}_{k}"
        self._taken.add(name)
        return name

    def kind_of(self, signature: FuncType) -> _Kind:
        """What stands for functions of a type."""
        if len(signature.type_params):
            raise error.ValueError(
                f"{_NAME}: a generic function of type {signature} is used as a value; give it a "
                "copy for the types that it is used with"
            )
        if signature not in self.kinds:
            name = str(len(self.kinds))
            while f"Function{name}" in self._taken or f"apply{name}" in self._taken:
                name += "_"
            kind = self.kinds[signature] = _Kind(name, signature)
            kind.args = [
                Var(f"x{k}", self.types.visit(t)) for k, t in enumerate(signature.arg_types)
            ]
        return self.kinds[signature]

    def copy_of(self, gvar: GlobalVar, type_args: Sequence[Type]) -> GlobalVar:
        """A function of the module without functions as values, for types of its parameters."""
        func = self.mod[gvar]
        if not isinstance(func, Function) or is_kernel_function(func):
            return gvar
        if len(type_args) != len(func.type_params):
            raise error.ValueError(
                f"{_NAME}: the types with which {gvar.name_hint} is called do not follow from its "
                "arguments; give them as type_args of the call"
            )
        key = (str(gvar.name_hint), tuple(type_args))
        if key not in self._copies:
            new = self._copies[key] = GlobalVar(self._free(f"{gvar.name_hint}_first_order"))
            if len(type_args):
                instance = _Instance(dict(zip(func.type_params, type_args))).visit(func)
                func = infer_function(instance, self.mod, dict(self._signatures))
            self.functions[new] = self.whole(func)
        return self._copies[key]

    def whole(self, func: Function) -> Function:
        """A function of the program, converted."""
        body = _Converter(self, {})
        params = [body.visit(p) for p in func.params]
        result = self.types.visit(func.checked_type.ret_type)
        return Function(params, body.visit(func.body), result, (), func.attrs)

    def constant(self, gvar: GlobalVar, signature: FuncType) -> RelayExpr:
        """A function of the module as a value."""
        kind = self.kind_of(signature)
        key = (str(gvar.name_hint), signature)
        if key not in self._constants:
            con = self._constants[key] = kind.constructor([])
            kind.clauses.append(
                Clause(PatternConstructor(con, []), Call(self.copy_of(gvar, ()), kind.args))
            )
        return Call(self._constants[key], [])

    def closure(self, func: Function, own: Var | None, around: _Converter) -> RelayExpr:
        """A function with the values of the variables around it, as a value.

        own : the variable by which the function calls itself.
        """
        kind = self.kind_of(func.checked_type)
        used = [var for var in free_vars(func) if own is None or not var.same_as(own)]
        held = [Var(str(v.name_hint), self.types.visit(v.checked_type)) for v in used]
        con = kind.constructor([var.type_annotation for var in held])
        inside: dict[RelayExpr, Any] = dict(zip(used, held))
        inside.update(zip(func.params, kind.args))
        if own is not None:
            inside[own] = Call(con, held)
        body = _Converter(self, inside).visit(func.body)
        kind.clauses.append(Clause(PatternConstructor(con, list(map(PatternVar, held))), body))
        return Call(con, [around.visit(var) for var in used])

    def put_into(self, mod: IRModule) -> None:
        """Add the types and functions that were found to a module."""
        for kind in self.kinds.values():
            mod[kind.header] = TypeData(kind.header, [], kind.constructors)
        for gvar, func in self.functions.items():
            mod[gvar] = func
        for kind in self.kinds.values():
            which = Var("f", TypeCall(kind.header, []))
            result = self.types.visit(kind.signature.ret_type)
            mod[kind.apply] = Function([which, *kind.args], Match(which, kind.clauses), result)


class _Converter(PostOrderMutator):
    """The expressions of one function; `known` says what some variables become."""

    def __init__(self, program: _Program, known: Mapping[RelayExpr, Any]) -> None:
        super().__init__()
        self._program = program
        self.memo_map.update(known)

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if isinstance(expr, Call) and isinstance(expr.op, (GlobalVar, Constructor)):
            return list(expr.args)
        return super().visited_first(expr)

    def visit_var(self, var: Var) -> RelayExpr:
        return Var(str(var.name_hint), self._program.types.visit(var.checked_type))

    def visit_call(self, call: Call) -> RelayExpr:
        args = [self.visit(arg) for arg in call.args]
        op: RelayExpr = call.op
        if isinstance(op, Constructor):
            if any(map(holds_functions, op.inputs)):
                raise error.ValueError(
                    f"{_NAME}: constructor '{op.name_hint}' holds functions, whose type is in the "
                    "definition; make it a parameter of the defined type"
                )
        elif isinstance(op, GlobalVar):
            op = self._program.copy_of(op, list(call.type_args))
        elif not isinstance(op, Op) and not (isinstance(op, Function) and is_kernel_function(op)):
            args = [self.visit(op), *args]
            op = self._program.kind_of(call.op.checked_type).apply
        return Call(op, args, call.attrs, (), call.span)

    def visit_function(self, func: Function) -> RelayExpr:
        if is_kernel_function(func):
            return func
        return self._program.closure(func, None, self)

    def visit_let(self, let: Let) -> RelayExpr:
        bindings = []
        node: RelayExpr = let
        while isinstance(node, Let):
            value = node.value
            if isinstance(value, Function) and not is_kernel_function(value):
                made = self._program.closure(value, node.var, self)
            else:
                made = self.visit(value)
            bindings.append((self.visit(node.var), made))
            node = node.body
        body = self.visit(node)
        for var, made in reversed(bindings):
            body = Let(var, made, body)
        return body

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        return self._program.constant(gvar, gvar.checked_type)

    def visit_constructor(self, con: Constructor) -> RelayExpr:
        raise error.ValueError(
            f"{_NAME}: constructor '{con.name_hint}' is used as a function; run "
            "relay.transform.EtaExpand(expand_constructor=True) before"
        )


def Defunctionalization(func: Function, mod: IRModule) -> Function:
    """A function whose program has no functions as values.

    A function that is a value becomes a value of a defined type, which holds what the function
    uses from around it; a call becomes one of a function that matches on that. Generic functions
    get a copy for each choice of types.

    Parameters
    ----------
    mod : has the functions that `func` calls; copies, the types and what calls their values are
        added to it.

    Raises
    ------
    ValueError : `func` takes or gives functions or is generic, or a generic function or a
        constructor is used as a value.
    """
    around = mod.clone()
    entry = GlobalVar("defunctionalization.entry")
    around[entry] = func
    around = infer_module(around)
    typed = around[entry]
    if len(typed.type_params) or any(
        map(holds_functions, [*typed.checked_type.arg_types, typed.checked_type.ret_type])
    ):
        raise error.ValueError(
            f"{_NAME}: the function is of type {typed.checked_type}; it must neither be generic, "
            "nor take or give functions"
        )
    program = _Program(around)
    result = program.whole(typed)
    program.put_into(mod)
    whole = mod.clone()
    whole[entry] = result
    return infer_module(whole)[entry]
