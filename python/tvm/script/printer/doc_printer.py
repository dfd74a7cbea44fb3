"""The text of documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.runtime import ObjectPath

from .doc import (
    AssertDoc,
    AssignDoc,
    AttrAccessDoc,
    CallDoc,
    ClassDoc,
    CommentDoc,
    DictDoc,
    Doc,
    DocStringDoc,
    ExprDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    IndexDoc,
    LambdaDoc,
    ListDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    ReturnDoc,
    ScopeDoc,
    SliceDoc,
    StmtBlockDoc,
    StmtDoc,
    TupleDoc,
    WhileDoc,
)

__all__ = ["to_python_script"]

_K = OperationKind
# Binding strength by Python's grammar, weakest first.
_LAMBDA, _CHOICE, _OR, _AND, _NOT, _COMPARE = 1, 2, 3, 4, 5, 6
_BIT_OR, _BIT_XOR, _BIT_AND, _SHIFT, _SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(7, 16)

_UNARY_SIGNS: Mapping[OperationKind, tuple[str, int]] = {
    _K.USub: ("-", _UNARY),
    _K.Invert: ("~", _UNARY),
    _K.Not: ("not ", _NOT),
}
_BINARY_SIGNS: Mapping[OperationKind, tuple[str, int]] = {
    _K.Add: ("+", _SUM),
    _K.Sub: ("-", _SUM),
    _K.Mult: ("*", _PRODUCT),
    _K.Div: ("/", _PRODUCT),
    _K.FloorDiv: ("//", _PRODUCT),
    _K.Mod: ("%", _PRODUCT),
    _K.Pow: ("**", _POWER),
    _K.LShift: ("<<", _SHIFT),
    _K.RShift: (">>", _SHIFT),
    _K.BitAnd: ("&", _BIT_AND),
    _K.BitOr: ("|", _BIT_OR),
    _K.BitXor: ("^", _BIT_XOR),
    _K.Lt: ("<", _COMPARE),
    _K.LtE: ("<=", _COMPARE),
    _K.Eq: ("==", _COMPARE),
    _K.NotEq: ("!=", _COMPARE),
    _K.Gt: (">", _COMPARE),
    _K.GtE: (">=", _COMPARE),
    _K.And: ("and", _AND),
    _K.Or: ("or", _OR),
}


def to_python_script(
    doc: Doc,
    indent_spaces: int = 4,
    print_line_numbers: bool = False,
    num_context_lines: int | None = None,
    path_to_underline: Sequence[ObjectPath] | ObjectPath | None = None,
) -> str:
    """A document as Python code.

    Parameters
    ----------
    print_line_numbers : before each line.
    num_context_lines : how many lines to leave before and after an underlined one; None for all.
    path_to_underline : places of the program; what shows the longest part of such a path is
        underlined.

    Raises
    ------
    ValueError : a comment behind a line has several lines.
    """
    if isinstance(path_to_underline, ObjectPath):
        path_to_underline = [path_to_underline]
    paths = list(path_to_underline or ())
    writer = _Writer(indent_spaces, paths)
    writer.print(doc)
    return writer.text(print_line_numbers, num_context_lines)


class _Writer:
    def __init__(self, indent_spaces: int, paths: list[ObjectPath]) -> None:
        self._step = indent_spaces
        self._margin = 0
        self._parts: list[str] = []
        self._length = 0
        self._paths = paths
        # The length of the longest known part of each path, and where it is shown.
        self._found: list[tuple[int, list[tuple[int, int]]]] = [(0, []) for _ in paths]

    # ---- text under way ----

    def put(self, *texts: str) -> None:
        for text in texts:
            self._parts.append(text)
            self._length += len(text)

    def line(self) -> None:
        self.put("\n", " " * self._margin)

    def print(self, doc: Doc, level: int = 0) -> None:
        """Write a document; an expression that binds more weakly than `level` in parentheses."""
        start = self._length
        if isinstance(doc, ExprDoc):
            weak = _strength(doc) < level
            if weak:
                self.put("(")
            _FORMS[type(doc)](self, doc)
            if weak:
                self.put(")")
        else:
            _FORMS[type(doc)](self, doc)
        self._note(doc, start)

    def _note(self, doc: Doc, start: int) -> None:
        for number, path in enumerate(self._paths):
            known = [len(shown) for shown in doc.source_paths if shown.is_prefix_of(path)]
            if not known:
                continue
            longest, places = self._found[number]
            if max(known) > longest:
                self._found[number] = (max(known), [(start, self._length)])
            elif max(known) == longest:
                places.append((start, self._length))

    def listed(self, docs: Sequence[Doc], level: int = _LAMBDA) -> None:
        for position, doc in enumerate(docs):
            if position:
                self.put(", ")
            self.print(doc, level)

    # ---- statements ----

    def block(self, stmts: Sequence[StmtDoc], documentation: str | None = None) -> None:
        self._margin += self._step
        self.line()
        if documentation is not None:
            self.documentation(documentation)
            self.line()
        if stmts:
            self.stmts(stmts)
        else:
            self.put("pass")
        self._margin -= self._step

    def stmts(self, stmts: Sequence[StmtDoc]) -> None:
        for position, stmt in enumerate(stmts):
            if position:
                if isinstance(stmt, FunctionDoc | ClassDoc):
                    self.put("\n")
                self.line()
            self.print(stmt)

    def above(self, doc: StmtDoc) -> None:
        """The comment of a statement that has lines of its own."""
        if doc.comment is not None:
            self.comment(doc.comment)
            self.line()

    def behind(self, doc: StmtDoc) -> None:
        """The comment of a statement of one line."""
        if doc.comment is None:
            return
        if "\n" in doc.comment:
            raise ValueError(
                f"the comment of {type(doc).__name__} cannot have newline: it stands behind the "
                f"line, got {doc.comment!r}"
            )
        self.put("  # ", doc.comment)

    def comment(self, text: str) -> None:
        for position, line in enumerate(text.split("\n") if text else ()):
            if position:
                self.line()
            self.put("# ", line)

    def documentation(self, text: str) -> None:
        if not text:
            return
        quotes = '"' * 3
        self.put(quotes)
        for line in text.replace("\\", "\\\\").replace(quotes, '\\"\\"\\"').split("\n"):
            self.line()
            self.put(line)
        self.line()
        self.put(quotes)

    # ---- the result ----

    def text(self, numbers: bool, context: int | None) -> str:
        whole = "".join(self._parts)
        places = [place for _, found in self._found for place in found]
        lines: list[tuple[str, str]] = []
        begin = 0
        for line in whole.split("\n"):
            marks = [" "] * len(line)
            margin = len(line) - len(line.lstrip(" "))
            for start, end in places:
                for column in range(max(start - begin, margin), min(end - begin, len(line))):
                    marks[column] = "^"
            lines.append((line.rstrip(" "), "".join(marks).rstrip(" ")))
            begin += len(line) + 1
        shown = range(len(lines))
        kept = set(shown)
        marked = [position for position in shown if lines[position][1]]
        if context is not None and marked:
            kept = {p for p in shown if any(abs(p - m) <= context for m in marked)}
        width = len(str(len(lines)))
        result: list[str] = []
        skipped = 0
        for position in shown:
            if position not in kept:
                skipped += 1
                continue
            result += _skipped(skipped)
            skipped = 0
            line, below = lines[position]
            result.append(f"{position + 1:<{width}} {line}".rstrip() if numbers else line)
            if below:
                result.append(" " * (width + 1 if numbers else 0) + below)
        result += _skipped(skipped)
        return "\n".join(result)


def _skipped(count: int) -> list[str]:
    if count == 0:
        return []
    return [f"(... {count} {'line' if count == 1 else 'lines'} skipped ...)"]


def _strength(doc: ExprDoc) -> int:
    if isinstance(doc, OperationDoc):
        if doc.kind in _UNARY_SIGNS:
            return _UNARY_SIGNS[doc.kind][1]
        return _BINARY_SIGNS[doc.kind][1] if doc.kind in _BINARY_SIGNS else _CHOICE
    if isinstance(doc, LambdaDoc):
        return _LAMBDA
    negative = isinstance(doc, LiteralDoc) and isinstance(doc.value, int | float) and doc.value < 0
    return _UNARY if negative else _ATOM


def _literal(w: _Writer, doc: LiteralDoc) -> None:
    if isinstance(doc.value, str):
        w.put(json.dumps(doc.value, ensure_ascii=False).replace("\x7f", "\\x7f"))
    elif isinstance(doc.value, float) and (
        doc.value != doc.value or abs(doc.value) == float("inf")
    ):
        w.put(f'float("{doc.value}")')
    else:
        w.put(repr(doc.value))


def _attribute(w: _Writer, doc: AttrAccessDoc) -> None:
    # A point behind an integer would be a part of the number.
    number = isinstance(doc.value, LiteralDoc) and isinstance(doc.value.value, int | float)
    w.print(doc.value, _ATOM + 1 if number else _ATOM)
    w.put(".", doc.name)


def _index(w: _Writer, doc: IndexDoc) -> None:
    w.print(doc.value, _ATOM)
    w.put("[")
    if doc.indices:
        w.listed(doc.indices)
    else:
        w.put("()")
    w.put("]")


def _call(w: _Writer, doc: CallDoc) -> None:
    w.print(doc.callee, _ATOM)
    w.put("(")
    w.listed(doc.args)
    for position, (key, value) in enumerate(zip(doc.kwargs_keys, doc.kwargs_values)):
        w.put(", " if position or doc.args else "", key, "=")
        w.print(value, _LAMBDA)
    w.put(")")


def _operation(w: _Writer, doc: OperationDoc) -> None:
    if doc.kind in _UNARY_SIGNS:
        sign, level = _UNARY_SIGNS[doc.kind]
        w.put(sign)
        w.print(doc.operands[0], level)
        return
    if doc.kind is OperationKind.IfThenElse:
        test, then, otherwise = doc.operands
        w.print(then, _OR)
        w.put(" if ")
        w.print(test, _OR)
        w.put(" else ")
        w.print(otherwise, _OR)
        return
    sign, level = _BINARY_SIGNS[doc.kind]
    left, right = doc.operands
    # Powers group to the right, comparisons not at all, the others to the left.
    power, compare = level == _POWER, level == _COMPARE
    w.print(left, level + 1 if power or compare else level)
    w.put(f" {sign} ")
    w.print(right, _UNARY if power else level + 1)


def _lambda(w: _Writer, doc: LambdaDoc) -> None:
    w.put("lambda ")
    w.listed(doc.args)
    w.put(": ")
    w.print(doc.body, _LAMBDA)


def _tuple(w: _Writer, doc: TupleDoc) -> None:
    w.put("(")
    w.listed(doc.elements)
    w.put(",)" if len(doc.elements) == 1 else ")")


def _list(w: _Writer, doc: ListDoc) -> None:
    w.put("[")
    w.listed(doc.elements)
    w.put("]")


def _dict(w: _Writer, doc: DictDoc) -> None:
    w.put("{")
    for position, (key, value) in enumerate(zip(doc.keys, doc.values)):
        w.put(", " if position else "")
        w.print(key, _LAMBDA)
        w.put(": ")
        w.print(value, _LAMBDA)
    w.put("}")


def _slice(w: _Writer, doc: SliceDoc) -> None:
    if doc.start is not None:
        w.print(doc.start, _LAMBDA)
    w.put(":")
    if doc.stop is not None:
        w.print(doc.stop, _LAMBDA)
    if doc.step is not None:
        w.put(":")
        w.print(doc.step, _LAMBDA)


def _target(w: _Writer, doc: ExprDoc) -> None:
    # The names of an assignment need no parentheses around all of them.
    if isinstance(doc, TupleDoc) and len(doc.elements) > 1:
        w.listed(doc.elements)
    else:
        w.print(doc)


def _assign(w: _Writer, doc: AssignDoc) -> None:
    if doc.annotation is None:
        _target(w, doc.lhs)
    else:
        w.print(doc.lhs)
        w.put(": ")
        w.print(doc.annotation)
    if doc.rhs is not None:
        w.put(" = ")
        _target(w, doc.rhs)
    w.behind(doc)


def _if(w: _Writer, doc: IfDoc) -> None:
    w.above(doc)
    w.put("if ")
    w.print(doc.predicate)
    w.put(":")
    w.block(doc.then_branch)
    if doc.else_branch:
        w.line()
        w.put("else:")
        w.block(doc.else_branch)


def _while(w: _Writer, doc: WhileDoc) -> None:
    w.above(doc)
    w.put("while ")
    w.print(doc.predicate)
    w.put(":")
    w.block(doc.body)


def _for(w: _Writer, doc: ForDoc) -> None:
    w.above(doc)
    w.put("for ")
    _target(w, doc.lhs)
    w.put(" in ")
    w.print(doc.rhs)
    w.put(":")
    w.block(doc.body)


def _scope(w: _Writer, doc: ScopeDoc) -> None:
    w.above(doc)
    w.put("with ")
    w.print(doc.rhs)
    if doc.lhs is not None:
        w.put(" as ")
        w.print(doc.lhs)
    w.put(":")
    w.block(doc.body)


def _expression(w: _Writer, doc: ExprStmtDoc) -> None:
    w.print(doc.expr)
    w.behind(doc)


def _assert(w: _Writer, doc: AssertDoc) -> None:
    w.put("assert ")
    w.print(doc.test)
    if doc.msg is not None:
        w.put(", ")
        w.print(doc.msg)
    w.behind(doc)


def _return(w: _Writer, doc: ReturnDoc) -> None:
    w.put("return ")
    w.print(doc.value)
    w.behind(doc)


def _decorators(w: _Writer, decorators: Sequence[ExprDoc]) -> None:
    for decorator in decorators:
        w.put("@")
        w.print(decorator)
        w.line()


def _function(w: _Writer, doc: FunctionDoc) -> None:
    _decorators(w, doc.decorators)
    w.put("def ")
    w.print(doc.name)
    w.put("(")
    w.listed(doc.args)
    w.put(")")
    if doc.return_type is not None:
        w.put(" -> ")
        w.print(doc.return_type)
    w.put(":")
    w.block(doc.body, doc.comment)


def _class(w: _Writer, doc: ClassDoc) -> None:
    _decorators(w, doc.decorators)
    w.put("class ")
    w.print(doc.name)
    w.put(":")
    w.block(doc.body, doc.comment)


_FORMS: Mapping[type[Doc], Callable[[_Writer, Any], None]] = {
    LiteralDoc: _literal,
    IdDoc: lambda w, doc: w.put(doc.name),
    AttrAccessDoc: _attribute,
    IndexDoc: _index,
    CallDoc: _call,
    OperationDoc: _operation,
    LambdaDoc: _lambda,
    TupleDoc: _tuple,
    ListDoc: _list,
    DictDoc: _dict,
    SliceDoc: _slice,
    StmtBlockDoc: lambda w, doc: w.stmts(doc.stmts),
    AssignDoc: _assign,
    IfDoc: _if,
    WhileDoc: _while,
    ForDoc: _for,
    ScopeDoc: _scope,
    ExprStmtDoc: _expression,
    AssertDoc: _assert,
    ReturnDoc: _return,
    FunctionDoc: _function,
    ClassDoc: _class,
    CommentDoc: lambda w, doc: w.comment(doc.comment or ""),
    DocStringDoc: lambda w, doc: w.documentation(doc.comment or ""),
}
