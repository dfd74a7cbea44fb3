"""Python code as a tree of documents.

A document says what is written, not how: `doc_printer.to_python_script` puts lines, margins and the
parentheses that are needed. `source_paths` has the places of the program that a document shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum, auto, unique
from typing import Any

from tvm.runtime import ObjectPath

__all__ = [
    "AssertDoc",
    "AssignDoc",
    "AttrAccessDoc",
    "CallDoc",
    "ClassDoc",
    "CommentDoc",
    "DictDoc",
    "Doc",
    "DocStringDoc",
    "ExprDoc",
    "ExprStmtDoc",
    "ForDoc",
    "FunctionDoc",
    "IdDoc",
    "IfDoc",
    "IndexDoc",
    "LambdaDoc",
    "ListDoc",
    "LiteralDoc",
    "OperationDoc",
    "OperationKind",
    "ReturnDoc",
    "ScopeDoc",
    "SliceDoc",
    "StmtBlockDoc",
    "StmtDoc",
    "TupleDoc",
    "WhileDoc",
]


class Doc:
    """Base of all documents."""

    def __init__(self) -> None:
        self.source_paths: list[ObjectPath] = []


class ExprDoc(Doc):
    """An expression."""

    def attr(self, name: str) -> AttrAccessDoc:
        """An attribute of it."""
        return AttrAccessDoc(self, name)

    def call(self, *args: ExprDoc, **kwargs: ExprDoc) -> CallDoc:
        """A call of it."""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices: Any) -> IndexDoc:
        return IndexDoc(self, indices if isinstance(indices, tuple) else (indices,))

    # Indexing never runs out, so iteration by index would not end.
    __iter__ = None


class StmtDoc(Doc):
    """A statement; its comment is printed behind or above it, or as its documentation."""

    def __init__(self) -> None:
        super().__init__()
        self.comment: str | None = None


class StmtBlockDoc(Doc):
    """Statements in order."""

    def __init__(self, stmts: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.stmts = list(stmts)


class LiteralDoc(ExprDoc):
    """None, a truth value, a number or a text."""

    def __init__(self, value: str | float | bool | int | None) -> None:
        super().__init__()
        if not (value is None or isinstance(value, str | bool | int | float)):
            raise TypeError(f"LiteralDoc: {value!r} has no literal")
        self.value = value


class IdDoc(ExprDoc):
    """A name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class AttrAccessDoc(ExprDoc):
    """``value.name``."""

    def __init__(self, value: ExprDoc, name: str) -> None:
        super().__init__()
        self.value = value
        self.name = name


class IndexDoc(ExprDoc):
    """``value[indices]``; without indices ``value[()]``."""

    def __init__(self, value: ExprDoc, indices: Sequence[ExprDoc | SliceDoc]) -> None:
        super().__init__()
        self.value = value
        self.indices = list(indices)


class CallDoc(ExprDoc):
    """``callee(*args, **kwargs)``."""

    def __init__(self, callee: ExprDoc, *args: ExprDoc, **kwargs: ExprDoc) -> None:
        super().__init__()
        self.callee = callee
        self.args = list(args)
        self.kwargs_keys = list(kwargs)
        self.kwargs_values = list(kwargs.values())


@unique
class OperationKind(IntEnum):
    """Operators of Python. Names with an underscore bound the groups."""

    _UnaryStart = 0
    USub = auto()
    Invert = auto()
    Not = auto()
    _UnaryEnd = auto()

    _BinaryStart = auto()
    Add = auto()
    Sub = auto()
    Mult = auto()
    Div = auto()
    FloorDiv = auto()
    Mod = auto()
    Pow = auto()
    LShift = auto()
    RShift = auto()
    BitAnd = auto()
    BitOr = auto()
    BitXor = auto()
    Lt = auto()
    LtE = auto()
    Eq = auto()
    NotEq = auto()
    Gt = auto()
    GtE = auto()
    And = auto()
    Or = auto()
    _BinaryEnd = auto()

    _SpecialStart = auto()
    IfThenElse = auto()
    _SpecialEnd = auto()


class OperationDoc(ExprDoc):
    """An operator on its operands; those of IfThenElse are condition, value, other value."""

    def __init__(self, kind: OperationKind, operands: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.kind = OperationKind(kind)
        self.operands = list(operands)


class LambdaDoc(ExprDoc):
    """``lambda args: body``."""

    def __init__(self, args: Sequence[IdDoc], body: ExprDoc) -> None:
        super().__init__()
        self.args = list(args)
        self.body = body


class TupleDoc(ExprDoc):
    """``(a, b)``."""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.elements = list(elements)


class ListDoc(ExprDoc):
    """``[a, b]``."""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.elements = list(elements)


class DictDoc(ExprDoc):
    """``{key: value}``."""

    def __init__(self, content: Mapping[ExprDoc, ExprDoc]) -> None:
        super().__init__()
        self.keys = list(content)
        self.values = list(content.values())


class SliceDoc(Doc):
    """``start:stop:step`` among indices."""

    def __init__(
        self,
        start: ExprDoc | None = None,
        stop: ExprDoc | None = None,
        step: ExprDoc | None = None,
    ) -> None:
        super().__init__()
        self.start = start
        self.stop = stop
        self.step = step


class AssignDoc(StmtDoc):
    """``lhs: annotation = rhs``; a parameter of a function as well."""

    def __init__(
        self, lhs: ExprDoc, rhs: ExprDoc | None = None, annotation: ExprDoc | None = None
    ) -> None:
        super().__init__()
        if rhs is None and annotation is None:
            raise ValueError("AssignDoc: either a value or a type is needed")
        self.lhs = lhs
        self.rhs = rhs
        self.annotation = annotation


class IfDoc(StmtDoc):
    """``if predicate: ... else: ...``."""

    def __init__(
        self,
        predicate: ExprDoc,
        then_branch: Sequence[StmtDoc],
        else_branch: Sequence[StmtDoc] = (),
    ) -> None:
        super().__init__()
        self.predicate = predicate
        self.then_branch = list(then_branch)
        self.else_branch = list(else_branch)


class WhileDoc(StmtDoc):
    """``while predicate: ...``."""

    def __init__(self, predicate: ExprDoc, body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.predicate = predicate
        self.body = list(body)


class ForDoc(StmtDoc):
    """``for lhs in rhs: ...``."""

    def __init__(self, lhs: ExprDoc, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.lhs = lhs
        self.rhs = rhs
        self.body = list(body)


class ScopeDoc(StmtDoc):
    """``with rhs as lhs: ...``."""

    def __init__(self, lhs: ExprDoc | None, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.lhs = lhs
        self.rhs = rhs
        self.body = list(body)


class ExprStmtDoc(StmtDoc):
    """An expression on a line of its own."""

    def __init__(self, expr: ExprDoc) -> None:
        super().__init__()
        self.expr = expr


class AssertDoc(StmtDoc):
    """``assert test, msg``."""

    def __init__(self, test: ExprDoc, msg: ExprDoc | None = None) -> None:
        super().__init__()
        self.test = test
        self.msg = msg


class ReturnDoc(StmtDoc):
    """``return value``."""

    def __init__(self, value: ExprDoc) -> None:
        super().__init__()
        self.value = value


class FunctionDoc(StmtDoc):
    """A function; its parameters are AssignDocs."""

    def __init__(
        self,
        name: IdDoc,
        args: Sequence[AssignDoc],
        decorators: Sequence[ExprDoc],
        return_type: ExprDoc | None,
        body: Sequence[StmtDoc],
    ) -> None:
        super().__init__()
        self.name = name
        self.args = list(args)
        self.decorators = list(decorators)
        self.return_type = return_type
        self.body = list(body)


class ClassDoc(StmtDoc):
    """A class."""

    def __init__(self, name: IdDoc, decorators: Sequence[ExprDoc], body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.name = name
        self.decorators = list(decorators)
        self.body = list(body)


class CommentDoc(StmtDoc):
    """Lines of comment."""

    def __init__(self, comment: str) -> None:
        super().__init__()
        self.comment = comment


class DocStringDoc(StmtDoc):
    """A text as documentation."""

    def __init__(self, docs: str) -> None:
        super().__init__()
        self.comment = docs
