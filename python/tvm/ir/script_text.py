"""Showing programs as text."""

from __future__ import annotations

import sys

from . import _ffi_api

__all__ = ["Scriptable"]


class Scriptable:
    """What modules and functions share: their text, and printing it."""

    __slots__ = ()

    def script(self, show_meta: bool = False) -> str:
        """The program as text that `tvm.script.from_source` reads.

        Parameters
        ----------
        show_meta : write the objects that are no text, such as the constants of networks, in front
            of the program; otherwise a line at the end says that they are missing.
        """
        return _ffi_api.Script(self, show_meta)

    def astext(self) -> str:
        """The program as text with everything in it, which `tvm.parser.parse` reads."""
        return self.script(show_meta=True)

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
