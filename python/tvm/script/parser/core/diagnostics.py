"""The text that is read, and errors that point into it."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from tvm.script.source import Source as _Source

__all__ = ["Source"]


class Source(_Source):
    """The text of a function or class, or a text itself.

    Raises
    ------
    OSError : the text of a function is not in a file that can be read.
    """

    def __init__(self, program: Any) -> None:
        if isinstance(program, str):
            super().__init__(program)
            return
        lines, first = inspect.getsourcelines(program)
        super().__init__("".join(lines), inspect.getsourcefile(program) or "<str>", max(first, 1))

    @property
    def source(self) -> str:
        """The text."""
        return self.text

    @property
    def source_name(self) -> str:
        """The file it is from, or "<str>"."""
        return self.name

    @property
    def start_line(self) -> int:
        """Line of the file on which the text begins."""
        return self.first_line

    @property
    def start_column(self) -> int:
        """Columns by which it is indented."""
        return self.indent

    def as_ast(self) -> ast.Module:
        """The syntax tree."""
        return self.tree()
