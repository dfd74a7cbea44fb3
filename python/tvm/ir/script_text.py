"""Showing programs as text."""

from __future__ import annotations

import sys

__all__ = ["Scriptable"]


class Scriptable:
    """What modules and functions share: their text, and printing it."""

    __slots__ = ()

    def script(self) -> str:
        """The program as text."""
        return repr(self)

    def astext(self) -> str:
        """The program as text; another name for `script`."""
        return self.script()

    def show(self) -> None:
        """Print the program, in colour where the output is a terminal and pygments is there."""
        text = self.script()
        print(_highlighted(text) if sys.stdout.isatty() else text)


def _highlighted(text: str) -> str:
    try:
        from pygments import highlight
        from pygments.formatters import TerminalFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        return text
    return highlight(text, PythonLexer(), TerminalFormatter()).rstrip("\n")
