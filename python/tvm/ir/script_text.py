"""Showing programs as text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.runtime import Object, ObjectPath

from . import _ffi_api

__all__ = ["Scriptable"]


class Scriptable:
    """What modules and functions share: their text, and printing it."""

    __slots__ = ()

    def script(
        self,
        *,
        show_meta: bool = False,
        syntax_sugar: bool = True,
        path_to_underline: Sequence[ObjectPath] = (),
        path_to_annotate: Mapping[ObjectPath, str] | None = None,
        obj_to_underline: Sequence[Object] = (),
        obj_to_annotate: Mapping[Object, str] | None = None,
    ) -> str:
        """The program as text that `tvm.script.from_source` reads.

        Parameters
        ----------
        show_meta : write the objects that are no text, such as the constants of networks, in front
            of the program; otherwise a line at the end says that they are missing.
        syntax_sugar : write T.grid, T.axis.remap and buffers as types of parameters; without, every
            loop, axis and match_buffer has a line of its own.
        path_to_underline, obj_to_underline : places and objects with marks under them.
        path_to_annotate, obj_to_annotate : notes behind the lines of places and objects.
        """
        notes = {**(path_to_annotate or {}), **(obj_to_annotate or {})}
        underlined = [*path_to_underline, *obj_to_underline]
        return _ffi_api.Script(
            self,
            show_meta,
            syntax_sugar,
            underlined,
            list(notes),
            [str(note) for note in notes.values()],
        )

    def astext(self) -> str:
        """The program as text with everything in it, which `tvm.parser.parse` reads."""
        return self.script(show_meta=True)

    def show(self, **options: Any) -> None:
        """Print the program, in colour where the output is a terminal and pygments is there.

        Parameters
        ----------
        options : those of `script`.
        """
        text = self.script(**options)
        print(_highlighted(text) if sys.stdout.isatty() else text)


def _highlighted(text: str) -> str:
    try:
        from pygments import highlight
        from pygments.formatters import TerminalFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        return text
    return highlight(text, PythonLexer(), TerminalFormatter()).rstrip("\n")
