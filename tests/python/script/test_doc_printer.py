"""Python code as documents, and its text."""

from __future__ import annotations

import ast
import random

import pytest

from tvm.script.printer import to_python_script
from tvm.script.printer.doc import (
    AssertDoc,
    AssignDoc,
    CallDoc,
    ClassDoc,
    CommentDoc,
    DictDoc,
    DocStringDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    LambdaDoc,
    ListDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    ReturnDoc,
    ScopeDoc,
    SliceDoc,
    TupleDoc,
    WhileDoc,
)

x, y = IdDoc("x"), IdDoc("y")


@pytest.mark.parametrize(
    ("doc", "text"),
    [
        (LiteralDoc('a"b\\\n'), r'"a\"b\\\n"'),
        (LiteralDoc(float("inf")), 'float("inf")'),
        (LiteralDoc(-1).attr("real"), "(-1).real"),
        (LiteralDoc(1).attr("real"), "(1).real"),
        (x[()], "x[()]"),
        (x[SliceDoc(LiteralDoc(1), None, y), y], "x[1::y, y]"),
        (CallDoc(x, y, key=LambdaDoc([y], y)), "x(y, key=lambda y: y)"),
        (TupleDoc([x]), "(x,)"),
        (DictDoc({LiteralDoc("k"): ListDoc([])}), '{"k": []}'),
    ],
)
def test_expressions_print_as_python(doc, text):
    assert to_python_script(doc) == text


def random_expression(rng, depth):
    if depth == 0:
        return rng.choice([IdDoc("a"), IdDoc("b"), LiteralDoc(2), LiteralDoc(-3)])
    kind = rng.choice([k for k in OperationKind if not k.name.startswith("_")])
    count = 3 if kind is OperationKind.IfThenElse else 1 if kind < 4 else 2
    return OperationDoc(kind, [random_expression(rng, depth - 1) for _ in range(count)])


def shape_of(doc):
    """The tree that a document says, to compare with what Python reads."""
    if isinstance(doc, IdDoc):
        return doc.name
    if isinstance(doc, LiteralDoc):
        return ("USub", abs(doc.value)) if doc.value < 0 else doc.value
    operands = [shape_of(operand) for operand in doc.operands]
    return (doc.kind.name, *operands)


def shape_read(node):
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=op, operand=operand):
            return (type(op).__name__, shape_read(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return (type(op).__name__, shape_read(left), shape_read(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return (type(op).__name__, shape_read(left), shape_read(right))
        case ast.BoolOp(op=op, values=[first, *rest]):
            result = shape_read(first)
            for value in rest:
                result = (type(op).__name__, result, shape_read(value))
            return result
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return ("IfThenElse", shape_read(test), shape_read(body), shape_read(orelse))


def test_operators_have_the_parentheses_they_need():
    rng = random.Random(0)
    for _ in range(300):
        doc = random_expression(rng, rng.randrange(1, 5))
        text = to_python_script(doc)
        assert shape_read(ast.parse(text, mode="eval").body) == shape_of(doc), text


def test_statements_print_as_python():
    function = FunctionDoc(
        IdDoc("f"),
        [AssignDoc(x, None, IdDoc("int")), AssignDoc(y, LiteralDoc(1), IdDoc("int"))],
        [IdDoc("jit")],
        LiteralDoc(None),
        [
            IfDoc(x, [AssertDoc(y, LiteralDoc("no"))], [WhileDoc(x, [])]),
            ForDoc(TupleDoc([x, y]), x, [ExprStmtDoc(y)]),
            ScopeDoc(y, x, [ReturnDoc(x)]),
            CommentDoc("one\ntwo"),
        ],
    )
    function.comment = "what it does"
    function.body[1].comment = "over all"
    assert to_python_script(ClassDoc(IdDoc("C"), [], [DocStringDoc("doc"), function])) == "\n".join(
        [
            "class C:",
            '    """',
            "    doc",
            '    """',
            "",
            "    @jit",
            "    def f(x: int, y: int = 1) -> None:",
            '        """',
            "        what it does",
            '        """',
            "        if x:",
            '            assert y, "no"',
            "        else:",
            "            while x:",
            "                pass",
            "        # over all",
            "        for x, y in x:",
            "            y",
            "        with x as y:",
            "            return x",
            "        # one",
            "        # two",
        ]
    )


def test_a_comment_behind_a_line_has_one_line():
    doc = ReturnDoc(x)
    doc.comment = "a\nb"
    with pytest.raises(ValueError, match="cannot have newline"):
        to_python_script(doc)
    with pytest.raises(ValueError, match="a value or a type"):
        AssignDoc(x)


def test_lines_may_be_numbered():
    doc = WhileDoc(x, [ExprStmtDoc(y)])
    assert to_python_script(doc, 2, print_line_numbers=True) == "1 while x:\n2   y"
