"""Messages with places in a source text."""

from __future__ import annotations

import ast

import pytest

import tvm
from tvm import tir
from tvm.ir.diagnostics import (
    Diagnostic,
    DiagnosticContext,
    DiagnosticError,
    DiagnosticLevel,
    SourceMap,
    override_renderer,
    span_of_syntax,
)

SOURCE = "def kernel(A):\n    return A[y]\n"


def context_with_source() -> DiagnosticContext:
    sources = SourceMap()
    sources.add("kernel.py", SOURCE)
    return DiagnosticContext(source_map=sources)


def span_of_name(name: str) -> tvm.ir.Span:
    found = next(
        node
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Name) and node.id == name
    )
    return span_of_syntax(found, "kernel.py")


def test_message_shows_line_and_mark(capfd):
    context = context_with_source()
    context.emit(Diagnostic.error("`y` is not defined", span_of_name("y")))
    with pytest.raises(DiagnosticError, match="1 error"):
        context.render()
    assert capfd.readouterr().err == (
        "error: `y` is not defined\n"
        " --> kernel.py:2:14\n"
        "  |\n"
        "2 |     return A[y]\n"
        "  |              ^\n"
    )


def test_warnings_are_shown_and_do_not_raise(capfd):
    context = context_with_source()
    context.emit(Diagnostic.warning("slow", span_of_name("A")))
    context.emit(Diagnostic.note("no place"))
    context.render()
    printed = capfd.readouterr().err
    assert "warning: slow" in printed
    assert printed.endswith("note: no place\n")
    assert context.diagnostics == ()


def test_all_errors_arrive_at_once():
    context = context_with_source()
    for name in ("A", "y"):
        context.emit(Diagnostic.error(f"bad {name}", span_of_name(name)))
    with pytest.raises(DiagnosticError, match=r"2 error\(s\)\n.*bad A(.|\n)*bad y"):
        context.render()


def test_renderer_can_be_replaced_and_restored():
    seen = []
    override_renderer(lambda context: seen.extend(context.diagnostics))
    try:
        DiagnosticContext().emit_fatal(Diagnostic(DiagnosticLevel.HELP, None, "try this"))
    finally:
        override_renderer(None)
    assert [d.message for d in seen] == ["try this"]


def test_text_of_a_file_is_found_without_being_added(tmp_path):
    path = tmp_path / "lines.py"
    path.write_text("one\ntwo\n")
    assert SourceMap().line(str(path), 2) == "two"
    assert SourceMap().line(str(path), 9) is None


def test_span_is_kept_by_nodes_and_ignored_by_comparison():
    span = tvm.ir.Span("kernel.py", 2, 2, 14, 14)
    literal = tvm.ir.IntImm("int32", 1, span)
    assert (literal.span.source_name.name, literal.span.column) == ("kernel.py", 14)
    assert tvm.ir.structural_equal(literal, tvm.ir.IntImm("int32", 1))
    restored = tvm.ir.load_json(tvm.ir.save_json(literal))
    assert tvm.ir.structural_equal(restored.span, span)


def test_constructors_and_functions_note_the_span_they_are_given():
    span = tvm.ir.Span("kernel.py", 1, 1, 5, 9)
    x = tir.Var("x", "int32", span)
    nodes = [
        x,
        tir.Add(x, x, span),
        tir.call_intrin("float32", "tir.exp", tir.FloatImm("float32", 1.0), span=span),
        tir.floordiv(x, 2, span),
        tir.Evaluate(x, span),
        tir.For(x, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(x), span=span),
        tir.PrimFunc([], tir.Evaluate(0), span=span),
    ]
    for node in nodes:
        assert node.span.end_column == 9, node
    assert tir.Add(x, x).span is None


def test_span_of_a_returned_operand_is_not_overwritten():
    first, second = (tvm.ir.Span("kernel.py", line, line, 1, 1) for line in (1, 2))
    operand = tir.Add(tir.Var("x", "int32"), 1, first)
    same = tir.floordiv(operand, 1, second)
    assert (operand.span.line, same.span.line) == (1, 2)
