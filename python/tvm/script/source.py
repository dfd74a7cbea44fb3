"""The text being read, and errors that point into it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tvm.error import DiagnosticError
from tvm.ir.base import Span
from tvm.ir.diagnostics import Diagnostic, SourceMap, render_text, span_of_syntax

__all__ = ["Source"]


@dataclass(frozen=True)
class Source:
    """A script.

    Parameters
    ----------
    text : the script; its lines may be indented as a whole.
    name : the file it is from, or "<str>".
    first_line : line of the file on which the text begins.
    """

    text: str
    name: str = "<str>"
    first_line: int = 1

    @property
    def indent(self) -> int:
        """Columns by which the first line that has text is indented."""
        for line in self.text.splitlines():
            stripped = line.lstrip(" \t")
            if stripped and not stripped.startswith("#"):
                return len(line) - len(stripped)
        return 0

    def tree(self) -> ast.Module:
        """The syntax tree.

        Raises
        ------
        DiagnosticError : the text is not Python's syntax.
        """
        indent = self.indent
        lines = [
            line[indent:] if not line[:indent].strip() else line for line in self.text.splitlines()
        ]
        try:
            return ast.parse("\n".join(lines))
        except SyntaxError as reason:
            line = (reason.lineno or 1) + self.first_line - 1
            column = max(reason.offset or 1, 1) + indent
            span = Span(self.name, line, line, column, column)
            raise self.error_at(span, f"not the syntax of a script: {reason.msg}") from None
        except (ValueError, RecursionError, MemoryError) as reason:
            span = Span(self.name, self.first_line, self.first_line, 1, 1)
            raise self.error_at(span, f"the text cannot be read: {reason}") from None

    def span(self, node: ast.AST) -> Span:
        """The place of a part of the tree."""
        return span_of_syntax(node, self.name, self.first_line, self.indent)

    def error(self, node: ast.AST, message: str, way_out: str = "") -> DiagnosticError:
        """An error about a part of the tree, with its line and a mark under it."""
        return self.error_at(self.span(node), message, way_out)

    def error_at(self, span: Span, message: str, way_out: str = "") -> DiagnosticError:
        """An error about a place."""
        texts = SourceMap()
        texts.add(self.name, "\n" * (self.first_line - 1) + self.text)
        parts = [render_text(Diagnostic.error(message, span), texts)]
        if way_out:
            parts.append(render_text(Diagnostic.help(way_out), texts))
        return DiagnosticError("\n".join(parts))
