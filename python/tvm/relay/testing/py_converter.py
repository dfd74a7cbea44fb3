"""Relay's programs as programs of Python, to compare results with and to read."""

from __future__ import annotations

import ast
import functools
import keyword
import re
from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import error
from tvm.ir import Constructor, GlobalVar, IRModule, Op, RelayExpr
from tvm.runtime import ADT, tuple_object
from tvm.target import Target

from ..adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from ..analysis.infer import infer_module
from ..backend.interpreter import Interpreter, may_be_setting
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
from ..expr_functor import PostOrderFunctor, post_order_visit
from ..parser import parse

__all__ = ["operator", "run_as_python", "to_python"]

_RESULT = "result"

_IMPORTS = """\
import numpy as np
import tvm
from numpy import inf, nan
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.testing.py_converter import operator
from tvm.runtime import tuple_object
"""


def to_python(expr: RelayExpr, mod: IRModule | None = None, target: Any = "llvm") -> ast.Module:
    """A program of Python that computes the value of an expression and calls it ``result``.

    Tensors are NDArrays, tuples ADTs, cells RefValues and values of defined types
    ConstructorValues, whose field ``constructor`` is None; functions are functions.

    Parameters
    ----------
    mod : functions that the expression names.
    target : what operators are compiled for.
    """
    main = "__expression__"
    whole = IRModule() if mod is None else mod.clone()
    whole[main] = expr if isinstance(expr, Function) else Function([], expr)
    whole = infer_module(whole)
    target = target if isinstance(target, Target) else Target(target)
    writer = _Writer(whole, str(target))
    written = whole[main]
    # A program without parameters is its value; a function is the function.
    value = writer.program(written if isinstance(expr, Function) else written.body)
    return ast.parse("\n".join([_IMPORTS, *writer.lines, f"{_RESULT} = {value}", ""]))


def run_as_python(expr: RelayExpr, mod: IRModule | None = None, target: Any = "llvm") -> Any:
    """The value of an expression, or a function of Python for one, by way of :func:`to_python`."""
    names: dict[str, Any] = {}
    exec(compile(to_python(expr, mod, target), "<relay>", "exec"), names)
    return names[_RESULT]


@functools.lru_cache(maxsize=1024)
def operator(text: str, target: str = "llvm") -> Callable[..., Any]:
    """An operator with its settings as a function of NDArrays and tuples of them.

    Parameters
    ----------
    text : a function whose body calls the operator, as ``astext()`` writes a module of it.
    """
    func = parse(text)["main"]
    call = func.body
    places = {param: place for place, param in enumerate(func.params)}
    interpreter = Interpreter(IRModule(), Target(target), tvm.cpu())

    def run(*args: Any) -> Any:
        given = [_entered(a) for a in args]
        operands = [given[places[a]] if a in places else a.data for a in call.args]
        return _left(interpreter.operator(call, operands))

    return run


def _entered(value: Any) -> Any:
    return tuple(_entered(v) for v in value) if isinstance(value, ADT) else value


def _left(value: Any) -> Any:
    return tuple_object([_left(v) for v in value]) if isinstance(value, tuple) else value


class _Writer(PostOrderFunctor):
    """Writes statements that compute expressions; what it gives for one is Python for its value.

    An expression used several times is computed where it is met first, and again in another branch.
    """

    def __init__(self, mod: IRModule, target: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._mod = mod
        self._target = target
        self._indent = ""
        self._taken = {"np", "tvm", "operator", "tuple_object", "ConstructorValue", "RefValue",
                       "bool", "inf", "nan", _RESULT}  # fmt: skip
        self._globals: dict[str, str] = {}
        self._operators: dict[str, str] = {}

    def program(self, expr: RelayExpr) -> str:
        """Write the functions of the module that an expression reaches, and the expression."""
        for name in self._reached(expr):
            self._globals[name] = self._named(name)
        for name, python in self._globals.items():
            self._define(python, self._mod[name])
        return self.visit(expr)

    def _reached(self, expr: RelayExpr) -> list[str]:
        found: dict[str, None] = {}
        pending = [expr]

        def look(node: RelayExpr) -> None:
            if isinstance(node, GlobalVar) and str(node.name_hint) not in found:
                found[str(node.name_hint)] = None
                pending.append(self._mod[node])

        while pending:
            post_order_visit(pending.pop(), look)
        return list(found)

    def _named(self, hint: str) -> str:
        """A name of Python's that nothing has yet."""
        base = re.sub(r"\W", "_", hint) or "value"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"_{base}"
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def _write(self, line: str) -> None:
        self.lines.append(self._indent + line)

    def _assigned(self, value: str, hint: str = "t") -> str:
        name = self._named(hint)
        self._write(f"{name} = {value}")
        return name

    def _block(self, write: Callable[[], None]) -> None:
        """Write an indented block. What it computes is not known behind it."""
        known, indent = dict(self.memo_map), self._indent
        self._indent += "    "
        write()
        self.memo_map, self._indent = known, indent

    def _define(self, name: str, func: Function) -> None:
        params = []
        for param in func.params:
            params.append(self._named(str(param.name_hint)))
            self.memo_map[param] = params[-1]
        self._write(f"def {name}({', '.join(params)}):")
        self._block(lambda: self._write(f"return {self.visit(func.body)}"))

    def visit_function(self, func: Function) -> str:
        name = self._named("function")
        self._define(name, func)
        return name

    def visit_var(self, var: Var) -> str:
        raise error.ValueError(f"relay: variable '{var.name_hint}' has no value")

    def visit_global_var(self, gvar: GlobalVar) -> str:
        return self._globals[str(gvar.name_hint)]

    def visit_op(self, op: Op) -> str:
        # Its call is one function with the settings.
        return str(op.name)

    def visit_constant(self, const: Constant) -> str:
        dtype = str(const.data.dtype)
        if dtype == "bfloat16":
            bits = const.data.numpy().tolist()
            return self._assigned(
                f'tvm.nd.empty(np.shape({bits}), "bfloat16").copyfrom(np.array({bits}, "uint16"))'
            )
        values = const.data.numpy().tolist()
        return self._assigned(f'tvm.nd.array(np.array({values!r}, "{dtype}"))', "constant")

    def visit_tuple(self, tup: Tuple) -> str:
        fields = ", ".join(self.visit(f) for f in tup.fields)
        return self._assigned(f"tuple_object([{fields}])")

    def visit_tuple_getitem(self, item: TupleGetItem) -> str:
        return self._assigned(f"{self.visit(item.tuple_value)}[{item.index}]")

    def visit_let(self, let: Let) -> str:
        node: RelayExpr = let
        while isinstance(node, Let):
            if isinstance(node.value, Function):
                # It may call itself by the name.
                self.memo_map[node.var] = self._named(str(node.var.name_hint))
                self._define(self.memo_map[node.var], node.value)
            else:
                self.memo_map[node.var] = self._assigned(
                    self.visit(node.value), str(node.var.name_hint)
                )
            node = node.body
        return self.visit(node)

    def visit_if(self, iff: If) -> str:
        result = self._named("chosen")
        self._write(f"if bool({self.visit(iff.cond)}.numpy()):")
        self._block(lambda: self._write(f"{result} = {self.visit(iff.true_branch)}"))
        self._write("else:")
        self._block(lambda: self._write(f"{result} = {self.visit(iff.false_branch)}"))
        return result

    def visit_match(self, match: Match) -> str:
        data = self.visit(match.data)
        result = self._named("matched")
        for place, clause in enumerate(match.clauses):
            tests: list[str] = []
            parts: list[tuple[Var, str]] = []
            _taken_apart(clause.lhs, data, tests, parts)
            word = "elif" if place else "if"
            self._write(f"{word} {' and '.join(tests) or 'True'}:")

            def write(
                parts: Sequence[tuple[Var, str]] = parts, rhs: RelayExpr = clause.rhs
            ) -> None:
                for var, part in parts:
                    self.memo_map[var] = self._assigned(part, str(var.name_hint))
                self._write(f"{result} = {self.visit(rhs)}")

            self._block(write)
        self._write("else:")
        self._block(
            lambda: self._write('raise ValueError("relay: no clause of a match fits the value")')
        )
        return result

    def visit_constructor(self, con: Constructor) -> str:
        fields = self._named("fields")
        return f"(lambda *{fields}: ConstructorValue({int(con.tag)}, {fields}))"

    def visit_ref_create(self, ref: RefCreate) -> str:
        return self._assigned(f"RefValue({self.visit(ref.value)})", "cell")

    def visit_ref_read(self, read: RefRead) -> str:
        return self._assigned(f"{self.visit(read.ref)}.value")

    def visit_ref_write(self, write: RefWrite) -> str:
        ref, value = self.visit(write.ref), self.visit(write.value)
        self._write(f"{ref}.value = {value}")
        return "tuple_object([])"

    def visit_call(self, call: Call) -> str:
        args = [self.visit(a) for a in call.args]
        if isinstance(call.op, Constructor):
            return self._assigned(f"ConstructorValue({int(call.op.tag)}, [{', '.join(args)}])")
        if not isinstance(call.op, Op):
            return self._assigned(f"{self.visit(call.op)}({', '.join(args)})")
        # Constants that may be settings stay with the operator.
        fixed = [isinstance(a, Constant) and may_be_setting(a) for a in call.args]
        params = [Var(f"p{k}") for k in range(len(args))]
        operands = [a if keep else p for a, p, keep in zip(call.args, params, fixed)]
        used = [p for p, keep in zip(params, fixed) if not keep]
        text = Function(used, Call(call.op, operands, call.attrs))
        name = self._operator(str(call.op.name), IRModule.from_expr(text).astext())
        given = ", ".join(a for a, keep in zip(args, fixed) if not keep)
        return self._assigned(f"{name}({given})")

    def _operator(self, op: str, text: str) -> str:
        if text not in self._operators:
            self._operators[text] = self._named(op)
            made = f"operator({text!r}, {self._target!r})"
            self.lines.insert(0, f"{self._operators[text]} = {made}")
        return self._operators[text]


def _taken_apart(
    pattern: Pattern, value: str, tests: list[str], parts: list[tuple[Var, str]]
) -> None:
    """What has to hold for a value to look like a pattern, and what the pattern's variables are."""
    if isinstance(pattern, PatternVar):
        parts.append((pattern.var, value))
    elif isinstance(pattern, PatternTuple):
        for place, part in enumerate(pattern.patterns):
            _taken_apart(part, f"{value}[{place}]", tests, parts)
    elif isinstance(pattern, PatternConstructor):
        tests.append(f"{value}.tag == {int(pattern.constructor.tag)}")
        for place, part in enumerate(pattern.patterns):
            _taken_apart(part, f"{value}.fields[{place}]", tests, parts)
