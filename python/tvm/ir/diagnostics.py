"""Messages about a program's source text, with the place they are about.

A parser makes a `DiagnosticContext`, emits diagnostics while it works, and calls `render` at the
end: all messages are shown at once, and errors become one `DiagnosticError`.

>>> context = DiagnosticContext(source_map=source_map)
>>> context.emit(Diagnostic.error("`y` is not defined", span))
>>> context.render()
error: `y` is not defined
 --> kernel.py:2:13
  |
2 |     B[i] = A[y]
  |              ^
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from tvm.error import DiagnosticError

from .base import SourceName, Span
from .module import IRModule

__all__ = [
    "Diagnostic",
    "DiagnosticContext",
    "DiagnosticError",
    "DiagnosticLevel",
    "DiagnosticRenderer",
    "SourceMap",
    "get_renderer",
    "override_renderer",
    "span_of_syntax",
]


class DiagnosticLevel(IntEnum):
    """How bad it is; BUG and ERROR make `DiagnosticContext.render` raise."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


@dataclass(frozen=True)
class Diagnostic:
    """One message; `span` is None for messages about the program as a whole."""

    level: DiagnosticLevel
    span: Span | None
    message: str

    @staticmethod
    def error(message: str, span: Span | None = None) -> Diagnostic:
        """A message that makes the program unusable."""
        return Diagnostic(DiagnosticLevel.ERROR, span, message)

    @staticmethod
    def warning(message: str, span: Span | None = None) -> Diagnostic:
        """A message about something that is probably not meant."""
        return Diagnostic(DiagnosticLevel.WARNING, span, message)

    @staticmethod
    def note(message: str, span: Span | None = None) -> Diagnostic:
        """An explanation of the message before."""
        return Diagnostic(DiagnosticLevel.NOTE, span, message)

    @staticmethod
    def help(message: str, span: Span | None = None) -> Diagnostic:
        """A way out."""
        return Diagnostic(DiagnosticLevel.HELP, span, message)


class SourceMap:
    """Source texts by name. Files that were not added are read when a line is asked for."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, name: str, text: str) -> SourceName:
        """Remember a text, replacing one of the same name."""
        self._lines[str(name)] = text.splitlines()
        return SourceName(name)

    def __contains__(self, name: str) -> bool:
        return str(name) in self._lines

    def line(self, name: str, number: int) -> str | None:
        """Line `number`, counted from 1, without its end; None if there is no such text or line."""
        if name in self:
            lines = self._lines[str(name)]
            return lines[number - 1] if 1 <= number <= len(lines) else None
        # linecache also knows the cells of notebooks.
        return linecache.getline(str(name), number).rstrip("\n") or None


def render_text(diagnostic: Diagnostic, source_map: SourceMap) -> str:
    """A message with its place, the line of source and a mark under the characters meant."""
    lines = [f"{diagnostic.level.name.lower()}: {diagnostic.message}"]
    span = diagnostic.span
    if span is not None:
        lines.append(f" --> {span.source_name}:{span.line}:{span.column}")
        source = source_map.line(span.source_name, span.line)
        if source is not None:
            number = str(span.line)
            last = span.end_column if span.end_line == span.line else len(source)
            width = max(min(last, len(source)) - span.column + 1, 1)
            # A tab stays a tab under a tab, so that the mark stands right at any tab width.
            lead = "".join(c if c == "\t" else " " for c in source[: span.column - 1])
            lines += [
                f"{' ' * len(number)} |",
                f"{number} | {source}",
                f"{' ' * len(number)} | {lead}{'^' * width}",
            ]
    return "\n".join(lines)


class DiagnosticRenderer:
    """Shows the diagnostics of a context; `render_func` is given the context."""

    def __init__(self, render_func: Callable[[DiagnosticContext], None]) -> None:
        self._render_func = render_func

    def render(self, context: DiagnosticContext) -> None:
        self._render_func(context)


def _print_to_stderr(context: DiagnosticContext) -> None:
    for diagnostic in context.diagnostics:
        print(render_text(diagnostic, context.source_map), file=sys.stderr)


_default_renderer = DiagnosticRenderer(_print_to_stderr)
_renderer = _default_renderer


def get_renderer() -> DiagnosticRenderer:
    """The renderer of new contexts: the one set by `override_renderer`, or text on stderr."""
    return _renderer


def override_renderer(render_func: Callable[[DiagnosticContext], None] | None) -> None:
    """Let `render_func` show the diagnostics of all new contexts; None restores the default."""
    global _renderer
    _renderer = _default_renderer if render_func is None else DiagnosticRenderer(render_func)


class DiagnosticContext:
    """Collects the diagnostics of one piece of work, usually parsing.

    Parameters
    ----------
    module : the program the messages are about, if there is one already.
    renderer : shows the messages; `get_renderer` if left out.
    source_map : the texts spans refer to; files are found without it.
    """

    def __init__(
        self,
        module: IRModule | None = None,
        renderer: DiagnosticRenderer | None = None,
        source_map: SourceMap | None = None,
    ) -> None:
        self.module = module
        self.renderer = renderer or get_renderer()
        self.source_map = source_map or SourceMap()
        self._diagnostics: list[Diagnostic] = []

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """The messages so far, in the order they were emitted."""
        return tuple(self._diagnostics)

    def emit(self, diagnostic: Diagnostic) -> None:
        """Add a message."""
        self._diagnostics.append(diagnostic)

    def emit_fatal(self, diagnostic: Diagnostic) -> None:
        """Add a message after which work cannot go on, and `render`."""
        self.emit(diagnostic)
        self.render()

    def render(self) -> None:
        """Show all messages and forget them.

        Raises
        ------
        DiagnosticError : there were errors; it has their text.
        """
        errors = [d for d in self._diagnostics if d.level <= DiagnosticLevel.ERROR]
        self.renderer.render(self)
        self._diagnostics.clear()
        if errors:
            texts = "\n".join(render_text(error, self.source_map) for error in errors)
            raise DiagnosticError(f"the program has {len(errors)} error(s)\n{texts}")


def span_of_syntax(node: ast.AST, source_name: str, line: int = 1, indent: int = 0) -> Span:
    """The place of a node of Python's syntax tree.

    Parameters
    ----------
    line : the line of the file on which the parsed text begins.
    indent : characters taken off the front of every line before it was parsed.
    """
    first = getattr(node, "lineno", 1)
    last = getattr(node, "end_lineno", None) or first
    column = getattr(node, "col_offset", 0)
    end_column = getattr(node, "end_col_offset", None) or column + 1
    # Python counts columns from 0 and puts the end after the last character.
    return Span(
        source_name, first + line - 1, last + line - 1, column + indent + 1, end_column + indent
    )
