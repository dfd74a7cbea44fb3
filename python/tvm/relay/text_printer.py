"""Programs as text that `tvm.relay.parse` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tvm
from tvm import tir
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
    TypeCall,
    TypeData,
    TypeRelation,
    TypeVar,
)
from tvm.runtime import Object

from .adt import Clause, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from .analysis.variables import free_vars
from .expr import (
    Call,
    Constant,
    ExprWithOp,
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
from .expr_functor import computed_first, post_order_visit
from .op.registry import REQUIRED, find_row, plain
from .ty import Any as AnyExtent
from .ty import IncompleteType, RefType

__all__ = ["as_text", "astext", "pretty_print"]

_HEADER = '#[version = "0.0.5"]\n'
_SUFFIX = {
    "float32": "f",
    "float64": "f64",
    "float16": "f16",
    "int32": "",
    "int64": "i64",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
}
_LEFT_OUT = """
/* For debugging purposes the metadata section has been omitted.
 * If you would like to see the full metadata section you can set the
 * option to `True` when invoking `astext`.
 */
"""


def scalar_text(array: np.ndarray) -> str | None:
    """A number of a scalar constant's type, None for types without a spelling."""
    name = str(array.dtype)
    if name == "bool":
        return str(bool(array))
    if name not in _SUFFIX:
        return None
    if name.startswith("float"):
        if not np.isfinite(array):
            return None
        text = str(array.item() if name == "float64" else array[()])
        return text.removesuffix(".0") + _SUFFIX[name]
    return f"{int(array)}{_SUFFIX[name]}"


class _Printer:
    def __init__(self, annotate: Callable[[Any], str] | None) -> None:
        self._annotate = annotate
        self._lines: list[list[str]] = [[]]
        self._indent = 0
        self._texts: dict[RelayExpr, str] = {}
        self._names: dict[Any, str] = {}
        self._taken: set[str] = set()
        self._count = 0
        self._shared: set[RelayExpr] = set()
        self.meta: dict[str, list[Object]] = {}

    # Names and objects.

    def _meta(self, value: Object) -> str:
        key = str(value.type_key)
        table = self.meta.setdefault(key, [])
        for place, known in enumerate(table):
            if known.same_as(value):
                return f"meta[{key}][{place}]"
        table.append(value)
        return f"meta[{key}][{len(table) - 1}]"

    def var(self, var: Var) -> str:
        if var not in self._names:
            name = str(var.name_hint) or "x"
            name = f"v{name}" if name[0].isdigit() else name
            unique, k = name, 0
            while unique in self._taken:
                k += 1
                unique = f"{name}_{k}"
            self._taken.add(unique)
            self._names[var] = f"%{unique}"
        return self._names[var]

    def _declared(self, var: Var) -> str:
        """The name of a variable with what the program says of its device and its type."""
        known, device = var.type_annotation, var.virtual_device_
        place = "" if device.is_unconstrained else f" {{virtual_device={self._meta(device)}}}"
        return self.var(var) + place + ("" if known is None else f": {self.type(known)}")

    # Types.

    def type(self, type_: Any) -> str:
        if isinstance(type_, TensorType):
            if not len(type_.shape):
                return str(type_.dtype)
            extents = [self._extent(e) for e in type_.shape]
            return (
                f"Tensor[({', '.join(extents)}{',' * (len(extents) == 1)}), {type_.dtype}]".replace(
                    ",), ", "), "
                )
            )
        if isinstance(type_, TupleType):
            fields = [self.type(f) for f in type_.fields]
            return f"({', '.join(fields)}{',' * (len(fields) == 1)})"
        if isinstance(type_, FuncType):
            params = ", ".join(self.type(p) for p in type_.type_params)
            args = ", ".join(self.type(a) for a in type_.arg_types)
            demands = ", ".join(self.type(c) for c in type_.type_constraints)
            return (
                f"fn {f'[{params}]' if params else ''}({args}) -> {self.type(type_.ret_type)}"
                f"{f' where {demands}' if demands else ''}"
            )
        if isinstance(type_, TypeRelation):
            parts = [self.type(a) for a in type_.args]
            if type_.attrs is not None:
                parts.append(f"attrs={self._meta(type_.attrs)}")
            return f"{type_.func.name}({', '.join(parts)})"
        if isinstance(type_, RefType):
            return f"ref({self.type(type_.value)})"
        if isinstance(type_, (TypeVar, GlobalTypeVar)):
            return str(type_.name_hint)
        if isinstance(type_, TypeCall):
            args = ", ".join(self.type(a) for a in type_.args)
            return f"{self.type(type_.func)}[{args}]" if args else self.type(type_.func)
        if isinstance(type_, IncompleteType):
            return "_"
        return self._meta(type_)

    def _extent(self, extent: Any) -> str:
        if isinstance(extent, AnyExtent):
            return "?"
        if isinstance(extent, tir.IntImm):
            suffix = "i64" if str(extent.dtype) == "int64" else ""
            return f"{int(extent)}{suffix}"
        return self._meta(extent)

    # Settings.

    def value(self, value: Any) -> str:
        value = plain(value)
        if value is None or isinstance(value, (bool, int)):
            return str(value)
        if isinstance(value, float):
            return repr(value).removesuffix(".0") + "f"
        if isinstance(value, str):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if isinstance(value, tuple):
            return f"[{', '.join(self.value(v) for v in value)}]"
        return self._meta(value)

    def _settings(self, call: Call) -> list[str]:
        if call.attrs is None:
            return []
        row = find_row(call.op)
        given = {str(k): v for k, v in call.attrs.items()}
        parts = []
        order = [
            *(row.settings if row else ()),
            *(k for k in given if not row or k not in row.settings),
        ]
        for key in order:
            if key not in given:
                continue
            default = row.settings.get(key, REQUIRED) if row else REQUIRED
            if default is REQUIRED or plain(given[key]) != default:
                parts.append(f"{key}={self.value(given[key])}")
        return parts

    # Scopes.

    def _put(self, text: str) -> None:
        self._lines[-1].append("  " * self._indent + text)

    @contextmanager
    def _scope(self) -> Iterator[list[str]]:
        known = dict(self._texts)
        lines: list[str] = []
        self._lines.append(lines)
        self._indent += 1
        yield lines
        self._indent -= 1
        self._lines.pop()
        # What was computed inside cannot be named outside.
        self._texts = known

    def _block(self, body: RelayExpr, marks: str = "{}") -> str:
        with self._scope() as lines:
            self.tail(body)
        return marks[0] + "\n" + "\n".join(lines) + "\n" + "  " * self._indent + marks[1]

    def tail(self, expr: RelayExpr) -> None:
        """Print an expression as the last of a scope, with what it needs before it."""
        expr = self._lets(expr)
        if expr in self._texts:
            self._put(self._texts[expr])
            return
        self._operands(expr)
        self._put(self._text(expr))

    def _lets(self, expr: RelayExpr) -> RelayExpr:
        """Print bindings; what they are for."""
        while isinstance(expr, Let):
            self._operands(expr.value)
            if expr.value in self._shared and not _atomic(expr.value):
                self._operands(Tuple([expr.value]))
            value = self.name(expr.value)
            self._put(f"let {self._declared(expr.var)}{self._note(expr.var)} = {value};")
            expr = expr.body
        return expr

    def _operands(self, expr: RelayExpr) -> None:
        """Give everything that an expression uses a name, in the order it is computed in."""
        pending = [(e, False) for e in reversed(_uses(expr))]
        while pending:
            node, ready = pending.pop()
            if node in self._texts or _atomic(node):
                continue
            if ready:
                text = self._text(node)
                self._texts[node] = f"%{self._count}"
                self._put(f"%{self._count} = {text};")
                self._count += 1
            else:
                pending.append((node, True))
                pending.extend((e, False) for e in reversed(_uses(node)))

    def name(self, expr: RelayExpr) -> str:
        """The name of an operand, or the operand itself where that is as short."""
        if expr in self._texts:
            return self._texts[expr]
        return self._text(expr)

    def _note(self, expr: Any) -> str:
        if self._annotate is not None:
            note = self._annotate(expr)
            return f" /* {note} */" if note else ""
        parts = []
        if isinstance(expr, (Call, Constant, Tuple, TupleGetItem, If, Match, Function)):
            if expr.checked_type_ is not None:
                parts.append(f"ty={self.type(expr.checked_type_)}")
            span = getattr(expr, "span", None)
            if span is not None and isinstance(expr, Call):
                parts.append(f"span={span.source_name}:{span.line}:{span.column}")
        return f" /* {' '.join(parts)} */" if parts else ""

    # Expressions.

    def _text(self, expr: RelayExpr) -> str:
        if isinstance(expr, Var):
            return self.var(expr)
        if isinstance(expr, GlobalVar):
            return f"@{expr.name_hint}"
        if isinstance(expr, Op):
            return str(expr.name)
        if isinstance(expr, Constructor):
            return str(expr.name_hint)
        if isinstance(expr, Constant):
            scalar = (
                scalar_text(expr.data.numpy())
                if not len(expr.data.shape) and str(expr.data.dtype) != "bfloat16"
                else None
            )
            return (scalar or self._meta(expr)) + self._note(expr)
        if isinstance(expr, Call):
            args = [self.name(a) for a in expr.args] + self._settings(expr)
            return f"{self.name(expr.op)}({', '.join(args)}){self._note(expr)}"
        if isinstance(expr, Tuple):
            fields = [self.name(f) for f in expr.fields]
            return f"({', '.join(fields)}{',' * (len(fields) == 1)}){self._note(expr)}"
        if isinstance(expr, TupleGetItem):
            return f"{self.name(expr.tuple_value)}.{expr.index}{self._note(expr)}"
        if isinstance(expr, If):
            cond = self.name(expr.cond)
            yes, no = self._block(expr.true_branch), self._block(expr.false_branch)
            return f"if ({cond}) {yes} else {no}{self._note(expr)}"
        if isinstance(expr, Match):
            return self._match(expr)
        if isinstance(expr, Function):
            return f"fn {self.function(expr)}{self._note(expr)}"
        if isinstance(expr, RefCreate):
            return f"ref({self.name(expr.value)})"
        if isinstance(expr, RefRead):
            return f"ref_read({self.name(expr.ref)})"
        if isinstance(expr, RefWrite):
            return f"ref_write({self.name(expr.ref)}, {self.name(expr.value)})"
        if isinstance(expr, Let):
            return self._block(expr, "()")
        return self._meta(expr)

    def pattern(self, pattern: Pattern) -> str:
        """What a value may look like."""
        if isinstance(pattern, PatternVar):
            return self._declared(pattern.var)
        if isinstance(pattern, (PatternConstructor, PatternTuple)):
            parts = ", ".join(self.pattern(p) for p in pattern.patterns)
            if isinstance(pattern, PatternTuple):
                return f"({parts}{',' * (len(pattern.patterns) == 1)})"
            return str(pattern.constructor.name_hint) + (f"({parts})" if parts else "")
        return "_"

    def clause(self, clause: Clause) -> str:
        """A pattern and its value."""
        return f"{self.pattern(clause.lhs)} => {self._block(clause.rhs)}"

    def _match(self, match: Match) -> str:
        word = "match" if match.complete else "match?"
        head = f"{word} ({self.name(match.data)}) {{"
        self._indent += 1
        clauses = [f"{'  ' * self._indent}{self.clause(c)}," for c in match.clauses]
        self._indent -= 1
        return "\n".join([head, *clauses, "  " * self._indent + "}"]) + self._note(match)

    def definition(self, definition: TypeData) -> str:
        """A type and the ways of making its values."""
        params = ", ".join(self.type(p) for p in definition.type_vars)
        lines = [f"type {definition.header.name_hint}{f'[{params}]' if params else ''} {{"]
        for con in definition.constructors:
            inputs = ", ".join(self.type(t) for t in con.inputs)
            lines.append(f"  {con.name_hint}{f'({inputs})' if inputs else ''},")
        return "\n".join([*lines, "}\n"])

    def function(self, func: Function) -> str:
        """Parameters, result and body of a function."""
        params = [self._declared(param) for param in func.params]
        if func.attrs is not None:
            params += [f"{k}={self.value(v)}" for k, v in func.attrs.items()]
        if not func.virtual_device_.is_unconstrained:
            params.append(f"virtual_device={self._meta(func.virtual_device_)}")
        types = ", ".join(self.type(p) for p in func.type_params)
        ret = "" if func.ret_type is None else f" -> {self.type(func.ret_type)}"
        return f"{f'[{types}]' if types else ''}({', '.join(params)}){ret} {self._block(func.body)}"

    def module(self, mod: IRModule) -> str:
        """All functions of a module."""
        parts = [self.definition(d) for _, d in sorted(mod.type_definitions.items())]
        for gvar, func in mod.functions_items():
            if isinstance(func, Function):
                self._count = 0
                self._texts = {}
                self._shared = _used_often(func)
                parts.append(f"def @{gvar.name_hint}{self.function(func)}\n")
        return "\n".join(parts)

    def program(self, expr: Any) -> str:
        """An expression with everything it uses."""
        if isinstance(expr, IRModule):
            return self.module(expr)
        if isinstance(expr, RelayExpr):
            self._shared = _used_often(expr)
        if isinstance(expr, Pattern):
            return self.pattern(expr)
        if isinstance(expr, Clause):
            return self.clause(expr)
        for var in free_vars(expr) if isinstance(expr, RelayExpr) else ():
            self._put(f"free_var {self._declared(var)};")
        self.tail(expr)
        return "\n".join(self._lines[0])


def _uses(expr: RelayExpr) -> list[RelayExpr]:
    first = computed_first(expr)
    # Arguments are computed before the function that takes them is named.
    return [*first[1:], first[0]] if isinstance(expr, Call) else first


def _used_often(program: RelayExpr) -> set[RelayExpr]:
    """What bindings bind and something else uses too."""
    bound: set[RelayExpr] = set()
    used: set[RelayExpr] = set()

    def look(node: RelayExpr) -> None:
        while isinstance(node, Let):
            bound.add(node.value)
            node = node.body
            used.add(node)
        used.update(computed_first(node))

    post_order_visit(program, look)
    return bound & used


def _atomic(expr: RelayExpr) -> bool:
    return isinstance(expr, (Var, GlobalVar, Op, Constructor, Constant)) or not isinstance(
        expr, (ExprWithOp, Function)
    )


def as_text(
    program: Any, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None
) -> str:
    """A module or an expression as text.

    Parameters
    ----------
    show_meta_data : whether objects that are no text, such as constant arrays, are written behind
        the program; otherwise a line says that they are missing.
    annotate : makes a note for every expression; by default the types that are known.
    """
    printer = _Printer(annotate)
    text = _HEADER + printer.program(program)
    if not printer.meta:
        return text
    if not show_meta_data:
        return text.rstrip("\n") + "\n" + _LEFT_OUT
    table = {key: list(values) for key, values in printer.meta.items()}
    return f"{text.rstrip()}\n\n#[metadata]\n{tvm.ir.save_json(tvm.runtime.convert(table))}"


def astext(
    node: Any, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None
) -> str:
    """A module or an expression as text that `tvm.relay.parse` reads; see :func:`as_text`."""
    return as_text(node, show_meta_data, annotate)


def pretty_print(obj: Any) -> str:
    """A module or an expression as text for a reader, without the contents of arrays."""
    return as_text(obj, show_meta_data=False)


def _astext(self: Any, show_meta_data: bool = True, annotate: Any = None) -> str:
    """The expression as text, which `tvm.relay.parse_expr` reads; see :func:`as_text`."""
    return as_text(self, show_meta_data, annotate)


for _class in (ExprWithOp, Function):
    _class.astext = _astext  # type: ignore[method-assign]


@tvm._ffi.register_func("relay.ir.AsText")
def _as_text(program: Any, show_meta_data: bool, annotate: Any) -> str:
    return as_text(program, show_meta_data, annotate)


@tvm._ffi.register_func("relay.ir.FunctionOfExpr")
def _function_of(expr: RelayExpr) -> Function:
    return Function(free_vars(expr), expr)
