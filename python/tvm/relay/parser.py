"""Reading programs from relay's text format."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tvm
from tvm import error
from tvm.ir import (
    Constructor,
    EnvFunc,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    IRModule,
    Op,
    RelayExpr,
    SourceName,
    Span,
    TensorType,
    TupleType,
    TypeCall,
    TypeData,
    TypeRelation,
    TypeVar,
)

from .adt import (
    Clause,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)
from .expr import (
    Call,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    const,
    set_virtual_device,
)
from .op import elementwise
from .op.registry import REQUIRED, find_row
from .ty import Any as AnyExtent
from .ty import IncompleteType, RefType, scalar_type

__all__ = ["fromtext", "parse", "parse_expr"]

_TOKENS = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
  | (?P<comment>/\*)
  | (?P<version>\#\[version[^\]]*\])
  | (?P<metadata>\#\[metadata\])
  | (?P<meta>meta\[(?P<key>[\w.]+)\]\[(?P<place>\d+)\])
  | (?P<graph>%\d+(?![\w]))
  | (?P<local>%[A-Za-z_][\w./-]*(?:\.[A-Za-z_]\w*)*)
  | (?P<global>@[\w.]+)
  | (?P<number>-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?
      (?:f16|f32|f64|f|[iu](?:8|16|32|64))?|-?inff(?!\w)|nanf(?!\w))
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<arrow>->|=>)
  | (?P<compare>==|!=|<=|>=)
  | (?P<name>[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)*)
  | (?P<mark>[-+*/<>(){}\[\],;:=.?&])""",
    re.VERBOSE,
)
_DTYPE = re.compile(r"(?:float|int|uint|bfloat)\d+(?:x\d+)?$|bool$|uint1$")
_SUFFIXES = {
    "f": "float32",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
}
_INFIX = {
    "*": (3, "multiply"),
    "/": (3, "divide"),
    "+": (2, "add"),
    "-": (2, "subtract"),
    "<": (1, "less"),
    ">": (1, "greater"),
    "<=": (1, "less_equal"),
    ">=": (1, "greater_equal"),
    "==": (1, "equal"),
    "!=": (1, "not_equal"),
}


class _Token:
    __slots__ = ("kind", "match", "text", "start")

    def __init__(self, kind: str, text: str, start: int, match: Any) -> None:
        self.kind, self.text, self.start, self.match = kind, text, start, match


def _number(text: str) -> tuple[Any, str | None]:
    """The number and the type that its suffix says."""
    if text in ("inff", "-inff", "nanf"):
        return float(text[:-1]), "float32"
    found = re.fullmatch(r"(-?[\d.]+(?:[eE][+-]?\d+)?)([a-z]\d*)?", text)
    assert found is not None
    digits, suffix = found.groups()
    dtype = _SUFFIXES.get(suffix) if suffix else None
    real = "." in digits or "e" in digits.lower() or (dtype or "").startswith("float")
    return (float(digits) if real else int(digits)), dtype


class _Parser:
    def __init__(
        self, text: str, source: str, meta: Mapping[str, Any] | None, spans: bool = False
    ) -> None:
        self._text, self._source, self._spans = text, source, spans
        self._meta: Mapping[str, Any] = meta or {}
        self._tokens = self._split(text)
        self._at = 0
        self._lines = [m.start() for m in re.finditer("\n", text)]
        self._graph: list[dict[str, RelayExpr]] = [{}]
        self._vars: list[dict[str, Var]] = [{}]
        self._types: list[dict[str, TypeVar]] = [{}]
        self.globals: dict[str, GlobalVar] = {}
        self._defined: dict[str, GlobalTypeVar] = {}
        self._constructors: dict[str, Constructor] = {}

    # Tokens.

    def _fail(self, message: str, at: int | None = None) -> error.DiagnosticError:
        place = self._tokens[min(self._at, len(self._tokens) - 1)].start if at is None else at
        line = self._text.count("\n", 0, place) + 1
        column = place - (self._text.rfind("\n", 0, place) + 1) + 1
        shown = self._text.splitlines()[line - 1] if self._text else ""
        mark = " " * (column - 1) + "^"
        return error.DiagnosticError(f"{self._source}:{line}:{column}: {message}\n{shown}\n{mark}")

    def _split(self, text: str) -> list[_Token]:
        tokens = []
        at = 0
        while at < len(text):
            match = _TOKENS.match(text, at)
            if match is None:
                self._tokens = [_Token("end", "", at, None)]
                self._at = 0
                raise self._fail(f"unexpected character {text[at]!r}", at)
            kind = match.lastgroup
            if kind in ("key", "place"):
                kind = "meta"
            if kind == "metadata":
                self._meta = {**self._meta, **tvm.ir.load_json(text[match.end() :])}
                break
            if kind == "comment":
                at = self._behind_comment(text, at)
                continue
            if kind != "space" and kind != "version":
                tokens.append(_Token(str(kind), match.group(0), at, match))
            at = match.end()
        tokens.append(_Token("end", "", len(text), None))
        return tokens

    def _behind_comment(self, text: str, start: int) -> int:
        """Where a comment ends, which may have others inside."""
        depth = 0
        for mark in re.finditer(r"/\*|\*/", text[start:]):
            depth += 1 if mark.group() == "/*" else -1
            if depth == 0:
                return start + mark.end()
        self._tokens = [_Token("end", "", start, None)]
        self._at = 0
        raise self._fail("the comment has no end", start)

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _sees(self, text: str, ahead: int = 0) -> bool:
        place = self._at + ahead
        return (
            place < len(self._tokens)
            and self._tokens[place].text == text
            and (self._tokens[place].kind != "string")
        )

    def _take(self, text: str | None = None) -> _Token:
        token = self._next
        if text is not None and not self._sees(text):
            shown = token.text or "the end"
            raise self._fail(f"expected `{text}`, found `{shown}`")
        self._at += 1
        return token

    def _accept(self, text: str) -> bool:
        if self._sees(text):
            self._at += 1
            return True
        return False

    def _listed(self, end: str, item: Callable[[], Any]) -> list[Any]:
        items = []
        while not self._sees(end):
            items.append(item())
            if not self._accept(","):
                break
        self._take(end)
        return items

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self._graph.append({})
        self._vars.append({})
        yield
        self._graph.pop()
        self._vars.pop()

    def _known(self, table: list[dict[str, Any]], name: str) -> Any:
        return next((scope[name] for scope in reversed(table) if name in scope), None)

    def _object(self, token: _Token) -> Any:
        key, place = token.match.group("key"), int(token.match.group("place"))
        if key not in self._meta or place >= len(self._meta[key]):
            raise self._fail(
                f"there is no {token.text}: the metadata section is missing", token.start
            )
        return self._meta[key][place]

    # Types.

    def type(self) -> Any:
        token = self._take()
        if token.kind == "meta":
            return self._object(token)
        if token.text == "Tensor":
            self._take("[")
            self._take("(")
            shape = self._listed(")", self._extent)
            self._take(",")
            dtype = self._take().text
            self._take("]")
            return TensorType(shape, dtype)
        if token.text == "(":
            return TupleType(self._listed(")", self.type))
        if token.text == "fn":
            with self._type_params() as params:
                self._take("(")
                args = self._listed(")", self.type)
                self._take("->")
                result = self.type()
                demands = [self._relation()] if self._accept("where") else []
                while demands and self._sees("(", 2) and self._accept(","):
                    demands.append(self._relation())
                return FuncType(args, result, params, demands)
        if token.text == "_":
            return IncompleteType()
        if token.text == "ref" and self._accept("("):
            inner = self.type()
            self._take(")")
            return RefType(inner)
        if _DTYPE.match(token.text):
            return scalar_type(token.text)
        known = self._known(self._types, token.text) or self._defined.get(token.text)
        if known is None:
            raise self._fail(f"there is no type `{token.text}`", token.start)
        if self._accept("["):
            return TypeCall(known, self._listed("]", self.type))
        return TypeCall(known, []) if isinstance(known, GlobalTypeVar) else known

    def _relation(self) -> TypeRelation:
        """Behind `where`: the name of a function, operands and the result, and attributes."""
        name = self._take().text
        self._take("(")
        args, attrs = [], None
        while not self._sees(")"):
            if self._sees("attrs") and self._sees("=", 1):
                self._take("attrs")
                self._take("=")
                attrs = self._object(self._take())
            else:
                args.append(self.type())
            if not self._accept(","):
                break
        self._take(")")
        return TypeRelation(EnvFunc.get(name), args, len(args) - 1, attrs)

    def _type_definition(self, outside: bool) -> TypeData:
        """Behind `type`: a name, parameters, and the constructors, unless these are elsewhere."""
        name = self._take().text
        header = self._defined.setdefault(name, GlobalTypeVar(name))
        constructors: list[Constructor] = []
        with self._type_params() as params:
            if not self._accept(";") and (not outside or self._sees("{")):
                self._take("{")
                constructors = self._listed("}", lambda: self._constructor(header))
        return TypeData(header, params, constructors)

    def _constructor(self, header: GlobalTypeVar) -> Constructor:
        token = self._take()
        if token.text in self._constructors:
            raise self._fail(f"there are two constructors `{token.text}`", token.start)
        inputs = self._listed(")", self.type) if self._accept("(") else []
        made = self._constructors[token.text] = Constructor(token.text, inputs, header)
        return made

    def _pattern(self) -> Pattern:
        token = self._take()
        if token.text in ("_", "%_"):
            return PatternWildcard()
        if token.kind == "local":
            var = self._vars[-1][token.text[1:]] = self._declared(token.text[1:])
            return PatternVar(var)
        if token.text == "(":
            return PatternTuple(self._listed(")", self._pattern))
        con = self._constructors.get(token.text)
        if con is None:
            raise self._fail(f"there is no constructor `{token.text}`", token.start)
        return PatternConstructor(
            con, self._listed(")", self._pattern) if self._accept("(") else []
        )

    def _declared(self, name: str) -> Var:
        """A new variable, with the device and the type behind its name."""
        device = None
        if self._accept("{"):
            self._take("virtual_device")
            self._take("=")
            device = self._value()
            self._take("}")
        var = Var(name, self.type() if self._accept(":") else None)
        return var if device is None else set_virtual_device(var, device)

    def _clause(self) -> Clause:
        with self._scope():
            lhs = self._pattern()
            self._take("=>")
            rhs = self._block() if self._sees("{") else self.expr()
            return Clause(lhs, rhs)

    def _match(self) -> Match:
        complete = not self._accept("?")
        self._take("(")
        data = self._tuple()
        self._take("{")
        return Match(data, self._listed("}", self._clause), complete)

    @contextmanager
    def _type_params(self) -> Iterator[list[TypeVar]]:
        self._types.append({})
        params = []
        if self._accept("["):
            for name in self._listed("]", lambda: self._take().text):
                if name in self._types[-1]:
                    raise self._fail(f"there are two type parameters `{name}`")
                self._types[-1][name] = TypeVar(name)
                params.append(self._types[-1][name])
        yield params
        self._types.pop()

    def _extent(self) -> Any:
        token = self._take()
        if token.text == "?":
            return AnyExtent()
        if token.kind == "meta":
            return self._object(token)
        if token.kind == "number":
            value, dtype = _number(token.text)
            return tvm.tir.const(value, dtype) if dtype == "int64" else value
        raise self._fail("expected an extent", token.start)

    # Expressions.

    def body(self) -> RelayExpr:
        """Statements and the expression behind them."""
        bindings: list[tuple[Var, RelayExpr] | None] = []
        while True:
            if self._sees("free_var") and self._tokens[self._at + 1].kind == "local":
                self._take()
                name = self._take().text[1:]
                self._vars[-1][name] = self._declared(name)
                self._take(";")
            elif self._accept("let"):
                name = self._take().text[1:]
                var = self._declared(name)
                self._take("=")
                self._vars[-1][name] = var
                value = self.expr()
                self._take(";")
                bindings.append((var, value))
            elif self._next.kind == "graph" and self._sees("=", 1):
                place = self._take().text
                self._take("=")
                self._graph[-1][place] = self.expr()
                self._take(";")
            else:
                result = self.expr()
                if self._accept(";"):
                    bindings.append((Var("_"), result))
                    continue
                break
        for binding in reversed(bindings):
            assert binding is not None
            result = Let(binding[0], binding[1], result)
        return result

    def _block(self) -> RelayExpr:
        self._take("{")
        with self._scope():
            result = self.body()
        self._take("}")
        return result

    def expr(self, level: int = 0) -> RelayExpr:
        """An expression; operators of a level bind as they do in Python."""
        left = self._postfix()
        while self._next.text in _INFIX and self._next.kind in ("mark", "compare"):
            rank, name = _INFIX[self._next.text]
            if rank <= level:
                break
            start = self._take().start
            left = self._placed(getattr(elementwise, name)(left, self.expr(rank)), start)
        return left

    def _postfix(self) -> RelayExpr:
        value = self._atom()
        while True:
            if self._sees("(") and not isinstance(value, (If, Match)):
                start = self._take().start
                args, settings = self._arguments()
                value = self._placed(self._call(value, args, settings), start)
            elif self._sees(".") and self._tokens[self._at + 1].kind == "number":
                self._take()
                value = self._fields(value, self._take().text)
            elif self._next.kind == "number" and re.fullmatch(r"(\.\d+)+", self._next.text):
                value = self._fields(value, self._take().text[1:])
            elif isinstance(value, Constructor) and not len(value.inputs):
                return value()
            else:
                return value

    def _placed(self, call: RelayExpr, start: int) -> RelayExpr:
        """A call with its place in the text, if that is wanted."""
        if not self._spans or not isinstance(call, Call):
            return call
        above = bisect.bisect_left(self._lines, start)
        line, column = above + 1, start - (self._lines[above - 1] if above else -1)
        span = Span(SourceName(self._source), line, line, column, column)
        return Call(call.op, call.args, call.attrs, call.type_args, span)

    def _fields(self, value: RelayExpr, places: str) -> RelayExpr:
        for place in places.split("."):
            value = TupleGetItem(value, int(place))
        return value

    def _arguments(self) -> tuple[list[RelayExpr], dict[str, Any]]:
        args, settings = [], {}
        while not self._sees(")"):
            if self._next.kind == "name" and self._sees("=", 1):
                key = self._take().text
                self._take("=")
                settings[key] = self._value()
            else:
                args.append(self.expr())
            if not self._accept(","):
                break
        self._take(")")
        return args, settings

    def _value(self) -> Any:
        token = self._take()
        if token.text == "[" or token.text == "(":
            return self._listed("]" if token.text == "[" else ")", self._value)
        if token.kind == "string":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1])
        if token.kind == "number":
            return _number(token.text)[0]
        if token.text in ("True", "False", "None"):
            return {"True": True, "False": False, "None": None}[token.text]
        if token.kind == "meta":
            return self._object(token)
        if token.kind == "name":
            return token.text
        raise self._fail(f"expected a setting, found `{token.text}`", token.start)

    def _call(self, op: RelayExpr, args: list[RelayExpr], settings: dict[str, Any]) -> RelayExpr:
        row = find_row(op)
        if row is None:
            return Call(op, args, settings or None)
        unknown = set() if row.open else set(settings) - set(row.settings)
        if unknown:
            raise self._fail(f"{row.name} has no setting {sorted(unknown)}")
        values = {**row.settings, **settings}
        missing = [key for key, value in values.items() if value is REQUIRED]
        if missing:
            raise self._fail(f"{row.name} needs {', '.join(missing)}")
        values = {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
        return Call(op, args, values or None)

    def _atom(self) -> RelayExpr:
        token = self._take()
        at = token.start
        if token.kind == "graph":
            found = self._known(self._graph, token.text)
            if found is None:
                raise self._fail(f"{token.text} is not defined", at)
            return found
        if token.kind == "local":
            name = token.text[1:]
            found = self._known(self._vars, name)
            field = re.fullmatch(r"(.*?)((?:\.\d+)+)", name)
            if found is None and field is not None:
                # A field of a variable, unless a variable is named so.
                found = self._known(self._vars, field[1])
                if found is not None:
                    return self._fields(found, field[2][1:])
            if found is None:
                raise self._fail(f"%{name} is not defined; free variables are declared before", at)
            return found
        if token.kind == "global":
            return self.global_var(token.text[1:])
        if token.kind == "number":
            value, dtype = _number(token.text)
            return const(value, dtype)
        if token.kind == "meta":
            return self._object(token)
        if token.text == "(":
            return self._tuple()
        if token.text == "{":
            self._at -= 1
            return self._block()
        if token.text in ("True", "False"):
            return const(token.text == "True", "bool")
        if token.text == "-":
            return elementwise.negative(self._postfix())
        if token.text == "if":
            return self._if()
        if token.text == "fn":
            return self.function()
        if token.text == "match":
            return self._match()
        if token.text in self._constructors:
            return self._constructors[token.text]
        if token.text in ("ref", "ref_read", "ref_write") and self._accept("("):
            args = self._listed(")", self.expr)
            kind: Any = {"ref": RefCreate, "ref_read": RefRead, "ref_write": RefWrite}[token.text]
            return kind(*args)
        if token.kind == "name":
            if not Op.exists(token.text):
                raise self._fail(f"there is no operator `{token.text}`", token.start)
            return Op.get(token.text)
        raise self._fail(f"expected an expression, found `{token.text or 'the end'}`", token.start)

    def _tuple(self) -> RelayExpr:
        if self._accept(")"):
            return Tuple([])
        if self._sees("let") or (self._next.kind == "graph" and self._sees("=", 1)):
            with self._scope():
                first = self.body()
        else:
            first = self.expr()
        if self._accept(")"):
            return first
        self._take(",")
        return Tuple([first, *self._listed(")", self.expr)])

    def _if(self) -> RelayExpr:
        self._take("(")
        cond = self.expr()
        self._take(")")
        yes = self._block()
        self._take("else")
        if self._sees("if"):
            self._take()
            return If(cond, yes, self._if())
        return If(cond, yes, self._block())

    def function(self) -> Function:
        """Parameters, result and body, behind `fn` or a name."""
        with self._type_params() as type_params, self._scope():
            self._take("(")
            params, attrs = [], {}
            while not self._sees(")"):
                if self._next.kind == "local":
                    at, name = self._next.start, self._take().text[1:]
                    if name in self._vars[-1]:
                        raise self._fail(f"there are two parameters %{name}", at)
                    params.append(self._declared(name))
                    self._vars[-1][name] = params[-1]
                else:
                    key = self._take().text
                    self._take("=")
                    attrs[key.strip('"')] = self._value()
                if not self._accept(","):
                    break
            self._take(")")
            ret = self.type() if self._accept("->") else None
            body = self._block()
            device = attrs.pop("virtual_device", None)
            func = Function(params, body, ret, type_params, attrs or None)
            return func if device is None else set_virtual_device(func, device)

    def global_var(self, name: str) -> GlobalVar:
        """The variable of a function's name."""
        return self.globals.setdefault(name, GlobalVar(name))

    def module(self, start: IRModule | None) -> IRModule:
        """All definitions."""
        result = IRModule() if start is None else start.clone()
        while self._accept("import"):
            result.import_from_std(self._take().text.strip('"'))
            self._accept(";")
        for gvar in result.get_global_vars():
            self.globals[str(gvar.name_hint)] = gvar
        for definition in result.type_definitions.values():
            self._defined[str(definition.header.name_hint)] = definition.header
            for con in definition.constructors:
                self._constructors[str(con.name_hint)] = con
        while self._next.kind != "end":
            outside = self._accept("extern")
            if outside or self._sees("type"):
                self._take("type")
                definition = self._type_definition(outside)
                if str(definition.header.name_hint) in result.type_definitions:
                    raise self._fail(f"type {definition.header.name_hint} is defined twice")
                result[definition.header] = definition
                continue
            self._take("def")
            token = self._take()
            if token.kind != "global":
                raise self._fail("expected a name such as @main", token.start)
            name = token.text[1:]
            if name in result:
                raise self._fail(f"@{name} is defined twice", token.start)
            result.update_func(self.global_var(name), self.function())
        return result

    def whole(self) -> RelayExpr:
        """One expression that is all there is."""
        result = self.body()
        if self._next.kind != "end":
            raise self._fail(f"unexpected `{self._next.text}`")
        return result

    @property
    def has_definitions(self) -> bool:
        """Whether the text is a module."""
        return (
            any(self._sees(word) for word in ("def", "type", "extern", "import"))
            or self._next.kind == "end"
        )


def parse(
    source: str,
    src_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Any] | None = None,
) -> IRModule:
    """A module from its text.

    Parameters
    ----------
    src_name : name for messages.
    init_module : functions that are there already.
    init_meta_table : objects that ``meta[key][place]`` names, beside those of the text.

    Raises
    ------
    DiagnosticError : the text is no program; the message has line, column and a mark.
    """
    parser = _Parser(source, src_name, init_meta_table, spans=True)
    if parser.has_definitions:
        return parser.module(init_module)
    return IRModule.from_expr(parser.whole())


def with_spans(mod: IRModule, src_name: str) -> IRModule:
    """The module read back from its text, where calls know their lines and columns."""
    return _Parser(mod.astext(), src_name, None, spans=True).module(None)


def parse_expr(source: str) -> RelayExpr:
    """An expression from its text; see :func:`parse`."""
    return _Parser(source, "from_string", None).whole()


def fromtext(data: str, source_name: str = "from_string") -> Any:
    """A module, or the expression if the text is one; see :func:`parse`."""
    parser = _Parser(data, source_name, None)
    return parser.module(None) if parser.has_definitions else parser.whole()
